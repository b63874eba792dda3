#include "chainfold/runtime/tuning/race.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace chainfold::runtime {

namespace {

/// Medians closer than this are equal whatever their spread: clocks and neighbours drift.
constexpr double kLeastNoise = 0.005;
/// The same in Race, whose candidates may leave after few rounds.
constexpr double kLeastNoiseEarly = 0.02;

double noise_between(const std::vector<double>& a, const std::vector<double>& b, double least) {
  return std::max({least * median(a), 2 * spread(a), 2 * spread(b)});
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double spread(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> distances;
  for (double value : values) distances.push_back(std::abs(value - middle));
  return median(std::move(distances));
}

std::size_t choose_fastest(const std::vector<std::vector<double>>& candidates) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].empty()) continue;
    const double ms = median(candidates[i]);
    if (ms < least) {
      least = ms;
      best = i;
    }
  }
  // A wide spread may make two equal, but one no faster than the default gains nothing.
  const double standard =
      candidates[0].empty() ? std::numeric_limits<double>::infinity() : median(candidates[0]);
  auto equals_best = [&](std::size_t i) {
    if (candidates[i].empty()) return false;
    const double ms = median(candidates[i]);
    return (i == 0 || ms < standard) &&
           ms <= least + noise_between(candidates[best], candidates[i], kLeastNoise);
  };
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (equals_best(i)) return i;  // the default is the first
  return best;
}

Race::Race(std::vector<bool> starts) : runs_(std::move(starts)), times_(runs_.size()) {}

void Race::end_round() {
  if (++rounds_ < next_cut_) return;
  next_cut_ *= 2;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i] && !times_[i].empty()) order.push_back(i);
  if (order.empty()) return;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ms(a) < ms(b); });
  const std::vector<double>& best = times_[order[0]];
  for (std::size_t rank = (order.size() + 1) / 2; rank < order.size(); ++rank) {
    const std::size_t i = order[rank];
    const bool behind = ms(i) > median(best) + noise_between(best, times_[i], kLeastNoiseEarly);
    if (i != 0 && behind) runs_[i] = false;
  }
}

double Race::ms(std::size_t candidate) const {
  return times_[candidate].empty() ? 0 : median(times_[candidate]);
}

std::size_t Race::leader() const {
  std::size_t best = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i] && ms(i) > 0 && (ms(best) == 0 || ms(i) < ms(best))) best = i;
  return best;
}

std::size_t Race::winner() const {
  std::vector<std::vector<double>> remaining = times_;
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (!runs_[i]) remaining[i].clear();
  return choose_fastest(remaining);
}

}  // namespace chainfold::runtime
