// A case in the memory of a GPU: where launches read, where they write, and what they left there.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "chainfold/bench/ceilings_gpu.hpp"
#include "chainfold/bench/reference.hpp"

namespace chainfold::bench {

/// Inputs for all cases that read the same sources, each filled with `elements` elements.
std::vector<runtime::DeviceBuffer> make_inputs(const Case& test, std::int64_t elements,
                                               const GpuKernels& kernels,
                                               const runtime::Context& context,
                                               runtime::StreamHandle stream);

/// Outputs of one case, and its view of inputs. With more than one set of memory, launches that
/// take the sets in turn find nothing in the second-level cache that an earlier one left: short
/// inputs are other slices of the same buffers, outputs are other buffers. There are two sets of
/// what is beyond the caches.
class GpuCase {
 public:
  /// The inputs must outlive this.
  GpuCase(const Case& test, const std::vector<runtime::DeviceBuffer>& inputs,
          std::int64_t most_sets, const runtime::Context& context, const runtime::Stream& stream);

  [[nodiscard]] std::int64_t sets() const noexcept { return sets_; }
  [[nodiscard]] void* input(std::size_t i, std::int64_t set) const;
  [[nodiscard]] void* output(std::size_t i, std::int64_t set) const;
  [[nodiscard]] const std::vector<Case::Input>& inputs() const noexcept { return names_; }
  /// What tells segments of other lengths; null where they are of one.
  [[nodiscard]] const void* told() const { return told_.data(); }
  /// The number of its segment for each element, where flags tell those; else null.
  [[nodiscard]] const std::int32_t* keys() const {
    return static_cast<const std::int32_t*>(keys_.data());
  }
  /// The arguments of a launch on a set, without scratch.
  [[nodiscard]] LaunchArgs args(std::int64_t set) const;
  /// Queues the input's copy to where a scan in place finds it; nothing for others.
  void restore(std::int64_t set) const;
  /// Runs on set 0, whose outputs hold NaN before, and checks what it leaves, see Checker.
  Deviation check(const Checker& checker, double bound_u, bool may_overflow,
                  const std::function<void()>& run) const;

 private:
  const Case& test_;
  std::vector<Case::Input> names_;
  const std::vector<runtime::DeviceBuffer>& inputs_;
  const runtime::Context& context_;
  const runtime::Stream& stream_;
  std::vector<runtime::DeviceBuffer> outputs_;
  runtime::DeviceBuffer told_, keys_;  // what tells segments of other lengths, to whom
  // Bytes from one set of an output, or of an input, to the next.
  std::vector<std::int64_t> strides_, slice_strides_;
  std::int64_t slices_ = 1, copies_ = 1, sets_ = 1;
};

}  // namespace chainfold::bench
