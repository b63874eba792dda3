// expect: chainfold: the condition of cf::where has one value for the segment
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sum(x, cf::where(cf::mean(x) > 0));
#else
  (void)cf::sum(x, cf::where(x > 0));
#endif
}
