// The arithmetic of a tuning: which candidates are timed on, and which of them wins.
#pragma once

#include <cstddef>
#include <vector>

namespace chainfold::runtime {

/// The median of some times, and their median distance from it, a spread that outliers do not
/// touch. Both take at least one time.
double median(std::vector<double> values);
double spread(const std::vector<double>& values);

/// The index of the choice among candidates, each with its milliseconds. It is 0, the default,
/// unless another's median is lower by more than the noise of both. Else it is the first candidate
/// that is as fast as the fastest, within the noise of both. Candidates without times (they failed)
/// are never chosen.
std::size_t choose_fastest(const std::vector<std::vector<double>>& candidates);

/// Candidates timed round by round, of which those clearly behind leave early. After two rounds,
/// four, eight and so on, candidates leave that are in the slower half by their medians. They must
/// also be behind the fastest by more than the noise of both. The default, the first, stays to the
/// end.
class Race {
 public:
  explicit Race(std::vector<bool> starts);
  /// Whether a candidate is still in it.
  [[nodiscard]] bool runs(std::size_t candidate) const { return runs_[candidate]; }
  [[nodiscard]] std::size_t size() const { return runs_.size(); }
  [[nodiscard]] int rounds() const { return rounds_; }
  /// A candidate's time of this round.
  void add(std::size_t candidate, double ms) { times_[candidate].push_back(ms); }
  /// A candidate that failed leaves at once.
  void drop(std::size_t candidate) { runs_[candidate] = false; }
  void end_round();
  /// The median of a candidate's times; 0 without any.
  [[nodiscard]] double ms(std::size_t candidate) const;
  /// The candidate with the lowest median of those still in it and timed.
  [[nodiscard]] std::size_t leader() const;
  /// choose_fastest of those still in it.
  [[nodiscard]] std::size_t winner() const;

 private:
  std::vector<bool> runs_;
  std::vector<std::vector<double>> times_;
  int rounds_ = 0, next_cut_ = 2;
};

}  // namespace chainfold::runtime
