// expect: cf::as_bits is for bitmaps, whose values are bool
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto valid = cf::input<bool>("valid", cf::as_bits);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  auto x = cf::input<float>("x", cf::as_bits);
  (void)cf::over(cf::whole(), cf::sum(x));
#endif
  (void)cf::over(cf::whole(), cf::count(cf::where(valid)));
}
