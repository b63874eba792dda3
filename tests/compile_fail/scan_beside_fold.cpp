// expect: chainfold: one operand has a value for each element, the other a value for the segment
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/dsl/scan.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(cf::inclusive_sum(x) / cf::sum(x));
#else
  (void)(cf::inclusive_sum(x) / cf::cast<float>(cf::count()));
#endif
}
