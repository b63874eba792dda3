// expect: chainfold: a scan of what is no expression
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  std::vector<float> samples(8);
  (void)samples;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::inclusive(samples);
#else
  (void)cf::inclusive(cf::sum(x));
#endif
}
