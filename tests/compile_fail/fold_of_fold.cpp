// expect: chainfold: a fold of a value that is one for the segment already
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sum(cf::mean(x));
#else
  (void)cf::sqrt(cf::mean(x));
#endif
}
