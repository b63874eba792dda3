// NVRTC, CUDA's run-time compiler, opened on demand: from the text of kernels to machine code for
// one architecture. Needs no GPU and no driver. The sources include nothing, which keeps compiles
// short (docs/decisions/0005-cache.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/runtime/host/library_search.hpp"

namespace chainfold::runtime {

/// What to compile for. Floating-point contraction and flushing to zero are always off, division
/// and square root always correctly rounded.
struct NvrtcOptions {
  int arch = 0;                  ///< 90 for sm_90
  std::string arch_suffix = {};  ///< "", "a" or "f"
  bool resource_report = false;  ///< fill Cubin::resources
  /// Make PTX for compute_XX instead of machine code, for a GPU that NVRTC does not know yet. The
  /// GPU's driver finishes the compile when it loads the image. Gives no resources.
  bool ptx = false;
};

/// What one kernel takes, as ptxas reports it. Bytes, but for `registers` (32 bits each, a thread).
struct KernelResources {
  std::string name;
  int registers = 0;
  int spill_store = 0;  ///< a thread
  int spill_load = 0;   ///< a thread
  int stack = 0;        ///< a thread
  int shared = 0;       ///< static, a block
};

/// A compiled image, ready for CudaModule.
struct Cubin {
  std::vector<std::byte> image;
  std::string
      log;  ///< the compiler's words: warnings and reports; holds times, so never compare it
  std::vector<KernelResources> resources;  ///< one a kernel, if asked for
  double compile_ms = 0;                   ///< within the compiler, without waiting for a turn
};

/// Compiles kernels to machine code. At most kConcurrentCompiles run at once, the others wait.
/// Thread-safe. Throws
///
///     JitError                       the compiler refuses the source
///     UserError (unsupported)        this NVRTC does not know the architecture
///     DeviceError (missing_library)  NVRTC or its companion library is missing
///     DeviceError (out_of_memory)    the compiler ran out of host memory
///
/// The `line` of a JitError is the first offending line with its number, and the place below it. It
/// is a line of PTX if only the assembler objected.
Cubin compile_cubin(const std::string& source, const NvrtcOptions& options);

/// The options on which the compiled code depends, in the order in which the compiler gets them.
std::vector<std::string> nvrtc_options(const NvrtcOptions& options);

/// A compile holds much memory (docs/tuned-values.md), so the number of compiles is capped.
inline constexpr int kConcurrentCompiles = 4;

/// Whether NVRTC 12.0 or later was found; the search runs once a process.
bool nvrtc_available() noexcept;
/// Its version, 1000 * major + 10 * minor. Throws DeviceError(missing_library).
int nvrtc_version();
/// The file it was loaded from, as given to the loader. Throws DeviceError(missing_library).
const std::string& nvrtc_file();
/// The file it was loaded from, as the loader found it; empty if the loader does not say. Throws
/// DeviceError(missing_library).
const std::string& nvrtc_path();
/// The architectures it compiles for, ascending: 75, 80, ... Throws DeviceError(missing_library).
const std::vector<int>& nvrtc_architectures();

}  // namespace chainfold::runtime
