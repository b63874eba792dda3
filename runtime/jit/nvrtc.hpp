// NVRTC, CUDA's run-time compiler, opened on demand: from the text of kernels to machine code for
// one architecture. Needs no GPU and no driver. The sources include nothing, which keeps a compile
// at some tens of milliseconds.
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
  /// Make PTX for compute_XX instead of machine code, for a GPU that NVRTC does not know yet: its
  /// driver finishes the compile when it loads the image. Gives no resources.
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
/// Throws JitError if the compiler refuses the source (its `line` is the first offending line with
/// its number, and the place below it; a line of PTX if only the assembler objected), UserError
/// (unsupported) for an architecture that this NVRTC does not know, and DeviceError
/// (missing_library) where NVRTC or its companion library is missing. Thread-safe.
Cubin compile_cubin(const std::string& source, const NvrtcOptions& options);

/// The options that the compiler gets, in order.
std::vector<std::string> nvrtc_options(const NvrtcOptions& options);

/// Each compile holds some hundred megabytes, so their number is capped.
inline constexpr int kConcurrentCompiles = 4;

/// Whether NVRTC 12.0 or later was found; the search runs once a process.
bool nvrtc_available() noexcept;
/// Its version, 1000 * major + 10 * minor. Throws DeviceError(missing_library).
int nvrtc_version();
/// The file it was loaded from, as given to the loader. Throws DeviceError(missing_library).
const std::string& nvrtc_file();
/// The file it was loaded from, as the loader found it; empty if the loader does not tell. Throws
/// DeviceError(missing_library).
const std::string& nvrtc_path();
/// The architectures it compiles for, ascending: 75, 80, ... Throws DeviceError(missing_library).
const std::vector<int>& nvrtc_architectures();

}  // namespace chainfold::runtime
