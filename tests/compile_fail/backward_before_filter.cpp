// expect: chainfold: cf::backward is the last argument of a scan
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::inclusive_sum(x, cf::backward, cf::backward);
#else
  (void)cf::inclusive_sum(x, cf::where(x > 0), cf::backward);
#endif
}
