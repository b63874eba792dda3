// expect: chainfold: a fold takes one filter; combine the conditions
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sum(x, cf::where(x > 0), cf::where(x < 9));
#else
  (void)cf::sum(x, cf::where(x > 0 && x < 9));
#endif
}
