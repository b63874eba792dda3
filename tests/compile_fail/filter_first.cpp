// expect: chainfold: a filter in the place of the expression of a fold
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::max(cf::where(x > 0), x);
#else
  (void)cf::max(x, cf::where(x > 0));
#endif
}
