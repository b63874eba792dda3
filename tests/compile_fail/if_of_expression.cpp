// expect: chainfold: an expression has no value in C\+\+
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(x > 0 ? 1 : 0);
#else
  (void)cf::select(x > 0, 1, 0);
#endif
}
