// Folds of f16 other than sums, written as CUB's users write them: iterators that transform what is
// read and written, and an operator on states.
#include "chainfold/bench/peers_cub_call.cuh"

namespace chainfold::bench::cub_peer {
namespace {

struct MinMax {
  __half least, most;
};
struct ToMinMax {
  __host__ __device__ MinMax operator()(__half x) const { return {x, x}; }
};
struct MergeMinMax {
  __host__ __device__ MinMax operator()(const MinMax& a, const MinMax& b) const {
    return {__hmin(a.least, b.least), __hmax(a.most, b.most)};
  }
};
struct StoreMinMax {
  __half *least, *most;
  __host__ __device__ void operator()(std::ptrdiff_t i, const MinMax& s) const {
    least[i] = s.least;
    most[i] = s.most;
  }
};

struct Moments {
  float sum, squares;
};
struct ToMoments {
  __host__ __device__ Moments operator()(__half x) const {
    const float value = __half2float(x);
    return {value, value * value};
  }
};
struct MergeMoments {
  __host__ __device__ Moments operator()(const Moments& a, const Moments& b) const {
    return {a.sum + b.sum, a.squares + b.squares};
  }
};
struct StoreMoments {
  __half *mean, *variance;
  float n;
  __host__ __device__ void operator()(std::ptrdiff_t i, const Moments& s) const {
    const float average = s.sum / n;
    mean[i] = __float2half(average);
    variance[i] = __float2half(s.squares / n - average * average);
  }
};

struct Product {
  __host__ __device__ float operator()(const thrust::tuple<__half, __half>& pair) const {
    return __half2float(thrust::get<0>(pair)) * __half2float(thrust::get<1>(pair));
  }
};
struct AboveZero {
  __host__ __device__ float operator()(__half x) const {
    const float value = __half2float(x);
    return value > 0 ? value : 0;
  }
};

}  // namespace

cudaError_t run_half_folds(const Problem& problem, Form form, Temporary temporary,
                           const void* const* inputs, void* const* outputs, cudaStream_t stream) {
  if (form == Form::whole || problem.in != DType::f16 || problem.out != DType::f16)
    return cudaErrorNotSupported;
  const auto* x = static_cast<const __half*>(inputs[0]);
  auto* out = static_cast<__half*>(outputs[0]);
  switch (problem.op) {
    case Op::min_max: {
      const MinMax none{__half(__half_raw{0x7c00}), __half(__half_raw{0xfc00})};
      return call_cub<false>(problem, form, temporary,
                             thrust::make_transform_iterator(x, ToMinMax{}),
                             StateOutput<StoreMinMax>{{out, static_cast<__half*>(outputs[1])}},
                             MergeMinMax{}, none, stream);
    }
    case Op::mean_var:
      return call_cub<false>(problem, form, temporary,
                             thrust::make_transform_iterator(x, ToMoments{}),
                             StateOutput<StoreMoments>{{out, static_cast<__half*>(outputs[1]),
                                                        static_cast<float>(problem.segment)}},
                             MergeMoments{}, Moments{0, 0}, stream);
    case Op::dot: {
      const auto pairs = thrust::make_zip_iterator(x, static_cast<const __half*>(inputs[1]));
      return call_cub<false>(problem, form, temporary,
                             thrust::make_transform_iterator(pairs, Product{}), out,
                             cuda::std::plus<float>{}, 0.0f, stream);
    }
    case Op::filtered_sum:
      return call_cub<false>(problem, form, temporary,
                             thrust::make_transform_iterator(x, AboveZero{}), out,
                             cuda::std::plus<float>{}, 0.0f, stream);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace chainfold::bench::cub_peer
