// expect: chainfold: a condition beside the expression of a fold; make a filter of it
#include <cstdint>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<std::int32_t>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::bit_or(x, x > 0);
#else
  (void)cf::bit_or(x, cf::where(x > 0));
#endif
}
