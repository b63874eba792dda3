// expect: chainfold: a character is no element type
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input<char>("x");
#else
  (void)cf::input<signed char>("x");
#endif
}
