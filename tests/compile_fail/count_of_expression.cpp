// expect: chainfold: cf::count takes no expression
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::count(x);
#else
  (void)cf::count();
#endif
}
