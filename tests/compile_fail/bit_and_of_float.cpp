// expect: chainfold: cf::bit_and, cf::bit_or and cf::bit_xor fold integers
#include "chainfold/dsl/input.hpp"
#include "chainfold/dsl/monoid.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::bit_and(x);
#else
  (void)cf::bit_and(cf::cast<std::int32_t>(x));
#endif
}
