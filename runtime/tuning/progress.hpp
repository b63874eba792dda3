// A ready listener for Options::on_tuning.
#pragma once

#include "chainfold/runtime/tuning/result.hpp"

namespace chainfold {

/// Shows the progress of tunings on standard error:
///
///     cf::compile(frames, {.tuning = cf::Tuning::measure, .on_tuning = cf::progress_to_stderr})
///
/// On a terminal it is a bar, which goes away with the end of the tuning. Elsewhere (a file, the
/// log of a build) it is a line at most every three seconds, however many tunings there are.
/// Thread-safe; never throws.
void progress_to_stderr(const TuningProgress& progress);

}  // namespace chainfold
