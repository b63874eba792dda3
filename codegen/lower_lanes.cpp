// The second half of TileLowering: ranges of elements, merges across lanes, and the outputs.
#include <algorithm>

#include "chainfold/codegen/choose_rows.hpp"
#include "chainfold/codegen/error.hpp"
#include "chainfold/codegen/fold_kinds.hpp"
#include "chainfold/codegen/integer_math.hpp"
#include "chainfold/codegen/lower_tile.hpp"
#include "chainfold/codegen/strands.hpp"

namespace chainfold::codegen {

namespace {
constexpr std::size_t kCount = 0;  // of moments

/// The bits of [first, lanes), powers of two.
std::vector<int> bits_between(int first, int lanes) {
  std::vector<int> bits;
  for (int bit = 0; 1 << bit < lanes; ++bit)
    if (1 << bit >= first) bits.push_back(bit);
  return bits;
}
}  // namespace

/// Batches of `chunk` elements of a loop that is worth to have strands.
std::int64_t TileLowering::least_batches(std::int64_t chunk) const {
  return kLoopStrandBytes / std::max<std::int64_t>(1, chunk * element_bytes(graph_)) + 1;
}

std::vector<Loaded> TileLowering::load_batch(ValueId begin, int tiles, ValueId limit,
                                             ValueId row_mask, ValueId origin, int whole,
                                             const LoadRuns& runs) {
  const int width = plan_.load_width;
  // In order a lane's loads follow each other, else the lanes of a load do, and those of vectors,
  // whose merges take neighbours (tree_in_order).
  const bool lane_runs = ordered_ && tiles > 1 && !vector_lanes();
  const int lane_stride = lane_runs ? tiles * width : width;
  const std::int64_t step = lane_runs ? width : static_cast<std::int64_t>(kWarpWidth) * width;
  std::vector<Loaded> loaded;
  for (int i = 0; i < tiles; ++i) {
    const int in_run = runs.loads == 0 ? i : i % runs.loads;
    ValueId at = b_.add(begin, b_.i64(in_run * step));
    if (in_run < i) at = b_.add(at, b_.mul(runs.apart, b_.i64(i / runs.loads)));
    ValueId own = kNoValue;
    if (limit != kNoValue && (lane_runs || i >= whole)) {
      const ValueId offset =
          b_.convert(b_.compute(Op::mul, {b_.lane(), b_.i32(lane_stride)}), DType::i64);
      own = inside(offset, b_.sub(limit, at));
    }
    Address address{.base = at};
    if (lane_runs) address = {.base = at, .group = 1, .stride = lane_stride};
    const ValueId position =
        uses_index_ ? positions(b_.sub(at, origin), kWarpWidth, lane_stride) : kNoValue;
    loaded.push_back(load_inside(address, width, row_mask, own, position));
  }
  return loaded;
}

Partials TileLowering::fold_batch(const std::vector<Loaded>& batch, int group) {
  std::vector<std::vector<Partial>> parts(graph_.folds.size());
  for (const Loaded& tile : batch) {
    Scope scope = scope_of(tile);
    for (std::size_t f = 0; f < graph_.folds.size(); ++f)
      if (!graph_.folds[f].moments && !takes_elements(f))
        parts[f].push_back(tile.across ? fold_element(f, tile, scope) : fold_one(f, tile, scope));
  }
  Partials result;
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    const bool neighbours = vector_lanes() && !graph_.folds[f].commutative && !batch.front().across;
    result.push_back(takes_elements(f)  ? accumulate(f, batch)
                     : parts[f].empty() ? fold_moments(f, batch, group)
                     : neighbours       ? tree_in_order(f, std::move(parts[f]))
                                        : tree(f, std::move(parts[f])));
  }
  return result;
}

Partials TileLowering::merge_all(std::vector<Partials> tiles) {
  Partials result;
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    std::vector<Partial> parts;
    for (const Partials& partials : tiles) parts.push_back(partials[f]);
    result.push_back(tree(f, std::move(parts)));
  }
  return result;
}

Partials TileLowering::fold_range(ValueId begin, ValueId length, ValueId origin, ValueId row_mask,
                                  ValueId warp, int warps) {
  Intervals own;
  return fold_share(begin, length, origin, row_mask, warp, warps, own);
}

