// expect: chainfold: min and max are not defined on bool; use cf::all and cf::any
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto b = cf::input<bool>("b");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::max(b);
#else
  (void)cf::any(b);
#endif
}
