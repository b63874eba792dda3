// Sums of f32, f64, i32 and, as i32, of i8.
#include "chainfold/bench/peers_cub_call.cuh"

namespace chainfold::bench::cub_peer {

cudaError_t run_numbers(const Problem& problem, Form form, Temporary temporary,
                        const void* const* inputs, void* const* outputs, cudaStream_t stream) {
  const void* in = inputs[0];
  void* out = outputs[0];
  const auto types = [&](DType a, DType b) { return problem.in == a && problem.out == b; };
  if (types(DType::f32, DType::f32))
    return sum<float, float, float>(problem, form, temporary, in, out, stream);
  if (types(DType::f64, DType::f64))
    return sum<double, double, double>(problem, form, temporary, in, out, stream);
  if (types(DType::i32, DType::i32))
    return sum<std::int32_t, std::int32_t, std::int32_t>(problem, form, temporary, in, out, stream);
  if (types(DType::i8, DType::i32))
    return sum<std::int8_t, std::int32_t, std::int32_t>(problem, form, temporary, in, out, stream);
  return cudaErrorNotSupported;
}

}  // namespace chainfold::bench::cub_peer
