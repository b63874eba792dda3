// One scan by CUB in any of its forms, shared by the files that instantiate it.
#pragma once

#include <cub/device/device_scan.cuh>
#if __has_include(<cub/device/device_segmented_scan.cuh>)
#include <cub/device/device_segmented_scan.cuh>
#endif

#include "chainfold/bench/peers_cub_call.cuh"

namespace chainfold::bench::cub_peer {

/// cub::DeviceSegmentedScan came with this version.
#if __has_include(<cub/device/device_segmented_scan.cuh>)
inline constexpr bool kHasSegmentedScan = true;
#else
inline constexpr bool kHasSegmentedScan = false;
#endif

/// The number of an element's segment.
struct SegmentOf {
  std::int64_t length;
  __host__ __device__ std::int64_t operator()(std::int64_t i) const { return i / length; }
};

struct Larger {
  __host__ __device__ __half operator()(__half a, __half b) const { return __hmax(a, b); }
};

/// CUB accumulates in what `fold` returns; with `PlainSum` by the overload for sums.
template <bool PlainSum, class In, class Out, class Fold>
cudaError_t scan_whole(const Problem& problem, Temporary temporary, const In* in, Out* out,
                       Fold fold, cudaStream_t stream) {
  if constexpr (PlainSum) {
    return cub::DeviceScan::InclusiveSum(temporary.data, temporary.bytes, in, out, problem.elements,
                                         stream);
  } else {
    return cub::DeviceScan::InclusiveScan(temporary.data, temporary.bytes, in, out, fold,
                                          problem.elements, stream);
  }
}

/// Segments by a key for each element, which is computed and not read.
template <class In, class Out, class Fold>
cudaError_t scan_by_key(const Problem& problem, Temporary temporary, const In* in, Out* out,
                        Fold fold, cudaStream_t stream) {
  const auto keys = thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0),
                                                    SegmentOf{problem.segment});
  return cub::DeviceScan::InclusiveScanByKey(temporary.data, temporary.bytes, keys, in, out, fold,
                                             problem.elements, cuda::std::equal_to<>{}, stream);
}
template <class In, class Out, class Fold, class State>
cudaError_t exclusive_by_key(const Problem& problem, Temporary temporary, const In* in, Out* out,
                             Fold fold, State init, cudaStream_t stream) {
  const auto keys = thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0),
                                                    SegmentOf{problem.segment});
  return cub::DeviceScan::ExclusiveScanByKey(temporary.data, temporary.bytes, keys, in, out, fold,
                                             init, problem.elements, cuda::std::equal_to<>{},
                                             stream);
}

cudaError_t run_whole_scan(const Problem& problem, Temporary temporary, const void* in, void* out,
                           cudaStream_t stream);
cudaError_t run_scan_by_key(const Problem& problem, Temporary temporary, const void* in, void* out,
                            cudaStream_t stream);
cudaError_t run_segmented_scan(const Problem& problem, Temporary temporary, const void* in,
                               void* out, cudaStream_t stream);

}  // namespace chainfold::bench::cub_peer
