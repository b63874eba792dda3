// Runs kernels on the first GPU, through run() and through launch() on device memory, and holds
// them against the reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/device/memory.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/ragged.hpp"
#include "chainfold/tests/support/reference.hpp"

namespace chainfold::test {

/// Why no kernel can run on a GPU here; empty if it can.
std::string why_no_gpu();

/// Device memory with an array in it: poison before and behind, `shift` bytes off a multiple of
/// 256.
class DeviceArray {
 public:
  static constexpr int kGuard = 256;  ///< bytes of poison on either side
  DeviceArray(const runtime::Context& context, std::size_t bytes, int shift = 0);
  [[nodiscard]] void* data() const {
    return static_cast<std::byte*>(buffer_.data()) + kGuard + shift_;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  void upload(const void* source) const;
  void download(void* destination) const;
  /// Every byte, guards included, becomes poison.
  void poison() const;
  /// What of the poison around (and, with `inside`, in) the array was overwritten; empty if
  /// nothing.
  [[nodiscard]] std::string damage(bool inside = false) const;

 private:
  const runtime::Context& context_;
  std::size_t bytes_;
  int shift_;
  runtime::DeviceBuffer buffer_;
};

/// The bindings of columns (host memory) and parameters, in the graph's order. The graph and the
/// columns must outlive them. `strides`: of the inputs, or none.
Bindings host_bindings(const codegen::Graph& graph, const std::vector<Column>& inputs,
                       const std::vector<Bits>& params,
                       const std::vector<std::int64_t>& strides = {});

/// Poisoned columns for the outputs of so many values, one a segment, and elements.
std::vector<Column> poisoned_outputs(const codegen::Graph& graph, std::int64_t values,
                                     std::int64_t elements);

/// A kernel's arguments in device memory, each surrounded by poison.
class DeviceLaunch {
 public:
  /// `shift`: elements by which every input is off a multiple of 256 bytes; `output_shift`: and
  /// every output with a value a segment. `bounds`: the offsets that tell the segments.
  DeviceLaunch(const Kernel& kernel, const codegen::Graph& graph, const std::vector<Column>& inputs,
               const std::vector<Bits>& params, std::int64_t elements, std::int64_t outputs,
               int shift = 0, const std::vector<std::int64_t>& strides = {}, int output_shift = 1,
               const std::vector<Column>& bounds = {});
  [[nodiscard]] LaunchArgs& args() { return args_; }
  [[nodiscard]] const std::vector<DeviceArray>& outputs() const { return outputs_; }
  void poison_outputs() const;
  /// What the launch has told, where offsets tell the segments.
  [[nodiscard]] LaunchStatus status() const;
  /// Waits for the stream of args(), then gives the outputs. Damage around any array is reported
  /// through `problems`.
  std::vector<Column> results(std::string& problems) const;

 private:
  const runtime::Context& context_;
  const codegen::Graph& graph_;
  std::int64_t values_;
  std::vector<DeviceArray> inputs_, outputs_;
  std::vector<DeviceArray> scratch_, status_;
  LaunchArgs args_;
};

/// One computation on one set of data.
struct DeviceCase {
  std::int64_t segment = 0;  ///< 0: the whole
  std::int64_t elements = 0;
  Fill fill = Fill::uniform;
  std::uint64_t seed = 1;
  int shift = 0;               ///< elements off an aligned address, for launch()
  int output_shift = 1;        ///< the same of outputs with a value a segment
  bool tail = false;           ///< the last segment may be shorter
  bool through_run = true;     ///< run() on host memory
  bool through_launch = true;  ///< launch() on device memory, on a stream of its own
  std::string plan{};          ///< a choice's text instead of the rules
  Accuracy accuracy = Accuracy::accurate;
  NonFinite nonfinite = NonFinite::ieee;
  bool columns = false;              ///< `segment` is their number
  std::vector<std::int64_t> gaps{};  ///< elements between rows, for the inputs in turn
};
std::string words(const DeviceCase& what);

/// What went wrong, empty if nothing did; the plan it ran with in `plan`, if asked for.
Verdict check_on_device(const TestProgram& program, const DeviceCase& what);
Verdict check_on_device(const Computation& computation, const std::vector<Bits>& params,
                        const std::vector<Column>& inputs, const DeviceCase& what,
                        bool transcendental = false);

/// The same of segments that offsets tell: by run() and by launch(), what that tells included.
/// `shift` and `accuracy` as in DeviceCase, `plan` its choice's text or none.
Verdict check_ragged_on_device(const TestProgram& program, const Ragged& ragged, Fill fill,
                               std::uint64_t seed, int shift = 0, const std::string& plan = {},
                               Accuracy accuracy = Accuracy::accurate);

/// The plan that launch() of so many elements on memory of this alignment goes by.
codegen::Plan plan_on_device(const Kernel& kernel, const codegen::Graph& graph,
                             std::int64_t segment, std::int64_t elements, int alignment = 16,
                             bool strided = false);

}  // namespace chainfold::test
