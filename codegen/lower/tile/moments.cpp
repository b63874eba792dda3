// A part of TileLowering: moments (count, mean, sum of squared deviations) of all that a batch of
// loads brought, at once. The mean comes first, then the deviations from it. An element costs an
// addition, a subtraction and a fused multiplication and addition. A formula that merges moments is
// needed for whole batches only.
//
// Where a segment lies in the registers of one group of lanes, a GPU's group shares its mean. Then
// the squares are all that is left to be added up, and no count is needed besides the segment's. On
// a CPU (Plan::mean_loads) each lane has means of its own, of a few loads each. It merges them by
// the formula, whose weights are constants then.
//
// Numbers. Deviations are taken from a mean m' with a rounding error e, so the squares' sum grows
// by count * e * e. That is of second order, but the variance of equal elements differs from 0 by
// it. Merges of means are of first order in e, which is u times the mean. So all values are taken
// relative to one of the elements, the pilot. In rows that is the segment's first element, else
// each lane's first one of a batch. The pilot is one of n elements, so its distance from their mean
// is at most sigma * sqrt(n), which bounds the means then. Where that matters differences from the
// pilot are exact, and of equal elements they are 0. States are of f64, to which the pilot is
// added. Only f16 and bytes have no pilots, which saves time
// (docs/decisions/0022-moments.md#evidence). Sums of their 11 digits are exact, and a mean is the
// sums' quotient. What is not exact errs by u * 2^11 of the variance at most.
#include <algorithm>

#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/units.hpp"

namespace chainfold::codegen {

namespace {
/// Squares that are added up one after the other; their sums are added up in a tree.
constexpr int kChain = 4;
}  // namespace

bool TileLowering::has_moments() const { return codegen::has_moments(graph_); }

bool TileLowering::has_few_digits(std::size_t fold) const {
  const NodeId id = fold_node(fold).operands[0];
  if (!is_float(graph_.node(id).type) || !is_short(graph_, id)) return false;
  const DType from = graph_.node(graph_.node(id).operands[0]).type;
  return from == DType::f16 || size_of(from) == 1;
}

bool TileLowering::group_knows_count(std::size_t fold) const {
  return fold_of(fold).moments && fold_node(fold).filter == kNoNode;
}

bool TileLowering::knows_count(std::size_t fold) const {
  return fold_of(fold).counts && fold_node(fold).filter == kNoNode;
}

ValueId TileLowering::combine_halves(Op op, ValueId v) {
  for (int w = b_.type(v).width; w > 1; w /= 2)
    v = b_.compute(op, {b_.extract(v, 0, w / 2), b_.extract(v, w / 2, w / 2)});
  return v;
}

/// Neighbours first, as tree() merges sums: so a sum of the same values is computed once.
ValueId TileLowering::combine_all(Op op, std::vector<ValueId> values) {
  while (values.size() > 1) {
    std::vector<ValueId> next;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2)
      next.push_back(b_.compute(op, {values[i], values[i + 1]}));
    if (values.size() % 2) next.push_back(values.back());
    values = std::move(next);
  }
  return values[0];
}

ValueId TileLowering::combine_group(Op op, ValueId value, int group) {
  for (int mask = 1; mask < group; mask *= 2)
    value = b_.compute(op, {value, b_.shuffle_xor(value, mask)});
  return value;
}

TileLowering::Sample TileLowering::sample_of(std::size_t fold, const Loaded& tile, Scope& scope) {
  const Node& node = fold_node(fold);
  Sample sample{.mask = tile.mask, .across = tile.across};
  sample.values = b_.widen(node_value(node.operands[0], scope), tile.width);
  sample.keep =
      b_.both(tile.valid, node.filter == kNoNode ? kNoValue : node_value(node.filter, scope));
  if (sample.keep != kNoValue) sample.keep = b_.widen(sample.keep, tile.width);
  return sample;
}

/// How many elements of each lane count, an i64: a constant where that is known.
ValueId TileLowering::count_of(const std::vector<Sample>& samples) {
  std::int32_t known = 0;
  std::vector<ValueId> counts;
  for (const Sample& sample : samples) {
    const int width = sample.across ? 1 : b_.type(sample.values).width;
    if (sample.mask == kNoValue && sample.keep == kNoValue) {
      known += width;
      continue;
    }
    ValueId count = b_.i32(width);
    if (sample.keep != kNoValue)
      count = total_of(sample, b_.select(sample.keep, b_.i32(1), b_.i32(0)));
    if (sample.mask != kNoValue) count = b_.select(sample.mask, count, b_.i32(0));
    counts.push_back(count);
  }
  if (counts.empty()) return b_.i64(known);
  return b_.convert(b_.add(combine_all(Op::add, std::move(counts)), b_.i32(known)), DType::i64);
}

