// Scans of segments of f16 by a key for each element.
#include "chainfold/bench/peers_cub_scan.cuh"

namespace chainfold::bench::cub_peer {

cudaError_t run_scan_by_key(const Problem& problem, Temporary temporary, const void* in, void* out,
                            cudaStream_t stream) {
  const auto* const x = static_cast<const __half*>(in);
  auto* const y = static_cast<__half*>(out);
  const cuda::std::plus<float> plus;
  switch (problem.op) {
    case Op::inclusive_sum: return scan_by_key(problem, temporary, x, y, plus, stream);
    case Op::exclusive_sum: return exclusive_by_key(problem, temporary, x, y, plus, 0.0f, stream);
    case Op::inclusive_max: return scan_by_key(problem, temporary, x, y, Larger{}, stream);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace chainfold::bench::cub_peer
