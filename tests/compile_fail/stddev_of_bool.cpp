// expect: chainfold: statistics of bool
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto b = cf::input<bool>("b");
  (void)b;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::stddev(b);
#else
  (void)cf::stddev(cf::cast<float>(b));
#endif
}
