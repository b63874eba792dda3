// expect: chainfold: an expression has no value in C\+\+
#include <cmath>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)std::sqrt(x);
#else
  (void)cf::sqrt(x);
#endif
}
