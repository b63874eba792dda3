// Scans of segments of f16 by offsets, which a counting iterator computes, and of f32 by offsets in
// memory.
#include "chainfold/bench/peers_cub_scan.cuh"

namespace chainfold::bench::cub_peer {

cudaError_t run_segmented_scan([[maybe_unused]] const Problem& problem,
                               [[maybe_unused]] Temporary temporary,
                               [[maybe_unused]] const void* in, [[maybe_unused]] void* out,
                               [[maybe_unused]] cudaStream_t stream) {
#if __has_include(<cub/device/device_segmented_scan.cuh>)
  using Scan = cub::DeviceSegmentedScan;
  if (problem.offsets != nullptr) {
    if (problem.op != Op::inclusive_sum || problem.in != DType::f32) return cudaErrorNotSupported;
    return Scan::InclusiveSegmentedScan(
        temporary.data, temporary.bytes, static_cast<const float*>(in), static_cast<float*>(out),
        problem.offsets, problem.offsets + 1, problem.segments, cuda::std::plus<float>{}, stream);
  }
  const auto begins = thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0),
                                                      Times{problem.segment});
  const std::int64_t segments = problem.elements / problem.segment;
  const auto* const x = static_cast<const __half*>(in);
  auto* const y = static_cast<__half*>(out);
  const cuda::std::plus<float> plus;
  switch (problem.op) {
    case Op::inclusive_sum:
      return Scan::InclusiveSegmentedScan(temporary.data, temporary.bytes, x, y, begins, begins + 1,
                                          segments, plus, stream);
    case Op::exclusive_sum:
      return Scan::ExclusiveSegmentedScan(temporary.data, temporary.bytes, x, y, begins, begins + 1,
                                          segments, plus, 0.0f, stream);
    case Op::inclusive_max:
      return Scan::InclusiveSegmentedScan(temporary.data, temporary.bytes, x, y, begins, begins + 1,
                                          segments, Larger{}, stream);
    default: break;
  }
#endif
  return cudaErrorNotSupported;
}

}  // namespace chainfold::bench::cub_peer
