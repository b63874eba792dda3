// What is to be tuned.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/request.hpp"
#include "chainfold/codegen/target/target.hpp"
#include "chainfold/runtime/cache/disk_cache.hpp"
#include "chainfold/runtime/tuning/result.hpp"

namespace chainfold::runtime {

/// What is tuned: one graph for one segment size on one device.
struct TuningTask {
  const codegen::Graph* graph = nullptr;
  codegen::Target target;
  int device = -1;  ///< < 0: the CPU
  codegen::PlanRequest request;
  std::int64_t elements =
      0;  ///< to time with; 0: as many as two gibibytes of inputs and outputs hold (a CPU: 256 MiB)
  double seconds = 2;  ///< that it may take, about; 0: as many as all plans take
  std::function<void(const TuningProgress&)> on_progress{};

  /// Whether even hopeless plans are measured.
  [[nodiscard]] bool all_plans() const { return seconds == 0; }
};

/// The key of the task's record: a hash of all that can change the choice.
CacheKey tuning_key(const TuningTask& task);

/// Bytes that one segment, or one element of the whole input, reads and writes. At least one: a
/// fold of the whole input without inputs moves nothing, however many elements there are.
std::int64_t bytes_of_segment(const TuningTask& task);
/// Bytes of inputs and outputs to time with, where the task names no number of elements.
std::int64_t timed_bytes(const TuningTask& task);
/// Elements that a tuning times with where time allows.
std::int64_t timed_elements(const TuningTask& task);

/// "NVIDIA H200, 132 multiprocessors, driver 580.1", or the processor, its threads and LLVM.
std::string device_text(int device);

}  // namespace chainfold::runtime
