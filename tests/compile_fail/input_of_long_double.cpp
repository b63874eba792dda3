// expect: chainfold: long double is no element type; use double
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input<long double>("x");
#else
  (void)cf::input<double>("x");
#endif
}
