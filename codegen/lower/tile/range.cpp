// A part of TileLowering: batches of tiles, and ranges of elements that warps share.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/plan/streams.hpp"

namespace chainfold::codegen {

/// Batches of `chunk` elements from which on a loop has interleaved streams.
std::int64_t TileLowering::least_batches(std::int64_t chunk) const {
  return kLoopStreamBytes / std::max<std::int64_t>(1, chunk * element_bytes(graph_)) + 1;
}

Partials TileLowering::fold_batch(const std::vector<Loaded>& batch, int group,
                                  const Before* before) {
  const auto screened = [&](std::size_t f) { return before != nullptr && is_screened(f); };
  std::vector<std::vector<Partial>> parts(count());
  for (const Loaded& tile : batch) {
    Scope scope = scope_of(tile);
    for (std::size_t f = 0; f < count(); ++f)
      if (!fold_of(f).moments && !fold_of(f).relative && !takes_elements(f) && !screened(f))
        parts[f].push_back(tile.across ? fold_element(f, tile, scope) : fold_one(f, tile, scope));
  }
  Partials result;
  for (std::size_t f = 0; f < count(); ++f) {
    const bool neighbours = vector_lanes() && !fold_of(f).commutative && !batch.front().across;
    result.push_back(screened(f)           ? screen(f, batch, *before)
                     : takes_elements(f)   ? accumulate(f, batch)
                     : fold_of(f).relative ? fold_relative(f, batch)
                     : parts[f].empty()    ? fold_moments(f, batch, group)
                     : neighbours          ? tree_in_order(f, std::move(parts[f]))
                                           : tree(f, std::move(parts[f])));
  }
  return result;
}

Partials TileLowering::merge_all(std::vector<Partials> tiles) {
  Partials result;
  for (std::size_t f = 0; f < count(); ++f) {
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
  // What loops of whole batches carry.
  const bool same_counts = row_mask == kNoValue || plan_.mean_loads > 0;
  auto batch = [&](ValueId at, int tiles, ValueId limit, int whole = 0, const LoadRuns& runs = {},
                   const Before* before = nullptr) {
    const std::vector<Loaded> loads = load_batch(at, tiles, limit, row_mask, origin, whole, runs);
    const auto fold_all = [&] { return reduce_ordered(fold_batch(loads, 0, before)); };
    // Interleaved streams are no run of tiles.
    if (tiles == 1 || runs.loads > 0) return either(loads, fold_all);
    return either(loads, fold_all, [&] {
      const auto add_tile = [&](ValueId j, const Builder::Values& carried) {
        const ValueId tile_at = b_.add(at, b_.mul(j, b_.i64(step)));
        const Partials next =
            reduce_ordered(fold_batch(load_batch(tile_at, 1, limit, row_mask, origin)));
        return flatten(lift(merge(unflatten(carried, true), next)));
      };
      return unflatten(
          b_.loop(b_.i64(0), b_.i64(tiles), b_.i64(1), flatten(identities()), add_tile), true);
    });
  };
  auto add_batch = [&](const Builder::Values& carried, ValueId at, int tiles, ValueId limit,
                       const LoadRuns& runs = {}) {
    const Partials states = unflatten(carried, true);
    const bool behind = plan_.hints.screens && limit == kNoValue && !has_quick();
    const Before before{states, behind ? b_.sub(at, origin) : kNoValue, runs};
    return flatten(
        lift(merge(states, batch(at, tiles, limit, 0, runs, behind ? &before : nullptr))), 1,
        same_counts && limit == kNoValue);
  };
  // A loop's batches take as much of each interleaved stream, and move on as far.
  const bool streams = plan_.hints.streams > 1 && warps == 1;
  const std::int64_t hop = chunk / plan_.hints.streams;
  LoadRuns runs{.loads = streams ? plan_.depth / plan_.hints.streams : 0};

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
      if (streams) runs.apart = b_.i64(full * hop);
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
  if (streams) {  // of short ranges, next to each other
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
  // Edges are on their way while the middle is folded, but not in vectors that it needs. Some are
  // widened, as narrow integers and what is added to wider states. These come with what the loop
  // leaves, unless warps fold runs in order. A compiler widens them where they arrive, and a loop
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
  const ValueId stride = streams ? move : b_.i64(warp_runs ? chunk : chunk * warps);
  if (warps > 1) {
    own = {.first = first, .stop = stop, .stride = stride, .length = b_.i64(chunk)};
    if (plan_.edges) {
      own.head = {.begin = begin, .end = from, .by = first_warp};
      own.tail = {.begin = to, .end = end, .by = warp_runs ? last_warp : first_warp};
    }
  }
  if (streams) stop = b_.add(from, b_.mul(batches, move));
  Builder::Values sum = b_.loop(first, stop, stride, flatten(start, 1, same_counts),
                                [&](ValueId at, const Builder::Values& carried) {
                                  return add_batch(carried, at, plan_.depth, kNoValue, runs);
                                });
  if (plan_.strategy == Strategy::parts && plan_.parts.cluster == 0 && (warp_runs || warps == 1)) {
    // On a CPU only the last part of a segment has a rest. In order only one warp can fold it. So
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

}  // namespace chainfold::codegen
