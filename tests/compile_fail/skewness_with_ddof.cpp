// expect: chainfold: cf::skewness and cf::kurtosis take one expression
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto b = cf::input<bool>("b");
  (void)b;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::skewness(x, cf::ddof(1));
#else
  (void)cf::stddev(x, cf::ddof(1));
#endif
}
