// expect: chainfold: the initial value of a scan is one
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/dsl/scan.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::exclusive_sum(x, x);
#else
  (void)cf::exclusive_sum(x, cf::param<float>("p"));
#endif
}
