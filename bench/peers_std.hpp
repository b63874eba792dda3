// std::inclusive_scan and its likes with std::execution::par as peers on the CPU. GCC's need
// oneTBB's library, so they live in a module of their own beside the program, which runs without
// it.
#pragma once

#include <cstdint>

#include "chainfold/bench/peers_openmp.hpp"

namespace chainfold::bench::std_peer {

enum class Scan : int { inclusive_sum, exclusive_sum, inclusive_max };

/// Scans of segments that follow each other, `in` and `out` of the type, and out of i8 i32; they
/// may be the same memory. Sums of 16-bit floats are added in f32. Segments are shared out by
/// std::for_each or, where they are few, each scanned by all threads. Returns false where there is
/// none of it.
using Function = bool (*)(Scan what, openmp::Type type, const void* in, void* out,
                          std::int64_t segments, std::int64_t length, int threads);

/// Loads the module once. Throws std::runtime_error with the reason where that fails.
Function load();

}  // namespace chainfold::bench::std_peer
