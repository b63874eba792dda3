// expect: chainfold: offsets are std::int64_t or std::int32_t
#include <cstdint>
#include "chainfold/chainfold.hpp"
namespace cf = chainfold;
int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  auto p = cf::offsets<float>("o");
#else
  auto p = cf::offsets<std::int32_t>("o");
#endif
  static_cast<void>(cf::over(p, cf::sum(x)));
}
