// One reduction by CUB in any of its forms, shared by the files that instantiate it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/version.cuh>
#include <cuda/std/functional>
#include <iterator>

#include "chainfold/bench/peers_cub.hpp"

namespace chainfold::bench::cub_peer {

/// The fixed-size overloads came with this version.
inline constexpr bool kHasFixed = CUB_VERSION >= 300100;

struct Times {
  std::int64_t factor;
  __host__ __device__ std::int64_t operator()(std::int64_t i) const { return i * factor; }
};

/// Where segments of one size begin, computed.
inline auto segment_begins(const Problem& problem) {
  return thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0),
                                         Times{problem.segment});
}

/// An output of states: `store(i, state)` writes the i-th. Thrust's iterators that do so have a
/// value type that older versions take for the type of the initial value.
template <class Store>
struct StateOutput {
  struct Slot {
    Store store;
    std::ptrdiff_t at;
    template <class State>
    __host__ __device__ const Slot& operator=(const State& state) const {
      store(at, state);
      return *this;
    }
  };
  using iterator_category = std::random_access_iterator_tag;
  using value_type = void;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Slot;

  Store store;
  std::ptrdiff_t at = 0;
  __host__ __device__ Slot operator*() const { return {store, at}; }
  __host__ __device__ Slot operator[](std::ptrdiff_t i) const { return {store, at + i}; }
  __host__ __device__ StateOutput operator+(std::ptrdiff_t i) const { return {store, at + i}; }
  __host__ __device__ StateOutput& operator+=(std::ptrdiff_t i) {
    at += i;
    return *this;
  }
};

struct Temporary {
  void* data;
  std::size_t& bytes;
};

/// Sums where the result has the input's type; everything else goes through Reduce, with the
/// accumulator's type as that of the initial value.
template <bool PlainSum, class In, class Out, class Fold, class State>
cudaError_t call_cub(const Problem& problem, Form form, Temporary temporary, In in, Out out,
                     Fold fold, State init, cudaStream_t stream) {
  const std::int64_t n = problem.elements;
  if (form == Form::whole) {
    if constexpr (PlainSum) {
      return cub::DeviceReduce::Sum(temporary.data, temporary.bytes, in, out, n, stream);
    } else {
      return cub::DeviceReduce::Reduce(temporary.data, temporary.bytes, in, out, n, fold, init,
                                       stream);
    }
  }
  if (problem.offsets != nullptr) {
    if constexpr (PlainSum)
      return cub::DeviceSegmentedReduce::Sum(temporary.data, temporary.bytes, in, out,
                                             problem.segments, problem.offsets, problem.offsets + 1,
                                             stream);
    return cudaErrorNotSupported;
  }
  const std::int64_t segments = n / problem.segment;
  if (form == Form::fixed) {
    if constexpr (kHasFixed) {
      const int size = static_cast<int>(problem.segment);
      if constexpr (PlainSum) {
        return cub::DeviceSegmentedReduce::Sum(temporary.data, temporary.bytes, in, out, segments,
                                               size, stream);
      } else {
        return cub::DeviceSegmentedReduce::Reduce(temporary.data, temporary.bytes, in, out,
                                                  segments, size, fold, init, stream);
      }
    }
    return cudaErrorNotSupported;
  }
  const auto begins = segment_begins(problem);
  if constexpr (PlainSum) {
    return cub::DeviceSegmentedReduce::Sum(temporary.data, temporary.bytes, in, out, segments,
                                           begins, begins + 1, stream);
  } else {
    return cub::DeviceSegmentedReduce::Reduce(temporary.data, temporary.bytes, in, out, segments,
                                              begins, begins + 1, fold, init, stream);
  }
}

/// Sums of In, accumulated in Accumulator, stored as Out.
template <class In, class Accumulator, class Out>
cudaError_t sum(const Problem& problem, Form form, Temporary temporary, const void* in, void* out,
                cudaStream_t stream) {
  constexpr bool kPlain = std::is_same_v<In, Accumulator> && std::is_same_v<In, Out>;
  return call_cub<kPlain>(problem, form, temporary, static_cast<const In*>(in),
                          static_cast<Out*>(out), cuda::std::plus<Accumulator>{}, Accumulator{},
                          stream);
}

cudaError_t run_half(const Problem& problem, Form form, Temporary temporary,
                     const void* const* inputs, void* const* outputs, cudaStream_t stream);
cudaError_t run_half_folds(const Problem& problem, Form form, Temporary temporary,
                           const void* const* inputs, void* const* outputs, cudaStream_t stream);
cudaError_t run_typed_folds(const Problem& problem, Form form, Temporary temporary,
                            const void* const* inputs, void* const* outputs, cudaStream_t stream);
cudaError_t run_numbers(const Problem& problem, Form form, Temporary temporary,
                        const void* const* inputs, void* const* outputs, cudaStream_t stream);
cudaError_t run_sum_by_key(const Problem& problem, Temporary temporary, const void* in, void* out,
                           cudaStream_t stream);

}  // namespace chainfold::bench::cub_peer
