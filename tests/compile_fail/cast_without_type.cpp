// expect: chainfold: an element type is missing; name it
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::cast(x);
#else
  (void)cf::cast<double>(x);
#endif
}