/// The sum of what counts of each lane.
ValueId TileLowering::sum_of(std::size_t fold, const std::vector<Sample>& samples) {
  const bool zeros = keeps_zero(fold_node(fold).operands[0]) && has_few_digits(fold);
  std::vector<ValueId> sums;
  for (const Sample& sample : samples) {
    ValueId values = sample.values;
    const ValueId none = b_.constant(b_.type(values).elem, 0);
    if (sample.keep != kNoValue) values = b_.select(sample.keep, values, none);
    ValueId sum = total_of(sample, values);
    if (sample.mask != kNoValue && !(zeros && sample.keep == kNoValue))
      sum = b_.select(sample.mask, sum, none);
    sums.push_back(sum);
  }
  return combine_all(Op::add, std::move(sums));
}

/// The sum of squares of a lane's elements of the vectors, which have one width and are parts of
/// samples such as this one.
ValueId TileLowering::add_squares(const Sample& sample, const std::vector<ValueId>& vectors) {
  std::vector<ValueId> chains;
  int links = 0;
  for (const ValueId vector : vectors) {
    const int width = b_.type(vector).width;
    const int piece = sample.across ? width : std::max(1, width / kChain);
    for (int first = 0; first < width; first += piece) {
      const ValueId part = b_.extract(vector, first, piece);
      if (links++ % kChain == 0) {
        chains.push_back(b_.mul(part, part));
      } else {
        chains.back() = b_.compute(Op::fma, {part, part, chains.back()});
      }
    }
  }
  return total_of(sample, combine_all(Op::add, std::move(chains)));
}

/// The squared deviations from `mean` of what counts of each lane.
ValueId TileLowering::squares_of(const std::vector<Sample>& samples, ValueId mean) {
  const ValueId none = b_.constant(b_.type(mean).elem, 0);
  std::vector<ValueId> everywhere, sums;
  for (const Sample& sample : samples) {
    ValueId deviation = b_.sub(sample.values, mean);
    if (sample.keep != kNoValue) deviation = b_.select(sample.keep, deviation, none);
    if (sample.mask == kNoValue) {
      everywhere.push_back(deviation);
    } else {
      sums.push_back(b_.select(sample.mask, add_squares(sample, {deviation}), none));
    }
  }
  if (!everywhere.empty()) sums.insert(sums.begin(), add_squares(samples[0], everywhere));
  return combine_all(Op::add, std::move(sums));
}

ValueId TileLowering::first_of(const std::vector<Sample>& samples) {
  const bool across = samples[0].across;
  const auto one = [&](ValueId v, int i) { return across ? v : b_.extract(v, i); };
  const int width = across ? 1 : b_.type(samples[0].values).width;
  // From the last to the first: who has one takes it.
  ValueId first = one(samples[0].values, 0);
  const bool all = samples[0].keep == kNoValue && samples[0].mask == kNoValue;
  for (std::size_t s = all ? 0 : samples.size(); s-- > 0;) {
    const Sample& sample = samples[s];
    for (int i = sample.keep == kNoValue ? 1 : width; i-- > 0;) {
      const ValueId there =
          b_.both(sample.mask, sample.keep == kNoValue ? kNoValue : one(sample.keep, i));
      const ValueId value = one(sample.values, i);
      first = there == kNoValue ? value : b_.select(there, value, first);
    }
  }
  return first;
}

/// The difference of two of the elements, of integers as an f64.
ValueId TileLowering::difference(ValueId value, ValueId pilot) {
  const ValueId apart = b_.sub(value, pilot);
  if (b_.type(value).elem != DType::i64) return apart;
  // It wraps where the signs differ and the result has not the minuend's.
  const ValueId other_signs = b_.compute(Op::bit_xor, {value, pilot});
  const ValueId wraps = b_.lt(
      b_.compute(Op::bit_and, {other_signs, b_.compute(Op::bit_xor, {apart, value})}), b_.i64(0));
  const ValueId wide = b_.sub(b_.convert(value, DType::f64), b_.convert(pilot, DType::f64));
  return b_.select(wraps, wide, b_.convert(apart, DType::f64));
}

void TileLowering::set_pilots(const Loaded& first, int group) {
  std::vector<std::uint8_t> source;
  for (int lane = 0; lane < kWarpWidth; ++lane)
    source.push_back(static_cast<std::uint8_t>(lane - lane % group));
  pilots_.assign(graph_.folds.size(), kNoValue);
  Scope scope = scope_of(first);
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    if (!group_knows_count(f) || has_few_digits(f)) continue;
    Sample sample = sample_of(f, first, scope);
    sample.mask = kNoValue;  // what does not exist goes nowhere
    pilots_[f] = b_.permute(first_of({sample}), source);
  }
}

