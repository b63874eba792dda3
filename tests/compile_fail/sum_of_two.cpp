// expect: chainfold: a fold takes one expression and, if wanted, cf::where
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sum(x, x);
#else
  (void)cf::sum(x * x);
#endif
}
