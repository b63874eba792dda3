// Sums of segments by a key for each element.
#include "chainfold/bench/peers_cub_call.cuh"

namespace chainfold::bench::cub_peer {
namespace {

constexpr std::size_t kStep = 256;

/// Keys and how many segments there are come out as well, behind CUB's own temporary memory.
template <class T>
cudaError_t sum_by_key(const Problem& problem, Temporary temporary, const void* in, void* out,
                       cudaStream_t stream) {
  const std::size_t keys = (problem.segments * sizeof(std::int32_t) / kStep + 1) * kStep;
  auto* const begin = static_cast<char*>(temporary.data);
  auto* const unique = reinterpret_cast<std::int32_t*>(begin);
  auto* const runs = reinterpret_cast<std::int32_t*>(begin + keys);
  std::size_t own = begin == nullptr ? 0 : temporary.bytes - keys - kStep;
  const cudaError_t error = cub::DeviceReduce::ReduceByKey(
      begin == nullptr ? nullptr : begin + keys + kStep, own, problem.keys, unique,
      static_cast<const T*>(in), static_cast<T*>(out), runs, cuda::std::plus<T>{},
      static_cast<int>(problem.elements), stream);
  if (begin == nullptr) temporary.bytes = own + keys + kStep;
  return error;
}

}  // namespace

cudaError_t run_sum_by_key(const Problem& problem, Temporary temporary, const void* in, void* out,
                           cudaStream_t stream) {
  if (problem.elements > INT32_MAX) return cudaErrorNotSupported;
  switch (problem.in) {
    case DType::f32: return sum_by_key<float>(problem, temporary, in, out, stream);
    case DType::f64: return sum_by_key<double>(problem, temporary, in, out, stream);
    case DType::i32: return sum_by_key<std::int32_t>(problem, temporary, in, out, stream);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace chainfold::bench::cub_peer
