// A row's scan across its lanes: by shifts, or by halves where lanes are those of vectors.
#include <bit>

#include "chainfold/codegen/lower/scan/row.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

std::vector<int> ScanRow::halves(const LaneScan& scan) const {
  const bool heads = scan.before_last != kNoValue;
  // A run whose half is whole segments has a head in its middle, which nothing crosses.
  const bool aligned = heads && origin_ == kNoValue && scan.first % segment_ == 0;
  std::vector<int> distances;
  for (int distance = scan.unit; distance < kWarpWidth; distance *= 2) {
    if (!aligned || std::int64_t{distance} * scan.width % segment_ != 0)
      distances.push_back(distance);
  }
  return distances;
}

std::vector<int> ScanRow::shifts(const LaneScan& scan) const {
  std::vector<int> distances;
  for (int distance = scan.unit; distance < kWarpWidth; distance *= 2) {
    if (scan.before_last != kNoValue && std::int64_t{distance} * scan.width >= segment_) break;
    distances.push_back(distance);
  }
  return distances;
}

Partial ScanRow::across_lanes(std::size_t fold, Partial total, const LaneScan& scan) {
  const bool heads = scan.before_last != kNoValue, reverse = scan.reverse;
  if (scans_places(fold) && !tile_.vector_lanes() && fills_lanes(fold, scan))
    return places_across_lanes(fold, total, scan);
  const ValueId lane = lane_in_order(reverse);
  const std::vector<int> by_shifts = shifts(scan), by_halves = halves(scan);
  // A shift costs a vector half as much again: its lanes come from two registers of the CPU.
  if (!tile_.vector_lanes() || scan.unit > 1 || 2 * by_halves.size() > 3 * by_shifts.size()) {
    for (const int distance : by_shifts) {
      const ValueId reaches =
          heads ? b_.compute(Op::ge, {scan.before_last, b_.i32(distance * scan.width)})
                : b_.compute(Op::ge, {lane, b_.i32(distance)});
      const Partial merged = merge(fold, shuffled(total, distance, reverse), total, reverse);
      total = choose(fold, reaches, merged, total);
    }
    return total;
  }
  for (const int distance : by_halves) {
    std::vector<std::uint8_t> last(kWarpWidth);  // of the left half of each lane's run
    for (int l = 0; l < kWarpWidth; ++l) {
      const int source = (l & ~(2 * distance - 1)) + distance - 1;
      last[static_cast<std::size_t>(reverse ? kWarpWidth - 1 - l : l)] =
          static_cast<std::uint8_t>(reverse ? kWarpWidth - 1 - source : source);
    }
    const Partial before = permuted(total, last);
    ValueId reaches =
        b_.compute(Op::ne, {b_.compute(Op::bit_and, {lane, b_.i32(distance)}), b_.i32(0)});
    if (heads) {
      const ValueId lanes =
          b_.add(b_.compute(Op::bit_and, {lane, b_.i32(distance - 1)}), b_.i32(1));
      reaches = b_.both(reaches,
                        b_.compute(Op::ge, {scan.before_last, b_.mul(lanes, b_.i32(scan.width))}));
    }
    total = choose(fold, reaches, merge(fold, before, total, reverse), total);
  }
  return total;
}

Partial ScanRow::before_lanes(std::size_t fold, const Partial& total, Partial& all) {
  const bool reverse = reverse_[fold];
  const Partial reached = across_lanes(fold, total, {.reverse = reverse});
  all = broadcast_last(reached, reverse);
  const ValueId follows = b_.compute(Op::ge, {lane_in_order(reverse), b_.i32(1)});
  return tile_.keep_where(fold, shuffled(reached, 1, reverse), follows);
}

ValueId ScanRow::scan_in_lanes(std::size_t fold, const Partial& elements, int width,
                               LaneCarry& carry) {
  const bool reverse = reverse_[fold];
  // runs[l][i]: the fold of the 2^l elements from i 2^l on.
  std::vector<std::vector<Partial>> runs = {in_order(elements, width, reverse)};
  while (runs.back().size() > 1) {
    std::vector<Partial> longer;
    const std::vector<Partial>& halves = runs.back();
    for (std::size_t i = 0; i + 1 < halves.size(); i += 2)
      longer.push_back(merge(fold, halves[i], halves[i + 1], reverse));
    runs.push_back(std::move(longer));
  }
  if (!carry.value) carry.value = tile_.collapse(fold, carry.state);
  std::vector<Partial> prefixes = {*carry.value};  // of so many elements
  for (unsigned n = 1; n <= static_cast<unsigned>(width); ++n) {
    const int level = std::countr_zero(n);
    const unsigned before = n - (1u << level);
    const Partial& last = runs[static_cast<std::size_t>(level)][before >> level];
    prefixes.push_back(merge(fold, prefixes[before], last, reverse));
  }
  carry.value = prefixes.back();
  if (states_cost_more(fold)) {
    const Partial& load = runs.back()[0];
    carry.loads = carry.loads ? merge(fold, *carry.loads, load, reverse) : load;
    if (++carry.count == kRowsAState)
      carry = {.state = tile_.lift(fold, merge(fold, carry.state, *carry.loads, reverse))};
  }
  if (exclusive_[fold]) {
    prefixes.pop_back();
  } else {
    prefixes.erase(prefixes.begin());
  }
  return finished(fold, prefixes, reverse, true);
}

}  // namespace chainfold::codegen
