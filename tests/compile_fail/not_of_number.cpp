// expect: chainfold: &&, .. and ! take bool expressions; write a comparison
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto i = cf::input<std::int32_t>("i");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)!i;
#else
  (void)!(i == 0);
#endif
}
