// Largest elements, their places, and counts of elements above zero, of every type that the suite
// `folds` measures.
#include "chainfold/bench/peers_cub_call.cuh"

namespace chainfold::bench::cub_peer {
namespace {

/// The place of a pair of place and value, whose type depends on the form and the version.
struct StorePlace {
  std::int64_t* places;
  template <class Pair>
  __host__ __device__ void operator()(std::ptrdiff_t i, const Pair& pair) const {
    if constexpr (requires { pair.key; }) {
      places[i] = pair.key;
    } else {
      places[i] = pair.first;
    }
  }
};
struct Discard {
  template <class T>
  __host__ __device__ void operator()(std::ptrdiff_t, const T&) const {}
};

template <class T>
struct IsAboveZero {
  __host__ __device__ std::int32_t operator()(T x) const { return x > T(0) ? 1 : 0; }
};

template <class T>
cudaError_t largest(const Problem& problem, Form form, Temporary temporary, const T* in, T* out,
                    cudaStream_t stream) {
  if (form == Form::whole) {
    return cub::DeviceReduce::Max(temporary.data, temporary.bytes, in, out, problem.elements,
                                  stream);
  }
  const std::int64_t segments = problem.elements / problem.segment;
  if (form == Form::fixed) {
    if constexpr (kHasFixed) {
      return cub::DeviceSegmentedReduce::Max(temporary.data, temporary.bytes, in, out, segments,
                                             static_cast<int>(problem.segment), stream);
    }
    return cudaErrorNotSupported;
  }
  const auto begins = segment_begins(problem);
  return cub::DeviceSegmentedReduce::Max(temporary.data, temporary.bytes, in, out, segments, begins,
                                         begins + 1, stream);
}

template <class T>
cudaError_t place_of_largest(const Problem& problem, Form form, Temporary temporary, const T* in,
                             std::int64_t* out, cudaStream_t stream) {
  if (form == Form::whole) {
    return cub::DeviceReduce::ArgMax(temporary.data, temporary.bytes, in, StateOutput<Discard>{},
                                     out, problem.elements, stream);
  }
  const std::int64_t segments = problem.elements / problem.segment;
  const StateOutput<StorePlace> places{{out}};
  if (form == Form::fixed) {
    if constexpr (kHasFixed) {
      return cub::DeviceSegmentedReduce::ArgMax(temporary.data, temporary.bytes, in, places,
                                                segments, static_cast<int>(problem.segment),
                                                stream);
    }
    return cudaErrorNotSupported;
  }
  const auto begins = segment_begins(problem);
  return cub::DeviceSegmentedReduce::ArgMax(temporary.data, temporary.bytes, in, places, segments,
                                            begins, begins + 1, stream);
}

/// Counts are added in 32 bits, which no segment that is measured needs more of.
template <class T>
cudaError_t count_above(const Problem& problem, Form form, Temporary temporary, const T* in,
                        std::int64_t* out, cudaStream_t stream) {
  const auto ones = thrust::make_transform_iterator(in, IsAboveZero<T>{});
  if ((problem.segment == 0 ? problem.elements : problem.segment) >= (std::int64_t{1} << 31)) {
    return call_cub<false>(problem, form, temporary, ones, out, cuda::std::plus<std::int64_t>{},
                           std::int64_t{0}, stream);
  }
  return call_cub<false>(problem, form, temporary, ones, out, cuda::std::plus<std::int32_t>{},
                         std::int32_t{0}, stream);
}

template <class T>
cudaError_t run_of(const Problem& problem, Form form, Temporary temporary, const void* in,
                   void* out, cudaStream_t stream) {
  const auto* x = static_cast<const T*>(in);
  switch (problem.op) {
    case Op::max: return largest(problem, form, temporary, x, static_cast<T*>(out), stream);
    case Op::argmax:
      return place_of_largest(problem, form, temporary, x, static_cast<std::int64_t*>(out), stream);
    case Op::count_above:
      return count_above(problem, form, temporary, x, static_cast<std::int64_t*>(out), stream);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace

cudaError_t run_typed_folds(const Problem& problem, Form form, Temporary temporary,
                            const void* const* inputs, void* const* outputs, cudaStream_t stream) {
  const auto of = [&]<class T>(T) {
    return run_of<T>(problem, form, temporary, inputs[0], outputs[0], stream);
  };
  switch (problem.in) {
    case DType::f16: return of(__half{});
    case DType::bf16: return of(__nv_bfloat16{});
    case DType::f32: return of(float{});
    case DType::f64: return of(double{});
    case DType::i8: return of(std::int8_t{});
    case DType::i32: return of(std::int32_t{});
    default: return cudaErrorNotSupported;
  }
}

}  // namespace chainfold::bench::cub_peer
