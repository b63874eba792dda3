// expect: chainfold: long double is no element type; use double
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::cast<long double>(x);
#else
  (void)cf::cast<double>(x);
#endif
}
