// expect: chainfold: every output of cf::over must fold
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/dsl/scan.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::over(cf::whole(), cf::inclusive_sum(x), x - cf::cast<float>(cf::count()));
#else
  (void)cf::over(cf::whole(), cf::inclusive_sum(x), cf::sum(x));
#endif
}
