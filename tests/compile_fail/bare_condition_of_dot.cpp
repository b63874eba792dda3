// expect: chainfold: a condition beside the expression of a fold
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::dot(x, x, x > 0);
#else
  (void)cf::dot(x, x, cf::where(x > 0));
#endif
}