Partials TileLowering::fold_share(ValueId begin, ValueId length, ValueId origin, ValueId row_mask,
                                  ValueId warp, int warps, Intervals& own) {
  own = {.first = begin, .stop = b_.add(begin, length), .stride = length, .length = length};
  const int width = plan_.load_width, step = kWarpWidth * width;
  const std::int64_t chunk = static_cast<std::int64_t>(step) * plan_.depth;
  const auto known = b_.constant_of(length);
  const ValueId end = b_.add(begin, length);
  auto batch = [&](ValueId at, int tiles, ValueId limit, int whole = 0, const LoadRuns& runs = {}) {
    return reduce_ordered(fold_batch(load_batch(at, tiles, limit, row_mask, origin, whole, runs)));
  };
  // What loops of whole batches carry.
  const bool same_counts = row_mask == kNoValue || plan_.mean_loads > 0;
  auto add_batch = [&](const Builder::Values& carried, ValueId at, int tiles, ValueId limit,
                       const LoadRuns& runs = {}) {
    return flatten(lift(merge(unflatten(carried, true), batch(at, tiles, limit, 0, runs))), 1,
                   same_counts && limit == kNoValue);
  };
  // A loop's batches take of each of its strands as much, and move on as far.
  const bool strands = plan_.strands > 1 && warps == 1;
  const std::int64_t hop = chunk / plan_.strands;
  LoadRuns runs{.loads = strands ? plan_.depth / plan_.strands : 0};

  if (known && !plan_.edges && warps == 1) {  // everything but the addresses is known now
    const auto total = static_cast<std::int64_t>(*known);
    const std::int64_t full = total / chunk, rest = total % chunk;
    std::vector<Partials> pieces;
    const bool looped = full > plan_.most_batches();
    // What comes behind a loop delays the next segment less if it is merged before it.
    const bool rest_first = looped && rest > 0 && vector_lanes() && !ordered_ && !has_moments();
    const auto fold_rest = [&] {
      const auto tiles = static_cast<int>((rest + step - 1) / step);
      const bool ragged = rest % step != 0;
      const ValueId at = b_.add(begin, b_.i64(full * chunk));
      return batch(at, tiles, ragged ? end : kNoValue, tiles - 1);
    };
    for (std::int64_t piece = 0; !looped && piece < full; ++piece)
      pieces.push_back(batch(b_.add(begin, b_.i64(piece * chunk)), plan_.depth, kNoValue));
    if (looped) {
      const Partials start = rest_first ? lift(fold_rest()) : identities();
      const ValueId behind = b_.add(begin, b_.i64(full * hop)), stride = b_.i64(hop);
      if (strands) runs.apart = b_.i64(full * hop);
      const auto carried_out = b_.loop(begin, behind, stride, flatten(start, 1, same_counts),
                                       [&](ValueId at, const Builder::Values& carried) {
                                         return add_batch(carried, at, plan_.depth, kNoValue, runs);
                                       });
      pieces.push_back(unflatten(carried_out, true));
      for (std::size_t f = 0; f < graph_.folds.size(); ++f)
        if (same_counts && group_knows_count(f))
          pieces[0][f].fields[kCount] = b_.i64(full * plan_.depth * width);  // of a lane
    }
    if (rest > 0 && !rest_first) pieces.push_back(fold_rest());
    Partials all = std::move(pieces[0]);
    for (std::size_t piece = 1; piece < pieces.size(); ++piece) all = merge(all, pieces[piece]);
    return all;
  }

  // The aligned middle [from, to) in vectors, the ragged ends one element a lane.
  ValueId from = begin, to = end;
  const ValueId wide = b_.i64(width);
  if (peels_memory(plan_, graph_)) {
    const int unit = width * size_of(graph_.inputs[0].type);
    const ValueId behind = b_.misalignment(0, begin, unit);
    from = b_.min(b_.add(begin, b_.rem(b_.sub(wide, behind), wide)), end);
    to = b_.compute(Op::max, {b_.sub(end, b_.misalignment(0, end, unit)), from});
  } else if (plan_.edges) {
    const ValueId up = b_.mul(b_.div(b_.add(begin, b_.i64(width - 1)), wide), wide);
    from = b_.min(up, end);
    to = b_.compute(Op::max, {b_.mul(b_.div(end, wide), wide), from});
  }
  const ValueId batches = b_.compute(Op::div, {b_.sub(to, from), b_.i64(chunk)});
  ValueId move = kNoValue;
  if (strands) {  // of short ranges, next to each other
    const ValueId many = b_.compute(Op::ge, {batches, b_.i64(least_batches(chunk))});
    move = b_.select(many, b_.i64(hop), b_.i64(chunk));
    runs.apart = b_.select(many, b_.mul(batches, b_.i64(hop)), b_.i64(hop));
  }
  const ValueId rest_at = b_.add(from, b_.mul(batches, b_.i64(chunk)));
  const ValueId my_warp = b_.convert(warp, DType::i64);
  const Partials start = identities();
  // In order each warp has one run of batches, the last the rest.
  const bool warp_runs = ordered_ && warps > 1;
  ValueId first = kNoValue, stop = rest_at;
  const ValueId last_warp = warp_runs ? b_.compute(Op::eq, {my_warp, b_.i64(warps - 1)}) : kNoValue;
  if (warp_runs) {
    const ValueId each = b_.div(b_.add(batches, b_.i64(warps - 1)), b_.i64(warps));
    const ValueId my_first = b_.min(b_.mul(my_warp, each), batches);
    const ValueId behind = b_.min(b_.add(my_first, each), batches);
    first = b_.add(from, b_.mul(my_first, b_.i64(chunk)));
    stop = b_.add(from, b_.mul(behind, b_.i64(chunk)));
  } else {
    first = b_.add(from, b_.mul(my_warp, b_.i64(chunk)));
  }
  auto load_edge = [&](ValueId at, ValueId limit, ValueId by) {
    const ValueId offset = b_.convert(b_.lane(), DType::i64);
    const ValueId mask = b_.both(b_.both(row_mask, by), b_.lt(offset, b_.sub(limit, at)));
    const ValueId position = uses_index_ ? positions(b_.sub(at, origin), kWarpWidth, 1) : kNoValue;
    return load({at}, 1, mask, position);
  };
  // Edges are on their way while the middle is folded, but not in vectors that it needs. Those that
  // are widened, as narrow integers and what is added to wider states, come with what the loop
  // leaves, unless warps fold runs in order: a compiler widens them where they arrive, and a loop
  // behind that would wait for them.
  std::optional<Loaded> head, tail;
  ValueId first_warp = kNoValue;
  const bool narrow = std::any_of(
      graph_.inputs.begin(), graph_.inputs.end(),
      [](const GraphInput& input) { return !is_float(input.type) && size_of(input.type) < 4; });
  const bool widens = narrow || std::any_of(graph_.folds.begin(), graph_.folds.end(), sums_wide);
  const bool ahead = plan_.edges && !vector_lanes();
  const bool with_rest = ahead && widens && !warp_runs;
  if (plan_.edges) first_warp = b_.compute(Op::eq, {my_warp, b_.i64(0)});
  auto load_edges = [&] {
    head = load_edge(begin, from, first_warp);
    tail = load_edge(to, end, warp_runs ? last_warp : first_warp);
  };
  if (ahead && !with_rest) load_edges();
  auto fold_edge = [&](const std::optional<Loaded>& loaded, ValueId at, ValueId limit) {
    return reduce_ordered(fold_tile(loaded ? *loaded : load_edge(at, limit, kNoValue)));
  };
  const ValueId stride = strands ? move : b_.i64(warp_runs ? chunk : chunk * warps);
  if (warps > 1) {
    own = {.first = first, .stop = stop, .stride = stride, .length = b_.i64(chunk)};
    if (plan_.edges) {
      own.head = {.begin = begin, .end = from, .by = first_warp};
      own.tail = {.begin = to, .end = end, .by = warp_runs ? last_warp : first_warp};
    }
  }
  if (strands) stop = b_.add(from, b_.mul(batches, move));
  Builder::Values sum = b_.loop(first, stop, stride, flatten(start, 1, same_counts),
                                [&](ValueId at, const Builder::Values& carried) {
                                  return add_batch(carried, at, plan_.depth, kNoValue, runs);
                                });
  if (plan_.strategy == Strategy::parts && plan_.cluster == 0 && (warp_runs || warps == 1)) {
    // Only the last part of a segment has a rest, on a CPU, and in order only one warp can fold it:
    // small code counts for more than loads in flight.
    const ValueId rest = warp_runs ? b_.select(last_warp, rest_at, to) : rest_at;
    const int tiles = warp_runs ? (plan_.depth + 3) / 4 : 1;
    if (warps > 1) own.rest = {.begin = rest, .end = to};
    sum = b_.loop(rest, to, b_.i64(std::int64_t{tiles} * step), flatten(unflatten(sum, true)),
                  [&](ValueId at, const Builder::Values& carried) {
                    return add_batch(carried, at, tiles, to);
                  });
  } else {
    // The warps share it: where segments are a part each, as many wait for it as segments are.
    const int tiles = warp_runs ? plan_.depth : (plan_.depth + warps - 1) / warps;
    const ValueId at =
        warp_runs ? rest_at : b_.add(rest_at, b_.mul(my_warp, b_.i64(std::int64_t{tiles} * step)));
    const ValueId left = b_.both(b_.lt(at, to), last_warp);
    if (warps > 1) {
      const ValueId behind = b_.min(b_.add(at, b_.i64(std::int64_t{tiles} * step)), to);
      own.rest = {.begin = at, .end = behind, .by = last_warp};
    }
    if (with_rest) {
      auto add = [&] {
        const std::vector<Loaded> rest = load_batch(at, tiles, to, row_mask, origin);
        load_edges();
        Partials all = merge(lift(fold_edge(head, begin, from)), unflatten(sum, true));
        all = merge(lift(all), reduce_ordered(fold_batch(rest)));
        return flatten(lift(merge(lift(all), fold_edge(tail, to, end))));
      };
      if (warps == 1) return unflatten(add(), true);
      const ValueId any = b_.compute(Op::bit_or, {left, first_warp});
      return unflatten(b_.branch(any, add, [&] { return sum; }), true);
    }
    sum = b_.branch(left, [&] { return add_batch(sum, at, tiles, to); }, [&] { return sum; });
  }
  if (plan_.edges) {
    sum = b_.branch(
        first_warp,
        [&] {
          Partials all = merge(lift(fold_edge(head, begin, from)), unflatten(sum, true));
          return flatten(lift(warp_runs ? all : merge(all, fold_edge(tail, to, end))));
        },
        [&] { return sum; });
    if (warp_runs) {
      sum = b_.branch(
          last_warp,
          [&] { return flatten(lift(merge(unflatten(sum, true), fold_edge(tail, to, end)))); },
          [&] { return sum; });
    }
  }
  return unflatten(sum, true);
}

