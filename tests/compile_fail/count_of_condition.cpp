// expect: chainfold: cf::count of a condition; make a filter of it
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::count(x > 0);
#else
  (void)cf::count(cf::where(x > 0));
#endif
}
