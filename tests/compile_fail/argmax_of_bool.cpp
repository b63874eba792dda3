// expect: chainfold: argmin and argmax are not defined on bool
#include "chainfold/dsl/input.hpp"
#include "chainfold/dsl/monoid.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::argmax(x > 0);
#else
  (void)cf::argmax(cf::cast<std::int8_t>(x > 0));
#endif
}
