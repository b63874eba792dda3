// expect: chainfold: an enumeration is no element type
#include <cstdint>
#include <type_traits>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  enum class Side : std::int8_t { bid, ask };
  constexpr Side kSide = Side::bid;
  (void)kSide;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input<Side>("x");
#else
  (void)cf::input<std::underlying_type_t<Side> >("x");
#endif
}
