// Tuned values of parts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedParts {
  /// From here on a segment gives a block or several work: bytes of its widest input. A CPU's
  /// thread takes more.
  std::int64_t from_bytes = 64 * 1024;
  /// A CPU's parts do not depend on its threads, so that neither do its results.
  int cpu_parts = 1024;
  /// Bytes of few long segments from which on a block of theirs has 16 warps instead of 8.
  std::int64_t wide_segment_bytes = 64 * 1024;
  /// Loads in flight of the warps of parts on a GPU: of few parts, and of many.
  int few_part_loads = 8, part_loads = 16;
  /// Rounds of such loads, of all warps, below which blocks of half as many share a segment.
  /// Moments are better off so at any length, and warps have longer segments of them to themselves
  /// (mean and variance on an H200, 2^15, 2^16, 2^18 and 2^20 f16 a segment: 0.94, 0.92, 0.979 and
  /// 0.993 of the ceiling by eight warps, 0.986, 0.988, 0.992 and 0.996 so).
  int short_part_rounds = 4, moments_from = 2;
};

}  // namespace chainfold::codegen
