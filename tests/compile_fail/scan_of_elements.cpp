// expect: chainfold: a scan of a value for each element
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/dsl/scan.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::inclusive(x * x);
#else
  (void)cf::inclusive(cf::sum(x * x));
#endif
}
