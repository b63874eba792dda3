// expect: chainfold: an element type is missing; name it
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input("x");
#else
  (void)cf::input<float>("x");
#endif
}
