// The tuner: which of the plans that are legal is the fastest on this device.
//
// Plans that an estimate calls hopeless are left out. Every other candidate is compiled, its
// results on a small input are held against the default plan's, and those that agree are timed in
// interleaved rounds on as much data as a real launch reads; those clearly behind leave early. The
// default stays unless another gains more than the noise; among equals the first in the order of
// plan_space wins. So the same measurements give the same choice. When the time for a tuning is
// over the best so far wins; the default is always measured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/runtime/cache/disk_cache.hpp"
#include "chainfold/runtime/kernel.hpp"

namespace chainfold::runtime {

class Executable;

/// What is tuned: one graph for one segment size on one device.
struct TuningTask {
  const codegen::Graph* graph = nullptr;
  Target target;
  int device = -1;  ///< < 0: the CPU
  codegen::PlanRequest request;
  std::int64_t elements =
      0;  ///< to time with; 0: as many as two gibibytes of inputs and outputs hold (a CPU: 256 MiB)
  double seconds = 2;  ///< that it may take, about; 0: as many as all plans take
  std::function<void(const TuningProgress&)> on_progress{};

  /// Whether even hopeless plans are measured.
  [[nodiscard]] bool all_plans() const { return seconds == 0; }
};

/// What records of the task are found by: a hash of whatever can change the choice.
CacheKey tuning_key(const TuningTask& task);

/// Elements that a tuning times with where time allows.
std::int64_t timed_elements(const TuningTask& task);

/// The record that an earlier tuning of an equal task left in this process or on disk.
std::optional<TuningResult> find_tuning(const TuningTask& task);

/// A tuning's result, and the chosen kernel where it was compiled for it.
struct Tuned {
  TuningResult result;
  std::shared_ptr<const Executable> executable{};
};

/// find_tuning's record, or that of a measurement made now and kept. An equal task that is being
/// measured by another thread is waited for. Nothing where a measurement is not possible: one
/// segment alone is larger than some gibibytes, or there is no memory. Throws what compiling and
/// running throw when not even the default plan works, and what the task's on_progress throws;
/// whoever waited measures then.
std::optional<Tuned> tune(const TuningTask& task);

}  // namespace chainfold::runtime
