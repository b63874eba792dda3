// Memory and clocks that a tuning runs its candidates with, on a GPU or the CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/plan_space.hpp"
#include "chainfold/runtime/arguments.hpp"
#include "chainfold/runtime/executable.hpp"

namespace chainfold::runtime {

struct TuningTask;

/// Inputs of small whole numbers of both signs, so that sums of floats are exact and plans that
/// add in different orders must agree to the bit.
class TuningBench {
 public:
  /// A plan, compiled and loaded.
  struct Runnable {
    codegen::Compiled compiled;
    std::shared_ptr<const Executable> executable;
  };
  static Runnable compile(const TuningTask& task, const codegen::PlanChoice& choice);

  /// Allocates and fills inputs of `elements` elements. Throws DeviceError(out_of_memory).
  TuningBench(const TuningTask& task, std::int64_t elements);
  ~TuningBench();
  TuningBench(const TuningBench&) = delete;
  TuningBench& operator=(const TuningBench&) = delete;

  /// The outputs over the first `elements` elements, each output's values as bits.
  using Results = std::vector<std::vector<codegen::Bits>>;
  Results results(const Runnable& runnable, std::int64_t elements);
  /// How `actual` differs from `expected`, both over `elements` elements; empty if it does not.
  /// What rounds on the way (a variance, a sum of logarithms) may differ within the bounds of both.
  [[nodiscard]] std::string difference(const Results& expected, const Results& actual,
                                       std::int64_t elements) const;
  /// Milliseconds of one run over the first `elements` elements.
  double time(const Runnable& runnable, std::int64_t elements);

 private:
  class Memory;
  struct Device;
  void launch(const Runnable& runnable, std::int64_t elements);

  const TuningTask& task_;
  std::unique_ptr<Device> device_;  // none: the CPU
  std::vector<std::unique_ptr<Memory>> inputs_, outputs_;
  std::unique_ptr<Memory> scratch_;
};

}  // namespace chainfold::runtime
