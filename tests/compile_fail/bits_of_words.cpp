// expect: cf::bits takes a contiguous range of std::uint8_t
#include <cstdint>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  const std::vector<std::uint8_t> bytes(8);
  (void)cf::bits(bytes, 60);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  const std::vector<std::uint32_t> words(2);
  (void)cf::bits(words, 60);
#endif
}
