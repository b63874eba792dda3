// expect: chainfold: a fold of what is no expression; declare the data as an input
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  std::vector<float> samples(8);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sum(samples);
#else
  (void)cf::sum(x);
  (void)samples;
#endif
}
