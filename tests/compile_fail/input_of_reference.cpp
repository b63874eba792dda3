// expect: chainfold: a reference is no element type
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input<float&>("x");
#else
  (void)cf::input<float>("x");
#endif
}
