// The tuner: which of the plans that are legal is the fastest on this device.
//
// Every candidate is compiled, its results on a small input are held against the default plan's,
// and those that agree are timed in interleaved rounds on as much data as a real launch reads. The
// default stays unless another gains more than the noise; among equals the first in the order of
// plan_space wins. So the same measurements give the same choice.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chainfold/codegen/plan_space.hpp"
#include "chainfold/runtime/disk_cache.hpp"
#include "chainfold/runtime/kernel.hpp"

namespace chainfold::runtime {

/// What is tuned: one graph for one segment size on one device.
struct TuningTask {
  const codegen::Graph* graph = nullptr;
  Target target;
  int device = -1;  ///< < 0: the CPU
  codegen::PlanRequest request;
  std::int64_t elements =
      0;  ///< to time with; 0: as many as a gibibyte of inputs and outputs holds
  std::function<void(const TuningProgress&)> on_progress;
};

/// What records of the task are found by: a hash of whatever can change the choice.
CacheKey tuning_key(const TuningTask& task);

/// The record that an earlier tuning of an equal task left in this process or on disk.
std::optional<TuningResult> find_tuning(const TuningTask& task);

/// find_tuning's record, or that of a measurement made now and kept. An equal task that is being
/// measured by another thread is waited for. Nothing where a measurement is not possible: one
/// segment alone is larger than some gibibytes, or there is no memory. Throws what compiling and
/// running throw when not even the default plan works.
std::optional<TuningResult> tune(const TuningTask& task);

/// The index of the choice among candidates, each with its milliseconds: 0, the default, unless
/// another's median is lower by more than the noise of both; the first among those that no noise
/// tells from the fastest. Candidates without times (they failed) are never chosen.
std::size_t choose_fastest(const std::vector<std::vector<double>>& candidates);

}  // namespace chainfold::runtime
