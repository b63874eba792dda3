// Scans of everything.
#include "chainfold/bench/peers_cub_scan.cuh"

namespace chainfold::bench::cub_peer {
namespace {

template <class In, class Accumulator, class Out>
cudaError_t inclusive_sum(const Problem& problem, Temporary temporary, const void* in, void* out,
                          cudaStream_t stream) {
  constexpr bool kPlain = std::is_same_v<In, Accumulator> && std::is_same_v<In, Out>;
  return scan_whole<kPlain>(problem, temporary, static_cast<const In*>(in), static_cast<Out*>(out),
                            cuda::std::plus<Accumulator>{}, stream);
}

}  // namespace

cudaError_t run_whole_scan(const Problem& problem, Temporary temporary, const void* in, void* out,
                           cudaStream_t stream) {
  const auto types = [&](DType a, DType b) { return problem.in == a && problem.out == b; };
  if (problem.op == Op::inclusive_sum) {
    if (types(DType::f16, DType::f16))
      return inclusive_sum<__half, float, __half>(problem, temporary, in, out, stream);
    if (types(DType::f16, DType::f32))
      return inclusive_sum<__half, float, float>(problem, temporary, in, out, stream);
    if (types(DType::bf16, DType::bf16)) {
      return inclusive_sum<__nv_bfloat16, float, __nv_bfloat16>(problem, temporary, in, out,
                                                                stream);
    }
    if (types(DType::f32, DType::f32))
      return inclusive_sum<float, float, float>(problem, temporary, in, out, stream);
    if (types(DType::f64, DType::f64))
      return inclusive_sum<double, double, double>(problem, temporary, in, out, stream);
    if (types(DType::i32, DType::i32)) {
      return inclusive_sum<std::int32_t, std::int32_t, std::int32_t>(problem, temporary, in, out,
                                                                     stream);
    }
    if (types(DType::i8, DType::i32)) {
      return inclusive_sum<std::int8_t, std::int32_t, std::int32_t>(problem, temporary, in, out,
                                                                    stream);
    }
  } else if (types(DType::f16, DType::f16)) {
    const auto* const x = static_cast<const __half*>(in);
    auto* const y = static_cast<__half*>(out);
    if (problem.op == Op::exclusive_sum) {
      return cub::DeviceScan::ExclusiveScan(temporary.data, temporary.bytes, x, y,
                                            cuda::std::plus<float>{}, 0.0f, problem.elements,
                                            stream);
    }
    if (problem.op == Op::inclusive_max)
      return scan_whole<false>(problem, temporary, x, y, Larger{}, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace chainfold::bench::cub_peer
