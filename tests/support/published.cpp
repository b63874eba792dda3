#include "chainfold/tests/support/published.hpp"

namespace chainfold::test {

dsl::Partition PublishedCase::partition() const {
  if (offsets) return chainfold::offsets("offsets");
  return segment > 0 ? segments(segment) : whole();
}

/// Counts at and around what warps and blocks take at once.
const std::vector<PublishedCase>& published_cases() {
  static const std::vector<PublishedCase> all = {
      {"reduction16 warps=2 rows=1", 16, {0, 1, 15, 16, 17, 31, 33, 50}},
      {"reduction16 warps=1 rows=2 bytes=4", 16, {1, 16, 31, 32, 33, 63, 65}},
      {"reduction16 warps=4 rows=4 bytes=2", 16, {7, 64, 100, 257}},
      {"strided16n warps=2 depth=2 chain=1", 48, {1, 15, 16, 31, 33}},
      {"strided16n warps=1 depth=4 chain=2 bytes=4", 112, {5, 16, 17}, true},
      {"strided16n warps=2 depth=4 chain=0 bytes=2", 208, {3, 33}, true},
      {"strided16n warps=2 depth=16 chain=0", 64, {1, 16, 40}, true},
      {"coalesced16n warps=2 depth=2 chain=1", 272, {1, 15, 16, 33}},
      {"coalesced16n warps=1 depth=4 chain=1 bytes=4", 1296, {3, 17}},
      {"coalesced16n warps=2 depth=2 chain=0 bytes=2", 1040, {1, 18}, true},
      {"coalesced16n warps=2 depth=4 chain=1", 512, {16, 19}},
      {"reduction256 warps=2 rows=1", 256, {1, 2, 3}},
      {"reduction256 warps=2 rows=4 bytes=8", 256, {1, 3, 4, 7, 8, 9, 21}},
      {"reduction256 warps=1 rows=2 bytes=2 product=1", 256, {1, 5}, true},
      {"inefficient256n warps=2 depth=1", 256, {1, 3}},
      {"inefficient256n warps=2 depth=2 bytes=4", 1280, {1, 3}},
      {"inefficient256n warps=1 depth=4 product=1", 2304, {1, 3}, true},
      {"efficient256n warps=2 depth=1 chain=0", 256, {1, 3}},
      {"efficient256n warps=2 depth=4 chain=1", 2816, {1, 3}},
      {"efficient256n warps=2 depth=4 chain=4", 2816, {1, 3}, true},
      {"efficient256n warps=1 depth=2 chain=0 bytes=8", 1280, {2}, true},
      {"efficient256n warps=4 depth=4 chain=0 product=1", 2560, {1, 5}, true},
      {"efficient256n warps=2 depth=4 chain=2 product=1 bytes=2", 2816, {3}, true},
      {"block256n warps=4 depth=1 chain=1", 256, {1, 5}},
      {"block256n warps=4 depth=2 chain=1", 2048, {2}},
      {"block256n warps=4 depth=2 chain=1 bytes=4", 2816, {1, 3}},
      {"block256n warps=2 depth=4 chain=0", 2816, {3}, true},
      {"block256n warps=8 depth=1 chain=0 product=1", 2816, {2}, true},
      {"grid256n warps=2 depth=1 chain=1 blocks=1", 0, {0, 1, 255, 256, 511, 513, 9001, 40000}},
      {"grid256n warps=4 depth=4 chain=1 blocks=1 bytes=4", 0, {1023, 4096, 70001}},
      {"grid256n warps=1 depth=4 chain=4 blocks=1 bytes=2", 0, {5000}, true},
      {"grid256n warps=2 depth=2 chain=2 blocks=1 product=1", 0, {0, 700, 30011}, true},
      {"recurrence warps=1 chain=1", 0, {0, 1, 255, 256, 257, 66000}, true},
      {"recurrence warps=2 chain=5 bytes=4", 0, {1279, 1281, 9001}, true},
      {"recurrence warps=32 chain=8 bytes=2", 0, {3, 20000}, true},
      {"single_pass warps=1 chain=1 blocks=1", 0, {0, 1, 256, 257, 9001}},
      {"single_pass warps=4 chain=1 blocks=2 bytes=4", 0, {1023, 1025, 70001}},
      {"single_pass warps=4 chain=5 blocks=1 bytes=2", 0, {1, 5119, 30000}, true},
      {"single_pass warps=2 chain=4 blocks=1 product=1", 0, {0, 2047, 30000}, true},
      {"split warps=2 blocks=1 fraction=50", 0, {0, 1, 255, 256, 511, 513, 9001, 40000}},
      {"split warps=8 depth=2 blocks=1 fraction=25 bytes=4", 0, {4095, 70001}},
      {"split warps=4 depth=2 blocks=1 fraction=99 bytes=2", 0, {1, 30000}},
      {"split warps=4 blocks=1 fraction=1 product=1", 0, {600, 30000}, true},
      {"padded warps=1 depth=1 chain=1", 0, {0, 1, 17, 300, 1500}, false, true},
      {"padded warps=2 depth=4 chain=1", 0, {40, 700, 2000, 5000}, false, true},
      {"padded warps=8 depth=2 chain=2", 0, {33, 3000}, true, true},
      {"padded warps=4 depth=4 chain=0", 0, {0, 100, 4000}, true, true},
  };
  return all;
}

}  // namespace chainfold::test
