// A part of TileLowering: merges across lanes, what loops and branches carry, and the outputs.
#include <cstdint>
#include <utility>
#include <vector>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

namespace {
/// The bits of [first, lanes), powers of two.
std::vector<int> bits_between(int first, int lanes) {
  std::vector<int> bits;
  for (int bit = 0; 1 << bit < lanes; ++bit)
    if (1 << bit >= first) bits.push_back(bit);
  return bits;
}
}  // namespace

ValueId TileLowering::has_lane_bit(int mask) {
  return b_.compute(Op::ne, {b_.compute(Op::bit_and, {b_.lane(), b_.i32(mask)}), b_.i32(0)});
}

Partial TileLowering::merge_across(std::size_t fold, const Partial& mine, const Partial& other,
                                   int mask) {
  if (fold_of(fold).commutative) return merge(fold, mine, other);
  const ValueId upper = has_lane_bit(mask);
  Partial left = mine, right = other;
  for (std::size_t i = 0; i < mine.fields.size(); ++i) {
    left.fields[i] = b_.select(upper, other.fields[i], mine.fields[i]);
    right.fields[i] = b_.select(upper, mine.fields[i], other.fields[i]);
  }
  return merge(fold, left, right);
}

Partial TileLowering::reduce(std::size_t fold, Partial a, const std::vector<int>& bits) {
  if (fold_of(fold).relative && a.lifted && bits.size() > 1) return reduce_relative(fold, a, bits);
  for (const int bit : bits) {
    const int mask = 1 << bit;
    Partial other = a;
    for (std::size_t i = 0; i < a.fields.size(); ++i) {
      ValueId& field = other.fields[i];
      if (b_.type(field).shape == Shape::lane && !a.is_shared(i))
        field = b_.shuffle_xor(field, mask);
    }
    a = merge_across(fold, a, other, mask);
  }
  return a;
}

Partials TileLowering::reduce_lanes(Partials a, const std::vector<int>& bits) {
  for (std::size_t f = 0; f < a.size(); ++f) {
    if (!a[f].complete) a[f] = reduce(f, std::move(a[f]), bits);
  }
  return a;
}

Partials TileLowering::reduce_lanes(Partials a, int first, int lanes) {
  Partials all = reduce_lanes(std::move(a), bits_between(first, lanes));
  for (Partial& each : all) each.complete = each.complete || lanes == kWarpWidth;
  return all;
}

Partial TileLowering::of_warp(std::size_t fold, Partial a, int first) {
  if (a.complete) return a;
  a = reduce(fold, std::move(a), bits_between(first, kWarpWidth));
  a.complete = true;
  return a;
}

Partials TileLowering::reduce_ordered(Partials a, int first) {
  for (std::size_t f = 0; f < a.size(); ++f) {
    if (!fold_of(f).commutative) a[f] = of_warp(f, std::move(a[f]), first);
  }
  return a;
}

/// Each side of the merge is one pattern of lanes of both rows.
Partial TileLowering::pair_by_patterns(std::size_t fold, const Partial& x, const Partial& y,
                                       LanePair pair) {
  std::vector<std::uint8_t> lower, upper;
  for (int lane = 0; lane < kWarpWidth; ++lane) {
    lower.push_back(static_cast<std::uint8_t>(pair.source(lane, 0)));
    upper.push_back(static_cast<std::uint8_t>(pair.source(lane, 1)));
  }
  Partial left = x, right = x;
  for (std::size_t i = 0; i < x.fields.size(); ++i) {
    if (x.centred && i == kCount) continue;  // that of every segment
    left.fields[i] = b_.permute(x.fields[i], y.fields[i], lower);
    if (x.complete || x.is_shared(i)) continue;
    right.fields[i] = b_.permute(x.fields[i], y.fields[i], upper);
  }
  return x.complete ? left : merge(fold, left, right);
}

/// Each lane keeps what is its own row's, and one exchange serves both rows: it sends what the
/// other row's lane needs.
Partial TileLowering::pair_by_exchange(std::size_t fold, const Partial& x, const Partial& y,
                                       LanePair pair) {
  const int mask = 1 << pair.merged;
  const ValueId upper = has_lane_bit(mask);
  Partial keep = x, received = x;
  for (std::size_t i = 0; i < x.fields.size(); ++i) {
    if (x.centred && i == kCount) continue;  // that of every segment
    keep.fields[i] = b_.select(upper, y.fields[i], x.fields[i]);
    if (x.complete || x.is_shared(i)) continue;
    const ValueId send = b_.select(upper, x.fields[i], y.fields[i]);
    received.fields[i] = b_.type(send).shape == Shape::lane ? b_.shuffle_xor(send, mask) : send;
  }
  return x.complete ? keep : merge_across(fold, keep, received, mask);
}

