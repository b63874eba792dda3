// expect: chainfold: a floating-point literal beside an integer expression; cast the expression
// first
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto i = cf::input<std::int32_t>("i");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(i * 0.5);
#else
  (void)(cf::cast<double>(i) * 0.5);
#endif
}
