// A program's code for the processor in two tiers. Baseline code is there soon; optimised code
// takes its place while it runs. Both compute the same, bit for bit, but for which NaN.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "chainfold/runtime/host/background.hpp"
#include "chainfold/runtime/jit/llvm.hpp"

namespace chainfold::runtime {

/// Which tiers kernels have that may have both (Options::tiered).
enum class Tiering : std::uint8_t { both, optimised, baseline };
/// As the environment's CHAINFOLD_TIERED says: "on" or nothing, "off" (optimised code at once),
/// "baseline" (nothing is optimised in the background). Throws UserError (invalid_argument) for
/// other values.
Tiering tiering_of_process();

/// Thread-safe.
class CpuTiers final : public BackgroundWork {
 public:
  struct Optimised {
    std::shared_ptr<const CpuModule> module;
    double compile_ms = 0;
  };
  /// Makes the optimised code. `given_up`, if it is not null, points to a word that becomes other
  /// than 0 where the code is not wanted any more (compile_cpu_object_beside). Then `module` may be
  /// null. Throws what compilers do.
  using Optimise = std::function<Optimised(const std::int32_t* given_up)>;

  /// `count` functions of a module that is optimised.
  CpuTiers(std::shared_ptr<const CpuModule> optimised, std::size_t count);
  /// Of baseline code, until `optimise` has been called.
  CpuTiers(std::shared_ptr<const CpuModule> baseline, std::size_t count, Optimise optimise);

  /// run_on_cpu() of function i. Waits for the optimised code where a thread's stack is too small
  /// for the baseline's.
  void launch(std::size_t i, std::int64_t blocks, std::int64_t grain, const std::uint64_t* args);
  /// Returns when the code is optimised. Throws what compilers do; the code stays as it is then.
  void optimise();
  [[nodiscard]] bool optimised() const { return optimised_.load(std::memory_order_acquire); }
  /// Milliseconds in the compiler for that; 0 where it came from elsewhere.
  [[nodiscard]] double optimise_ms() const { return optimise_ms_.load(); }

  void run() noexcept override;
  void give_up() noexcept override;

 private:
  void make(const std::int32_t* given_up);  // with mutex_

  std::shared_ptr<const CpuModule> first_, second_;  // of functions_: launches may run either
  std::vector<chainfold_cpu_launch> functions_;      // read and written atomically
  std::mutex mutex_;                                 // of making the second
  Optimise make_optimised_;
  std::int32_t given_up_ = 0;  // written and read atomically
  std::atomic<bool> optimised_;
  std::atomic<double> optimise_ms_ = 0;
};

}  // namespace chainfold::runtime
