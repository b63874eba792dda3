// expect: chainfold: the condition of cf::select must be bool
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto i = cf::input<std::int32_t>("i");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::select(i, x, 0);
#else
  (void)cf::select(i > 0, x, 0);
#endif
}
