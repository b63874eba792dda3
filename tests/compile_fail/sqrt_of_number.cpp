// expect: chainfold: a function of numbers alone
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(x * cf::sqrt(2.0F));
#else
  (void)(x * cf::sqrt(2.0F * x));
#endif
}
