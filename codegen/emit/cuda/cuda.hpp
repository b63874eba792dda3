// From a Program to CUDA text: one extern "C" kernel a launch, one statement an instruction.
//
// The text needs no header (NVRTC's built-ins only). It is meant for --fmad=false --std=c++17
// without fast math: contraction or flushing to zero would break base/ops.hpp. Every kernel takes
// the pointers of all the program's buffers, then all its parameters, each in an 8-byte slot whose
// low bytes hold the value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

struct CudaSource {
  std::string prelude;               ///< the device helpers that the kernels call
  std::string kernels_text;          ///< the kernels alone: what goldens print
  std::string text;                  ///< prelude and kernels: what NVRTC compiles
  std::vector<std::string> kernels;  ///< the kernels' symbols, in launch order
};

/// The text of `program` for architecture `arch` (75, 80, ...). Pure. `program` must have passed
/// verify(); throws InternalError if it uses a matrix instruction that `arch` lacks.
CudaSource emit_cuda(const Program& program, int arch);

/// The helpers of codegen/emit/cuda/prelude/*.cuh that `text` calls, directly or through other
/// helpers, in the order of the files.
std::string cuda_prelude_for(std::string_view text);

}  // namespace chainfold::codegen
