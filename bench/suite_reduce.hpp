// The suites `reduce`, `scan`, `folds` and `ragged`, lists of named cases: segmented and whole
// folds, and scans, of every type and size, by every strategy of ours and by the peers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "chainfold/bench/contest.hpp"
#include "chainfold/bench/results_file.hpp"

namespace chainfold::bench {

/// A case with its name, e.g. "sum/f16/64", "sum/f16/whole", "sum/f16/whole/65536" for one that is
/// short, "axis0/f16/1024" for the sums of 1024 columns, or "scan/f16/64" for running sums.
struct NamedCase {
  std::string name;
  Case test;
  std::vector<Way> ways{};   ///< empty: all that the machine has
  std::string experiment{};  ///< of a paper
};
/// All of the suite, what tells most first (a budget may end a run early), with inputs of `bytes`
/// bytes each (every input of a case); sizes that do not fit are left out. With `cached_bytes` also
/// some, named ".../cache", whose inputs together have so many bytes and are to be found in the
/// caches.
std::vector<NamedCase> reduce_cases(std::int64_t bytes, std::int64_t cached_bytes = 0);

/// All of the suite `scan`, likewise, where neither an input nor an output has more than `bytes`
/// bytes.
std::vector<NamedCase> scan_cases(std::int64_t bytes);

/// All of the suite `folds`, likewise: folds and scans other than sums, "argmax/f16/64", and the
/// same one element off a line of memory, "argmax/f16/64/off".
std::vector<NamedCase> folds_cases(std::int64_t bytes);

/// A case that is made when it is its turn: what tells its segments takes memory.
struct LazyCase {
  std::string name;
  std::function<NamedCase()> make;
};
/// All of the suite `ragged`, likewise: sums and running sums over
/// segments that offsets tell, of lengths of every kind, "ragged/geometric/f32/8", and sums over
/// segments that flags begin, "heads/geometric/f32/16".
std::vector<LazyCase> ragged_cases(std::int64_t bytes);

struct ReduceOptions {
  std::regex only{""};               ///< searched in a case's name
  std::regex impl{""};               ///< searched in a way's name
  std::optional<std::regex> energy;  ///< searched in "sum/f16/64 cub"
  double seconds = 0.02;             ///< of timed repeats a row
  double budget = 0;                 ///< seconds for the whole run; 0: no limit
  double void_above = 0.01;          ///< how far the ceilings may move during a group of rows
};

struct ReduceSummary {
  std::size_t cases = 0, rows = 0, kept = 0;  ///< measured now; kept: rows that the file had
  std::size_t voided = 0;                     ///< rows that stay void
  std::size_t left = 0;                       ///< cases that the budget left out
  std::vector<std::string> lost;              ///< where a peer was faster, in words
  std::vector<std::string> wrong;             ///< results that were wrong

  /// Adds another run's.
  void add(const ReduceSummary& other);
};

/// Measures what the file lacks and saves it after every case. `print` gets lines for people.
/// Throws what a machine throws that does not work at all; a way that fails becomes a row that says
/// why.
ReduceSummary run_reduce(Machine& machine, const std::vector<NamedCase>& cases,
                         const ReduceOptions& options, ResultsFile& file,
                         const std::function<void(const std::string&)>& print);
/// The end of a run, for people.
std::string text_of(const ReduceSummary& summary);

}  // namespace chainfold::bench
