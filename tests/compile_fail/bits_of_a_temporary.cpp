// expect: a bitmap of a temporary array
#include <cstdint>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  const std::vector<std::uint8_t> bytes(8);
  (void)cf::bits(bytes, 60);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::bits(std::vector<std::uint8_t>(8), 60);
#endif
}