ValueId TileLowering::has_lane_bit(int mask) {
  return b_.compute(Op::ne, {b_.compute(Op::bit_and, {b_.lane(), b_.i32(mask)}), b_.i32(0)});
}

Partial TileLowering::merge_across(std::size_t fold, const Partial& mine, const Partial& other,
                                   int mask) {
  if (graph_.folds[fold].commutative) return merge(fold, mine, other);
  const ValueId upper = has_lane_bit(mask);
  Partial left = mine, right = other;
  for (std::size_t i = 0; i < mine.fields.size(); ++i) {
    left.fields[i] = b_.select(upper, other.fields[i], mine.fields[i]);
    right.fields[i] = b_.select(upper, mine.fields[i], other.fields[i]);
  }
  return merge(fold, left, right);
}

Partial TileLowering::reduce(std::size_t fold, Partial a, const std::vector<int>& bits) {
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
  return reduce_lanes(std::move(a), bits_between(first, lanes));
}

Partials TileLowering::reduce_ordered(Partials a, int first) {
  for (std::size_t f = 0; f < a.size(); ++f) {
    if (graph_.folds[f].commutative || a[f].complete) continue;
    a[f] = reduce(f, std::move(a[f]), bits_between(first, kWarpWidth));
    a[f].complete = true;
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

Partials TileLowering::pair_rows(const Partials& a, const Partials& b, LanePair pair) {
  Partials paired;
  for (std::size_t f = 0; f < a.size(); ++f) {
    const bool lifted = a[f].lifted || b[f].lifted;
    const Partial x = lifted ? lift(f, a[f]) : a[f], y = lifted ? lift(f, b[f]) : b[f];
    paired.push_back(plan_.vector_lanes ? pair_by_patterns(f, x, y, pair)
                                        : pair_by_exchange(f, x, y, pair));
  }
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
  for (const Fold& fold : graph_.folds) {
    Partial partial{.fields = {}, .lifted = true, .complete = reduced && !fold.commutative};
    for (std::size_t i = 0; i < fold.state.size(); ++i) partial.fields.push_back(fields[next++]);
    partials.push_back(std::move(partial));
  }
  return partials;
}

ValueId TileLowering::finalize(std::size_t fold, const Partial& partial, int part) {
  const Fold& f = graph_.folds[fold];
  if (!partial.lifted && sums_wide(f)) {  // in its own type, and never -0
    const ValueId value = b_.add(partial.fields[0], b_.constant(f.operands[0], 0));
    return b_.convert(value, f.result(part));
  }
  return call(f.finalize, lift(fold, partial).fields)[static_cast<std::size_t>(part)];
}

std::vector<ValueId> TileLowering::finish_elements(const Loaded& tile, const OfFolds& values,
                                                   ValueId extent, Level level) {
  Scope scope = scope_of(tile);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    const auto id = static_cast<NodeId>(i);
    if (node.kind == NodeKind::extent) scope.values[id] = extent;
    if (node.kind != NodeKind::scan && node.kind != NodeKind::fold) continue;
    const auto& of_folds = node.kind == NodeKind::scan ? values.running : values.whole;
    if (of_folds.empty()) continue;
    const ValueId value = of_folds[static_cast<std::size_t>(node.index)];
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
