// expect: chainfold: a pointer or array is no element type
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input<bool*>("x");
#else
  (void)cf::input<bool>("x");
#endif
}
