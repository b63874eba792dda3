// Code for the host processor: the CPU plugin, opened on demand, and the modules it compiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chainfold/runtime/host/library_search.hpp"
#include "chainfold/runtime/jit/cpu_plugin_abi.h"

namespace chainfold::runtime {

/// The CPU plugin: opened on the first call, never closed. Thread-safe. A failed search is repeated
/// by the next call.
/// \throws DeviceError (missing_library) with every place looked at and what the loader said there;
///         UserError (invalid_argument) for a CHAINFOLD_VECTOR_BITS that is no width of vectors.
const chainfold_cpu_plugin& cpu_plugin();

/// Whether cpu_plugin() succeeds.
bool cpu_plugin_available() noexcept;

/// Where cpu_plugin() looks, in order: the file named by CHAINFOLD_CPU_PLUGIN alone if that is set.
/// Else beside libchainfold, in chainfold/ and ../lib/chainfold/ from there, and last on the
/// loader's path.
std::vector<SearchPlace> cpu_plugin_places();

/// Opens the first file of `places` that is a CPU plugin of this interface.
/// \throws DeviceError (missing_library) and UserError, as cpu_plugin() does.
const chainfold_cpu_plugin& open_cpu_plugin(const std::vector<SearchPlace>& places);

/// A CPU in words: "CPU znver4, 1 thread, 512-bit vectors".
std::string cpu_text(const chainfold_cpu_plugin& plugin);

/// Which plugin this process uses: its version of LLVM, its build, the processor and its every
/// feature. Its code depends on nothing else but the source. Throws as cpu_plugin() does.
const std::string& cpu_plugin_identity();

/// An object file for this host.
struct CpuObject {
  std::string bytes;
  double compile_ms = 0;  ///< wall-clock, within the plugin
};

/// What a compilation spends. Baseline code takes a fraction of the time
/// (docs/decisions/0019-first-results.md), and computes the same, bit for bit, but for which NaN.
enum class Effort : std::uint8_t { baseline, optimised };

/// Compiles textual LLVM IR for this host.
/// \throws JitError with the refused line, LLVM's log and the source; DeviceError (missing_library)
///         without the plugin.
CpuObject compile_cpu_object(const std::string& ir, Effort effort = Effort::optimised);
/// The same, optimised, beside other compilations. Nothing where another thread makes `given_up`
/// other than 0, atomically, before it is done.
std::optional<CpuObject> compile_cpu_object_beside(const std::string& ir,
                                                   const std::int32_t& given_up);

/// Runs the function that `launch` points to over [0, blocks) on all cores, and returns when all
/// blocks have run. `args` has one 8-byte slot a kernel parameter. A range has at least `grain`
/// blocks. With a grain of 0 blocks share the work out among themselves (the plugin's
/// parallel_for). While the launch runs, another thread may put other code of the same function
/// there, atomically. Nothing happens for blocks <= 0.
/// \throws DeviceError (out_of_memory) when the scheduler failed; outputs are then undefined.
void run_on_cpu(const chainfold_cpu_launch* launch, std::int64_t blocks, std::int64_t grain,
                const std::uint64_t* args);

/// A loaded module; its functions are valid while it lives. Immutable and thread-safe.
class CpuModule {
 public:
  /// Links what compile_cpu_object made, in this or another process, and looks `symbols` up in it.
  /// Equal symbols of two modules never meet.
  /// \throws JitError with the linker's log; DeviceError (missing_library) without the plugin.
  static std::shared_ptr<const CpuModule> load(const std::string& object,
                                               const std::vector<std::string>& symbols);
  /// compile_cpu_object and load, with the source in load's error.
  static std::shared_ptr<const CpuModule> compile(const std::string& ir,
                                                  const std::vector<std::string>& symbols);
  ~CpuModule();
  CpuModule(const CpuModule&) = delete;
  CpuModule& operator=(const CpuModule&) = delete;

  /// The i-th of the symbols given to compile().
  /// \throws InternalError when there is none.
  [[nodiscard]] chainfold_cpu_launch function(std::size_t i) const;
  /// Bytes of stack of the function whose frame has most.
  [[nodiscard]] std::uint64_t stack_bytes() const noexcept { return stack_bytes_; }

  /// run_on_cpu() of function(i).
  void run(std::size_t i, std::int64_t blocks, std::int64_t grain, const std::uint64_t* args) const;

  /// Wall-clock milliseconds that compile() took in the plugin; 0 for a module that was only
  /// loaded.
  [[nodiscard]] double compile_ms() const noexcept { return compile_ms_; }

 private:
  CpuModule(const chainfold_cpu_plugin& plugin, std::size_t symbols)
      : plugin_(plugin), functions_(symbols) {}

  static std::shared_ptr<CpuModule> link(const std::string& object,
                                         const std::vector<std::string>& symbols,
                                         const std::string& source);

  const chainfold_cpu_plugin& plugin_;
  chainfold_cpu_module* module_ = nullptr;
  std::vector<chainfold_cpu_launch> functions_;
  std::uint64_t stack_bytes_ = 0;
  double compile_ms_ = 0;
};

}  // namespace chainfold::runtime
