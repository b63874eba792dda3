// expect: chainfold: cf::covariance takes two expressions of the inputs
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto b = cf::input<bool>("b");
  (void)b;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::covariance(x, x, x > 0, cf::ddof(1));
#else
  (void)cf::covariance(x, x, cf::ddof(1), cf::where(x > 0));
#endif
}
