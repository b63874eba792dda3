// expect: chainfold: cf::where takes a bool expression of the inputs
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  cf::where(true);
#else
  (void)cf::where(x > 0);
#endif
}
