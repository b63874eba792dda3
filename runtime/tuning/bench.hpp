// Memory and clocks that a tuning runs its candidates with, on a GPU or the CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/runtime/launch/variant.hpp"
#include "chainfold/runtime/tuning/task.hpp"

namespace chainfold::runtime {

/// Inputs are small whole numbers of both signs. So sums of floats are exact, and plans that add in
/// different orders must agree to the bit.
class TuningBench {
 public:
  /// Allocates and fills inputs of `elements` elements. Throws DeviceError(out_of_memory).
  TuningBench(const TuningTask& task, std::int64_t elements);
  ~TuningBench();
  TuningBench(const TuningBench&) = delete;
  TuningBench& operator=(const TuningBench&) = delete;

  /// The outputs over the first `elements` elements, each output's values as bits.
  using Results = std::vector<std::vector<codegen::Bits>>;
  Results results(const KernelVariant& variant, std::int64_t elements);
  /// How `actual` differs from `expected`, both over `elements` elements; empty if it does not.
  /// Results that round on the way (a variance, a sum of logarithms) may differ within both bounds.
  [[nodiscard]] std::string difference(const Results& expected, const Results& actual,
                                       std::int64_t elements) const;
  /// Milliseconds of a launch over the first `elements` elements: the mean of launches() in a row.
  double time(const KernelVariant& variant, std::int64_t elements);
  [[nodiscard]] int launches() const;

 private:
  class Memory;
  struct Device;
  void launch(const KernelVariant& variant, std::int64_t elements, std::int64_t turn);

  const TuningTask& task_;
  std::unique_ptr<Device> device_;  // none: the CPU
  std::vector<std::unique_ptr<Memory>> inputs_, outputs_;
  std::unique_ptr<Memory> scratch_;
  std::vector<std::int64_t> strides_;  // bytes of an output's turn
  std::int64_t turns_ = 1, turn_ = 0;
};

}  // namespace chainfold::runtime
