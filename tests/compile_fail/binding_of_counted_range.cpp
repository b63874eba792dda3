// expect: chainfold: a range is bound without a count
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<float> samples(8);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::Binding("x", samples, 4);
#else
  (void)cf::Binding("x", samples.data(), 4);
#endif
}
