// expect: chainfold: a scan of an expression without a fold
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/dsl/scan.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::exclusive(cf::count());
#else
  (void)cf::exclusive(cf::count(cf::where(x > 0)));
#endif
}
