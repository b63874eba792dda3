// expect: chainfold: a condition beside the expression of a fold; make a filter of it
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<bool>("x");
  auto y = cf::input<float>("y");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::any(x, y > 0);
#else
  (void)cf::any(x, cf::where(y > 0));
#endif
}
