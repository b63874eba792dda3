// expect: chainfold: a filter in the place of the expression of a fold
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sum(cf::where(x > 0));
#else
  (void)cf::sum(x, cf::where(x > 0));
#endif
}
