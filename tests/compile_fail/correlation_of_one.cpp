// expect: chainfold: cf::correlation takes two expressions
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto b = cf::input<bool>("b");
  (void)b;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::correlation(x);
#else
  (void)cf::correlation(x, 2 * x);
#endif
}
