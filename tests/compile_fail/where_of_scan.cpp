// expect: chainfold: a fold of a scan, or a scan of one
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/dsl/scan.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::where(cf::inclusive_sum(x) > 1);
#else
  (void)cf::where(x > 1);
#endif
}
