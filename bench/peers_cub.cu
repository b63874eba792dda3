#include "chainfold/bench/peers_cub_scan.cuh"

namespace chainfold::bench::cub_peer {
namespace {

bool has_scan(const Problem& problem, Form form) {
  const bool half = problem.in == DType::f16 && problem.out == DType::f16;
  if (form == Form::whole) return half || problem.op == Op::inclusive_sum;
  return half && (form == Form::keys || (form == Form::offsets && kHasSegmentedScan));
}

std::string scan_call(const Problem& problem, Form form) {
  const bool plain = problem.op == Op::inclusive_sum && problem.in == problem.out &&
                     size_of(problem.in) > 2 && form == Form::whole;
  std::string text = form == Form::offsets ? "DeviceSegmentedScan::" : "DeviceScan::";
  text += problem.op == Op::exclusive_sum ? "Exclusive" : "Inclusive";
  if (form == Form::offsets) text += "Segmented";
  text += plain ? "Sum" : "Scan";
  if (form == Form::keys) text += "ByKey";
  return text;
}

cudaError_t run_scan(const Problem& problem, Form form, Temporary temporary, const void* in,
                     void* out, cudaStream_t stream) {
  switch (form) {
    case Form::whole: return run_whole_scan(problem, temporary, in, out, stream);
    case Form::keys: return run_scan_by_key(problem, temporary, in, out, stream);
    default: return run_segmented_scan(problem, temporary, in, out, stream);
  }
}

/// What run_typed_folds computes, of every type that is measured.
bool is_typed(Op op) { return op == Op::max || op == Op::argmax || op == Op::count_above; }

}  // namespace

std::string version() {
  return std::to_string(CUB_VERSION / 100000) + '.' + std::to_string(CUB_VERSION / 100 % 1000) +
         '.' + std::to_string(CUB_VERSION % 100);
}

bool has(const Problem& problem, Form form) {
  const bool wide =
      problem.in == DType::f32 || problem.in == DType::f64 || problem.in == DType::i32;
  if (problem.keys != nullptr)
    return form == Form::keys && problem.op == Op::sum && problem.in == problem.out && wide;
  if (problem.offsets != nullptr) {
    if (form != Form::offsets || problem.in != problem.out) return false;
    if (problem.op == Op::sum) return wide;
    return problem.op == Op::inclusive_sum && problem.in == DType::f32 && kHasSegmentedScan;
  }
  if ((form == Form::whole) != (problem.segment == 0)) return false;
  if (is_scan(problem.op)) return has_scan(problem, form);
  if (form == Form::keys || (form == Form::fixed && !kHasFixed)) return false;
  if (is_typed(problem.op)) return is_measured(problem.in);
  switch (problem.op) {
    case Op::sum: return true;
    case Op::mean_var:
    case Op::dot:
    case Op::min_max:
    case Op::filtered_sum:
      return problem.in == DType::f16 && problem.out == DType::f16 && form != Form::whole;
    default: return false;
  }
}

std::string call(const Problem& problem, Form form) {
  const bool plain = problem.op == Op::sum && problem.in == problem.out && size_of(problem.in) > 2;
  std::string text = form == Form::whole ? "DeviceReduce::" : "DeviceSegmentedReduce::";
  text += plain                      ? "Sum"
          : problem.op == Op::max    ? "Max"
          : problem.op == Op::argmax ? "ArgMax"
                                     : "Reduce";
  if (is_scan(problem.op)) text = scan_call(problem, form);
  if (problem.keys != nullptr) text = "DeviceReduce::ReduceByKey";
  if (form == Form::fixed) text += ", fixed size";
  if (form == Form::offsets) text += ", offsets";
  if (is_float(problem.in) && size_of(problem.in) == 2 && !is_typed(problem.op) &&
      problem.op != Op::min_max && problem.op != Op::inclusive_max)
    text += ", accumulating in f32";
  return text + ", CUB " + version();
}

std::string run(const Problem& problem, Form form, void* temporary, std::size_t& temporary_bytes,
                const void* const* inputs, void* const* outputs, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const Temporary memory{temporary, temporary_bytes};
  cudaError_t error = cudaErrorNotSupported;
  if (problem.keys != nullptr) {
    error = run_sum_by_key(problem, memory, inputs[0], outputs[0], queue);
  } else if (is_scan(problem.op)) {
    error = run_scan(problem, form, memory, inputs[0], outputs[0], queue);
  } else if (is_typed(problem.op)) {
    error = run_typed_folds(problem, form, memory, inputs, outputs, queue);
  } else if (problem.op != Op::sum) {
    error = run_half_folds(problem, form, memory, inputs, outputs, queue);
  } else if (problem.in == DType::f16 || problem.in == DType::bf16) {
    error = run_half(problem, form, memory, inputs, outputs, queue);
  } else {
    error = run_numbers(problem, form, memory, inputs, outputs, queue);
  }
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // the next call must not find it
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

}  // namespace chainfold::bench::cub_peer
