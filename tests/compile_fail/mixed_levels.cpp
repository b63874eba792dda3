// expect: chainfold: one operand has a value for each element, the other a value for the segment
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(x - cf::max(x));
#else
  (void)(cf::sum(x) - cf::max(x));
#endif
}
