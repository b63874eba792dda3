// expect: chainfold: an expression has no value in C\+\+
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)static_cast<float>(x + 1);
#else
  (void)cf::cast<double>(x + 1);
#endif
}
