// expect: chainfold: cf::dot takes two expressions of the inputs
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  std::vector<float> weights(8);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::dot(x, weights);
#else
  (void)cf::dot(x, cf::input<float>("weights"));
  (void)weights;
#endif
}
