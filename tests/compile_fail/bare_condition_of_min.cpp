// expect: chainfold: a condition beside the expression of a fold; make a filter of it
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::min(x, x > 0);
#else
  (void)cf::min(x, cf::where(x > 0));
#endif
}
