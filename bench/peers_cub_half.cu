// Sums of 16-bit floats, accumulated in f32.
#include "chainfold/bench/peers_cub_call.cuh"

namespace chainfold::bench::cub_peer {

cudaError_t run_half(const Problem& problem, Form form, Temporary temporary,
                     const void* const* inputs, void* const* outputs, cudaStream_t stream) {
  const auto types = [&](DType in, DType out) { return problem.in == in && problem.out == out; };
  if (types(DType::f16, DType::f16))
    return sum<__half, float, __half>(problem, form, temporary, inputs[0], outputs[0], stream);
  if (types(DType::bf16, DType::bf16)) {
    return sum<__nv_bfloat16, float, __nv_bfloat16>(problem, form, temporary, inputs[0], outputs[0],
                                                    stream);
  }
  if (types(DType::f16, DType::f32) && form == Form::whole)
    return sum<__half, float, float>(problem, form, temporary, inputs[0], outputs[0], stream);
  return cudaErrorNotSupported;
}

}  // namespace chainfold::bench::cub_peer
