// expect: chainfold: a character is no element type
#include <cstdint>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<std::int8_t>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(x == 'a');
#else
  (void)(x == static_cast<std::int8_t>('a'));
#endif
}
