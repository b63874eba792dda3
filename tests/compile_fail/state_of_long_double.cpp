// expect: chainfold: long double is no element type; use double
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::state<long double, float>(0, 0);
#else
  (void)cf::state<double, float>(0, 0);
#endif
}
