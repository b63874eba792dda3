// expect: chainfold: the third argument of cf::lag is a number or a parameter
#include <cstdint>
#include "chainfold/chainfold.hpp"
namespace cf = chainfold;
int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  auto p = cf::heads(x > cf::lag(x, 1, x));
#else
  auto p = cf::heads(x > cf::lag(x, 1, 0));
#endif
  static_cast<void>(cf::over(p, cf::sum(x)));
}
