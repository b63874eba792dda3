// expect: chainfold: long double is no element type; use double
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(x * 2.0L);
#else
  (void)(x * 2.0);
#endif
}
