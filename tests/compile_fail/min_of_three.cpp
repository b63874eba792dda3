// expect: chainfold: cf::min and cf::max take two operands, or one to fold
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::min(x, x * 2, 3);
#else
  (void)cf::min(cf::min(x, x * 2), 3);
#endif
}
