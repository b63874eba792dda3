// expect: chainfold: an expression has no value in C\+\+
#include <algorithm>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto y = cf::input<float>("y");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)std::max(x, y);
#else
  (void)cf::max(x, y);
#endif
}
