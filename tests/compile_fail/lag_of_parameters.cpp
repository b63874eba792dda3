// expect: chainfold: cf::lag takes an expression of the inputs
#include <cstdint>
#include "chainfold/chainfold.hpp"
namespace cf = chainfold;
int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  auto p = cf::heads(x > cf::lag(cf::param<float>("p"), 1, 0));
#else
  auto p = cf::heads(x > cf::lag(x, 1, cf::param<float>("p")));
#endif
  static_cast<void>(cf::over(p, cf::sum(x)));
}
