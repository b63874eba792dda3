// What progress_to_stderr writes, without the writing.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "chainfold/runtime/tuning/result.hpp"

namespace chainfold::runtime {

/// The text to write for the progress of tunings, of several at once if need be.
class ProgressText {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `columns` of the terminal; 0: a log instead of a terminal.
  explicit ProgressText(int columns) : columns_(columns) {}
  /// The text to write now; it may be empty.
  std::string next(const TuningProgress& progress, Time now);

 private:
  std::string bar(const TuningProgress& progress, Time now);
  std::string line(const TuningProgress& progress, Time now);
  int columns_;
  std::optional<Time> last_;
};

}  // namespace chainfold::runtime
