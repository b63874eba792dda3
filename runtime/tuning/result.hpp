// The progress of a tuning while it runs, and its result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chainfold {

/// How plans are chosen:
///
///     off        by rules, without measuring
///     cached     by the record of an earlier tuning of the same computation, segment size and
///                device; else by rules
///     measure    by the record; else by a measurement, which is recorded, when code is first
///                compiled for a segment size (of few elements or of many, see Kernel)
///
/// Results of different plans may differ within the promised bound; pin a plan (Options::plan) to
/// keep their bits.
enum class Tuning : std::uint8_t { off, cached, measure };

/// How far a tuning has come. Texts live as long as the call that is handed them.
struct TuningProgress {
  /// "compiling" (plans, each checked as well), then "timing" (rounds, at most `total`), at last
  /// "tuned", or "failed" where there is no result.
  std::string_view stage;
  int done = 0, total = 0;  ///< of the stage; done never falls within it
  std::string_view what;    ///< the expression: "over(segments(64), sum(f32(x)))"
  std::string_view best_plan;
  double best_ms = 0;     ///< median of the best plan so far; 0 before any was timed
  double default_ms = 0;  ///< the same of the default plan
  double seconds = 0;     ///< since the tuning began
};

/// What a tuning found.
struct TuningResult {
  struct Candidate {
    std::string plan;
    double ms = 0;          ///< median; 0 where it was not timed
    std::string problem{};  ///< why not: it failed to compile or its results were wrong
    std::string skipped{};  ///< why not: it was estimated to be hopeless, or time was over
  };
  std::string plan{};                   ///< the choice; Options::plan takes it
  double ms = 0, default_ms = 0;        ///< medians of the choice and of the default plan
  std::int64_t elements = 0;            ///< that were timed
  std::string device{};                 ///< "NVIDIA H200"
  std::string date{};                   ///< UTC, ISO 8601
  double seconds = 0;                   ///< that the tuning took
  double allowed_seconds = 0;           ///< Options::tuning_seconds
  bool complete = false;                ///< no plan was left out because the time was over
  std::vector<Candidate> candidates{};  ///< in the order of the plan space
  bool measured = false;                ///< now, not found in a record
};

}  // namespace chainfold
