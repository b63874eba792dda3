// Tuned values of parts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedParts {
  /// Bytes of a segment's widest input from which on it gives a block or several work. A CPU's
  /// thread takes more.
  std::int64_t from_bytes = 64 * 1024;
  /// A CPU's parts do not depend on its threads, so that neither do its results.
  int cpu_parts = 1024;
  /// Bytes of few long segments from which on a block of theirs has 16 warps instead of 8.
  std::int64_t wide_segment_bytes = 64 * 1024;
  /// Loads in flight of the warps of parts on a GPU: of few parts, and of many.
  int few_part_loads = 8, part_loads = 16;
  /// The same of folds of booleans (docs/tuned-values.md#parts).
  int loads_of_tests = 4;
  /// Warps of a cluster's block (docs/tuned-values.md#parts).
  int cluster_warps = 8;
  /// Trips of such loads, of all warps, below which blocks of half as many warps share a segment.
  /// Moments have such blocks at any length, and warps own longer segments of them: up to
  /// `moments_from` times `from_bytes` (docs/tuned-values.md#parts).
  int short_part_rounds = 4, moments_from = 2;
};

}  // namespace chainfold::codegen
