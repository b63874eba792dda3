// CUB's reductions and scans as peers. Compiled by nvcc from the CCCL that the build found; where
// there is no nvcc, the program is built without them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "chainfold/bench/op.hpp"
#include "chainfold/codegen/base/types.hpp"

namespace chainfold::bench::cub_peer {

/// Whole inputs; segments of one size by the overload for them; segments by offsets, which a
/// counting iterator computes, so that CUB reads none; segments by a key for each element, which
/// scans compute and sums read.
enum class Form : std::uint8_t { whole, fixed, offsets, keys };

struct Problem {
  Op op = Op::sum;
  DType in = DType::f32, out = DType::f32;
  std::int64_t elements = 0;
  std::int64_t segment = 0;  ///< 0: whole
  /// Of segments of other lengths what is read: one more than there are segments.
  const std::int64_t* offsets = nullptr;
  std::int64_t segments = 1;
  const std::int32_t* keys = nullptr;  ///< of elements whose segments' begins are flagged
};

/// "3.6.0"
std::string version();
/// Whether these headers have a form (the fixed-size one came with 3.1) for an operation.
bool has(const Problem& problem, Form form);
/// What is called, e.g. "DeviceSegmentedReduce::Sum, fixed size, accumulating in f32".
std::string call(const Problem& problem, Form form);
/// Queues the reduction or scan on a stream; without temporary memory it only tells how much it
/// needs. Returns what CUDA says is wrong, or nothing.
std::string run(const Problem& problem, Form form, void* temporary, std::size_t& temporary_bytes,
                const void* const* inputs, void* const* outputs, void* stream);

}  // namespace chainfold::bench::cub_peer
