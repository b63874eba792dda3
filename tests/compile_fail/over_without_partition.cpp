// expect: chainfold: cf::over takes a partition first
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::over(cf::sum(x));
#else
  (void)cf::over(cf::whole(), cf::sum(x));
#endif
}
