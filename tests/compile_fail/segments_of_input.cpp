// expect: chainfold: the segment size is an expression
#include <cstdint>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto sizes = cf::input<std::int32_t>("sizes");
  (void)sizes;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::segments(sizes);
#else
  (void)cf::segments(cf::param<std::int64_t>("S"));
#endif
}
