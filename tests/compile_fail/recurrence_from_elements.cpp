// expect: chainfold: the initial value of a scan is one for the launch
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto b = cf::input<bool>("b");
  auto p = cf::param<float>("p");
  (void)b, (void)p;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::linear_recurrence(0.5F, x, x);
#else
  (void)cf::linear_recurrence(0.5F, x, p);
#endif
}
