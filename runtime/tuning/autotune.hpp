// The tuner: which of the plans that are legal is the fastest on this device.
//
// Plans that an estimate calls hopeless are left out. Every other candidate is compiled, and its
// results on a small input are compared with the default plan's. Candidates that agree are timed in
// interleaved rounds, on as much data as a real launch reads. Those clearly behind leave early. The
// default stays unless another gains more than the noise. Among equals the first in the order of
// plan_space wins. So the same measurements give the same choice. When the time for a tuning is
// over, the best so far wins; the default is always measured.
#pragma once

#include <memory>
#include <optional>

#include "chainfold/runtime/tuning/result.hpp"
#include "chainfold/runtime/tuning/task.hpp"

namespace chainfold::runtime {

class Executable;

/// The record that an earlier tuning of an equal task left in this process or on disk.
std::optional<TuningResult> find_tuning(const TuningTask& task);

/// A tuning's result, and the chosen kernel where it was compiled for it.
struct Tuned {
  TuningResult result;
  std::shared_ptr<const Executable> executable{};
};

/// The record of find_tuning, or that of a measurement made now and kept. An equal task that is
/// being measured by another thread is waited for. Nothing where a measurement is not possible:
/// there is no memory, or one segment alone moves more than 4 GiB (on a CPU 1 GiB). Throws what
/// compiling and running throw when not even the default plan works, and what the task's
/// on_progress throws. Threads that waited measure then.
std::optional<Tuned> tune(const TuningTask& task);

}  // namespace chainfold::runtime