Partial TileLowering::lift_moments(std::size_t fold, const Partial& near) {
  constexpr DType kWide = DType::f64;
  Partial state = near;
  state.lifted = true;
  const ValueId squares = b_.convert(near.fields.back(), kWide),
                mean = b_.convert(near.fields[near.fields.size() - 2], kWide);
  const DType type = fold_of(fold).operands[0];
  if (type == DType::f32) {  // the pilot is exact in a mean's digits
    const ValueId whole =
        near.has_pilot() ? b_.add(b_.convert(near.fields[Partial::kPilot], kWide), mean) : mean;
    state.fields = {near.fields[0], whole, squares};
    return state;
  }
  state.fields = {near.fields[0], near.fields[Partial::kPilot], mean, squares};
  if (!near.has_pilot())  // the base is the mean
    state.fields = {near.fields[0], mean, b_.constant(kWide, 0), squares};
  if (type == DType::f64)  // nothing far from it
    state.fields.insert(state.fields.begin() + 1, b_.constant(kWide, 0));
  return state;
}

Partial TileLowering::merge_near(std::size_t fold, const Partial& a, const Partial& b) {
  std::vector<ValueId> arguments;
  for (const Partial* side : {&a, &b}) {
    for (std::size_t i = 0; i < side->fields.size(); ++i)
      if (!side->has_pilot() || i != Partial::kPilot) arguments.push_back(side->fields[i]);
  }
  Partial merged = a;
  merged.complete = a.complete && b.complete;
  merged.fields = call(fold_of(fold).merge_near, arguments);
  if (a.has_pilot())
    merged.fields.insert(merged.fields.begin() + Partial::kPilot, a.fields[Partial::kPilot]);
  return merged;
}

Partial TileLowering::fold_moments(std::size_t fold, const std::vector<Loaded>& batch, int group) {
  std::vector<Sample> samples;
  for (const Loaded& tile : batch) {
    Scope scope = scope_of(tile);
    samples.push_back(sample_of(fold, tile, scope));
  }
  ValueId pilot = pilot_of(fold);
  const bool own = pilot == kNoValue && !has_few_digits(fold);
  if (own) pilot = first_of(samples);
  if (pilot != kNoValue) {
    for (Sample& sample : samples) sample.values = difference(sample.values, pilot);
  }
  // Where counts depend on the data, merges cost more than what is spilled.
  auto apart = static_cast<std::size_t>(group_knows_count(fold) ? plan_.mean_loads : 0);
  if (apart == 0 || group > 0) apart = samples.size();
  std::vector<Partial> parts;
  for (std::size_t first = 0; first < samples.size(); first += apart) {
    const std::size_t behind = std::min(samples.size(), first + apart);
    const auto at = [&](std::size_t i) { return samples.begin() + static_cast<std::ptrdiff_t>(i); };
    parts.push_back(moments_near(fold, {at(first), at(behind)}, pilot, group));
  }
  Partial all = tree(fold, std::move(parts));
  return own ? lift(fold, all) : all;
}

/// Of samples relative to the pilot, if there is one.
Partial TileLowering::moments_near(std::size_t fold, std::vector<Sample> samples, ValueId pilot,
                                   int group) {
  const DType type = b_.type(samples[0].values).elem;
  const bool centred = group > 0 && group_knows_count(fold);
  const ValueId count = centred ? b_.i64(plan_.segment) : count_of(samples);
  ValueId sum = sum_of(fold, samples);
  if (centred) sum = combine_group(Op::add, sum, group);
  ValueId mean;
  const auto known = b_.constant_of(count);
  if (known) {
    const auto elements = static_cast<double>(static_cast<std::int64_t>(*known));
    const ValueId share = b_.constant(type, bits_of_double(type, 1.0 / elements));
    mean = b_.mul(sum, share);
    if (pilot == kNoValue) {  // the quotient of an exact sum, without a division
      const ValueId n = b_.constant(type, bits_of_double(type, -elements));
      mean = b_.compute(Op::fma, {b_.compute(Op::fma, {mean, n, sum}), share, mean});
    }
  } else {
    // A lane that has no element keeps the identity.
    const ValueId quotient = b_.div(sum, b_.convert(count, type)), none = b_.constant(type, 0);
    mean = b_.select(b_.compute(Op::eq, {count, b_.i64(0)}), none, quotient);
  }
  Partial near{.fields = {count, mean, squares_of(samples, mean)}, .centred = centred};
  if (pilot != kNoValue) near.fields.insert(near.fields.begin() + Partial::kPilot, pilot);
  return near;
}

}  // namespace chainfold::codegen
