// expect: chainfold: a range of data is no element type
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  std::vector<float> samples(8);
  (void)samples;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(x + samples);
#else
  (void)(x + cf::input<float>("y"));
#endif
}
