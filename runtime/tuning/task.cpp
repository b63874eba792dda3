#include "chainfold/runtime/tuning/task.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/runtime/device/device.hpp"
#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/runtime/jit/machine_code.hpp"

namespace chainfold::runtime {

namespace {

/// The method of measuring: records of another are not found. 2: launches in a row, changing
/// memory; 3: a host's memory 16 bytes behind a page.
constexpr int kMethod = 3;

/// Bytes of inputs and outputs to time with. Of fewer on a GPU, results may stay in its
/// second-level cache, which changes the order of plans (docs/decisions/0058-tuner.md). A CPU reads
/// an eighth in the time that a tuning may take.
constexpr std::int64_t kTimedBytes = std::int64_t{2} << 30;
constexpr std::int64_t kTimedBytesOfCpu = kTimedBytes / 8;
}  // namespace

std::int64_t bytes_of_segment(const TuningTask& task) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const std::int64_t segment = std::max<std::int64_t>(1, task.request.segment);
  std::int64_t an_element = 0, a_segment = 0;
  for (const auto& input : task.graph->inputs) an_element += size_of(input.type);
  for (std::size_t o = 0; o < task.graph->outputs.size(); ++o) {
    const std::int64_t size = size_of(task.graph->node(task.graph->outputs[o]).type);
    if (per_element(*task.graph, o)) {
      an_element += size;
    } else if (task.request.segment > 0) {
      a_segment += size;
    }
  }
  if (an_element > kMost / segment) return kMost;
  return std::max<std::int64_t>(1, segment * an_element + a_segment);
}

std::int64_t timed_bytes(const TuningTask& task) {
  return task.device < 0 ? kTimedBytesOfCpu : kTimedBytes;
}

std::string device_text(int device) {
  if (device >= 0) {
    const DeviceInfo& info = device_info(device);
    return fmt::format("{}, {} multiprocessors, driver {}", info.name, info.sms,
                       info.driver_version);
  }
  const chainfold_cpu_plugin& plugin = cpu_plugin();
  return fmt::format("{}, LLVM {}", cpu_text(plugin), plugin.llvm_version);
}

CacheKey tuning_key(const TuningTask& task) {
  // kernel_key adds the versions of this library and of the compiler.
  return kernel_key(
      fmt::format("method {}\n{}\n{} {} {}\nsegment {} accuracy {} nonfinite {} determinism {} "
                  "alignment {} mma {}{} most {}\nelements {}\n",
                  kMethod, print(*task.graph), device_text(task.device), task.target.arch,
                  task.target.processors, task.request.segment,
                  static_cast<int>(task.request.accuracy), static_cast<int>(task.request.nonfinite),
                  static_cast<int>(task.request.determinism), task.request.base_alignment,
                  task.request.allow_mma, task.request.strided ? " strided" : "",
                  task.request.size_limit, timed_elements(task)),
      task.target);
}

std::int64_t timed_elements(const TuningTask& task) {
  const std::int64_t segment = std::max<std::int64_t>(1, task.request.segment);
  const std::int64_t segments =
      task.elements > 0 ? task.elements / segment : timed_bytes(task) / bytes_of_segment(task);
  const std::int64_t elements = std::max<std::int64_t>(1, segments) * segment;
  const std::int64_t most = task.request.size_limit;
  return most > 0 ? std::min(elements, std::max<std::int64_t>(1, most / segment) * segment)
                  : elements;
}

}  // namespace chainfold::runtime
