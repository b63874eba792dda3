// expect: chainfold: the condition of cf::where must be bool; write a comparison
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto i = cf::input<std::int32_t>("i");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sum(x, cf::where(i));
#else
  (void)cf::sum(x, cf::where(i != 0));
#endif
}
