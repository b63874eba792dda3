// expect: chainfold: cf::where takes one condition; combine several
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::where(x > 0, x < 9);
#else
  (void)cf::where(x > 0 && x < 9);
#endif
}
