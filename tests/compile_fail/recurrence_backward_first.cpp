// expect: chainfold: cf::linear_recurrence takes a factor, a value
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto b = cf::input<bool>("b");
  auto p = cf::param<float>("p");
  (void)b, (void)p;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::linear_recurrence(0.5F, x, cf::backward, p);
#else
  (void)cf::linear_recurrence(0.5F, x, p, cf::backward);
#endif
}
