// expect: chainfold: an initial value goes with a scan of one sum
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto b = cf::input<bool>("b");
  (void)b;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::inclusive(cf::mean(x), 0);
#else
  (void)cf::inclusive(cf::max(x), 0);
#endif
}
