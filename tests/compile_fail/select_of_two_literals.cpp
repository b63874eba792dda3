// expect: chainfold: the two literals of cf::select must have one type
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::select(x > 0, 1, 0.5);
#else
  (void)cf::select(x > 0, 1.0, 0.5);
#endif
}
