// expect: chainfold: cf::where takes a bool expression of the inputs
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  std::vector<float> samples(8);
  (void)samples;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sum(x, cf::where(samples));
#else
  (void)cf::sum(x, cf::where(x > 0));
#endif
}
