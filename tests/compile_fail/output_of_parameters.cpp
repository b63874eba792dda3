// expect: chainfold: every output of cf::over must fold
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto p = cf::param<float>("p");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::over(cf::whole(), cf::sum(x), p);
#else
  (void)cf::over(cf::whole(), cf::sum(x), p * cf::max(x));
#endif
}