Partial TileLowering::tree_in_order(std::size_t fold, std::vector<Partial> parts) {
  constexpr LanePair kNeighbours{.merged = 0, .row = ceil_log2(kWarpWidth) - 1};
  while (parts.size() > 1) {
    if (parts.size() % 2 != 0) parts.push_back(neutral(fold, parts[0].lifted));
    std::vector<Partial> next;
    for (std::size_t i = 0; i < parts.size(); i += 2)
      next.push_back(pair_by_patterns(fold, parts[i], parts[i + 1], kNeighbours));
    parts = std::move(next);
  }
  return parts[0];
}

Partial TileLowering::pair_rows(std::size_t fold, const Partial& a, const Partial& b,
                                LanePair pair) {
  const bool lifted = a.lifted || b.lifted;
  const Partial x = lifted ? lift(fold, a) : a, y = lifted ? lift(fold, b) : b;
  return plan_.vector_lanes ? pair_by_patterns(fold, x, y, pair)
                            : pair_by_exchange(fold, x, y, pair);
}

Partials TileLowering::pair_rows(const Partials& a, const Partials& b, LanePair pair) {
  Partials paired;
  for (std::size_t f = 0; f < a.size(); ++f) paired.push_back(pair_rows(f, a[f], b[f], pair));
  return paired;
}

std::vector<ValueId> TileLowering::flatten(const Partials& lifted, int width, bool same_counts) {
  std::vector<ValueId> fields;
  for (std::size_t f = 0; f < lifted.size(); ++f) {
    for (std::size_t i = 0; i < lifted[f].fields.size(); ++i) {
      const bool alike = i == kCount && knows_count(f);
      const ValueId field = lifted[f].fields[i];
      const bool same = alike && same_counts;
      fields.push_back(same ? field : b_.widen(field, alike ? 1 : width));
    }
  }
  return fields;
}

Partials TileLowering::unflatten(const std::vector<ValueId>& fields, bool reduced) {
  Partials partials;
  std::size_t next = 0;
  for (std::size_t f = 0; f < count(); ++f) {
    const Fold& fold = fold_of(f);
    Partial partial{.fields = {}, .lifted = true, .complete = reduced && !fold.commutative};
    for (std::size_t i = 0; i < fold.state.size(); ++i) partial.fields.push_back(fields[next++]);
    partials.push_back(std::move(partial));
  }
  return partials;
}

void TileLowering::append_given(std::size_t fold, std::vector<ValueId>& state) {
  Scope of_launch;
  const std::vector<NodeId>& operands = fold_node(fold).operands;
  for (std::size_t i = fold_of(fold).operands.size(); i < operands.size(); ++i)
    state.push_back(node_value(operands[i], of_launch));
}

ValueId TileLowering::finalize(std::size_t fold, const Partial& partial, int part) {
  const Fold& f = fold_of(fold);
  if (!partial.lifted && sums_wide(f)) {  // in its own type, and never -0
    const ValueId value = b_.add(partial.fields[0], b_.constant(f.operands[0], 0));
    return b_.convert(value, f.result(part));
  }
  std::vector<ValueId> arguments = lift(fold, partial).fields;
  append_given(fold, arguments);
  return call(f.finalize, arguments)[static_cast<std::size_t>(part)];
}

std::vector<ValueId> TileLowering::finish_elements(const Loaded& tile, const Broadcasts& values,
                                                   ValueId extent, Level level) {
  Scope scope = scope_of(tile);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    const auto id = static_cast<NodeId>(i);
    if (node.kind == NodeKind::extent) scope.values[id] = extent;
    if (node.kind != NodeKind::scan && node.kind != NodeKind::fold) continue;
    const auto& broadcasts_of = node.kind == NodeKind::scan ? values.running : values.whole;
    if (broadcasts_of.empty()) continue;
    const ValueId value = broadcasts_of[static_cast<std::size_t>(node.index)];
    if (value != kNoValue) scope.values[id] = value;
  }
  return outputs_of(level, scope);
}

std::vector<ValueId> TileLowering::outputs_of(Level level, Scope& scope) {
  std::vector<ValueId> outputs;
  for (NodeId output : graph_.outputs)
    outputs.push_back(graph_.node(output).level == level ? node_value(output, scope) : kNoValue);
  return outputs;
}

std::vector<ValueId> TileLowering::finish(const Partials& partials, ValueId extent) {
  Scope scope;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    const auto id = static_cast<NodeId>(i);
    if (node.kind == NodeKind::extent) scope.values[id] = extent;
    if (node.kind != NodeKind::fold) continue;
    const auto f = static_cast<std::size_t>(node.index);
    scope.values[id] = finalize(f, partials[f], node.part);
  }
  return outputs_of(Level::segment, scope);
}

}  // namespace chainfold::codegen
