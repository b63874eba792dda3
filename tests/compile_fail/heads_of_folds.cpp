// expect: chainfold: the condition of cf::heads is computed from inputs
#include <cstdint>
#include "chainfold/chainfold.hpp"
namespace cf = chainfold;
int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  auto p = cf::heads(cf::sum(x) > 3);
#else
  auto p = cf::heads(x > 3);
#endif
  static_cast<void>(cf::over(p, cf::sum(x)));
}
