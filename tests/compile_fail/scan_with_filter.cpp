// expect: chainfold: behind its expression a scan takes an initial value and cf::backward
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::exclusive(cf::sum(x), cf::where(x > 0));
#else
  (void)cf::exclusive(cf::sum(x, cf::where(x > 0)), cf::backward);
#endif
}
