// expect: chainfold: an output of cf::over is no expression
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::over(cf::whole(), cf::where(x > 0));
#else
  (void)cf::over(cf::whole(), cf::count(cf::where(x > 0)));
#endif
}
