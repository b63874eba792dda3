// expect: chainfold: &, . and . are defined on integers and bool only
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(x & 1.0f);
#else
  (void)(cf::cast<std::int32_t>(x) & 1);
#endif
}
