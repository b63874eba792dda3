// expect: chainfold: a fold of parameters or constants alone
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto p = cf::param<float>("p");
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sum(p);
#else
  (void)cf::sum(p * x);
#endif
}
