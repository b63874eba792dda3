// A ready listener for Options::on_tuning.
#pragma once

#include "chainfold/runtime/tuning/result.hpp"

namespace chainfold {

/// Shows how tunings come along on standard error:
///   cf::compile(frames, {.tuning = cf::Tuning::measure, .on_tuning = cf::progress_to_stderr})
/// On a terminal a bar, which goes away with the end of the tuning; elsewhere (a file, the log of a
/// build) a line at most every three seconds, however many tunings there are. Thread-safe; never
/// throws.
void progress_to_stderr(const TuningProgress& progress);

}  // namespace chainfold
