// The second half of TileLowering: ranges of elements, merges across lanes, and the outputs.
#include <algorithm>

#include "chainfold/codegen/error.hpp"
#include "chainfold/codegen/lower_tile.hpp"

namespace chainfold::codegen {

std::vector<Loaded> TileLowering::load_batch(ValueId begin, int tiles, ValueId limit,
                                             ValueId row_mask) {
  const int width = plan_.load_width, step = kWarpWidth * width;
  std::vector<Loaded> loaded;
  for (int i = 0; i < tiles; ++i) {
    const ValueId at = b_.add(begin, b_.i64(static_cast<std::int64_t>(i) * step));
    ValueId mask = row_mask;
    if (limit != kNoValue) {
      const ValueId offset =
          b_.convert(b_.compute(Op::mul, {b_.lane(), b_.i32(width)}), DType::i64);
      mask = b_.both(mask, b_.lt(offset, b_.sub(limit, at)));
    }
    loaded.push_back(load({at}, width, mask));
  }
  return loaded;
}

Partials TileLowering::fold_batch(const std::vector<Loaded>& batch) {
  std::vector<Partials> tiles;
  for (const Loaded& tile : batch) tiles.push_back(fold_tile(tile));
  Partials result;
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    std::vector<Partial> parts;
    for (const Partials& partials : tiles) parts.push_back(partials[f]);
    result.push_back(tree(f, std::move(parts)));
  }
  return result;
}

Partials TileLowering::fold_range(ValueId begin, ValueId length, ValueId row_mask, ValueId warp,
                                  int warps) {
  const int width = plan_.load_width, step = kWarpWidth * width;
  const std::int64_t chunk = static_cast<std::int64_t>(step) * plan_.depth;
  const auto known = b_.constant_of(length);
  const ValueId end = b_.add(begin, length);

  if (known && !plan_.edges && warps == 1) {  // everything but the addresses is known now
    const auto total = static_cast<std::int64_t>(*known);
    const std::int64_t full = total / chunk, rest = total % chunk;
    std::optional<Partials> sum;
    if (full == 1) {
      sum = fold_batch(load_batch(begin, plan_.depth, kNoValue, row_mask));
    } else if (full > 1) {
      Partials start;
      for (std::size_t f = 0; f < graph_.folds.size(); ++f) start.push_back(identity(f));
      const ValueId behind = b_.add(begin, b_.i64(full * chunk)), stride = b_.i64(chunk);
      sum = unflatten(b_.loop(
          begin, behind, stride, flatten(start), [&](ValueId at, const Builder::Values& carried) {
            return flatten(lift(merge(
                unflatten(carried), fold_batch(load_batch(at, plan_.depth, kNoValue, row_mask)))));
          }));
    }
    if (rest > 0) {
      const auto tiles = static_cast<int>((rest + step - 1) / step);
      const bool ragged = rest % step != 0;
      // Whole tiles need no mask; only the last one is ragged.
      const ValueId at = b_.add(begin, b_.i64(full * chunk));
      std::vector<Partials> pieces;
      if (sum) pieces.push_back(*sum);
      pieces.push_back(fold_batch(load_batch(at, tiles, ragged ? end : kNoValue, row_mask)));
      sum = pieces.size() == 1 ? pieces[0] : merge(pieces[0], pieces[1]);
    }
    return *sum;
  }

  // The aligned middle [from, to) in vectors, the ragged ends one element a lane.
  ValueId from = begin, to = end;
  const ValueId wide = b_.i64(width);
  if (plan_.edges) {
    const ValueId up = b_.mul(b_.div(b_.add(begin, b_.i64(width - 1)), wide), wide);
    from = b_.min(up, end);
    to = b_.compute(Op::max, {b_.mul(b_.div(end, wide), wide), from});
  }
  const ValueId batches = b_.compute(Op::div, {b_.sub(to, from), b_.i64(chunk)});
  const ValueId rest_at = b_.add(from, b_.mul(batches, b_.i64(chunk)));
  const ValueId my_warp = b_.convert(warp, DType::i64);
  Partials start;
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) start.push_back(identity(f));
  const ValueId first = b_.add(from, b_.mul(my_warp, b_.i64(chunk))),
                stride = b_.i64(chunk * warps);
  Builder::Values sum = b_.loop(
      first, rest_at, stride, flatten(start), [&](ValueId at, const Builder::Values& carried) {
        return flatten(lift(merge(unflatten(carried),
                                  fold_batch(load_batch(at, plan_.depth, kNoValue, row_mask)))));
      });
  const ValueId mine = b_.compute(Op::eq, {b_.rem(batches, b_.i64(warps)), my_warp});
  if (plan_.strategy == Strategy::parts) {
    // Only the last part of a segment has a rest: small code counts for more than loads in flight.
    const ValueId rest = b_.select(mine, rest_at, to), tile = b_.i64(step);
    sum = b_.loop(rest, to, tile, sum, [&](ValueId at, const Builder::Values& carried) {
      return flatten(lift(merge(unflatten(carried), fold_batch(load_batch(at, 1, to, row_mask)))));
    });
  } else {
    sum = b_.branch(
        b_.both(b_.lt(rest_at, to), mine),
        [&] {
          return flatten(lift(
              merge(unflatten(sum), fold_batch(load_batch(rest_at, plan_.depth, to, row_mask)))));
        },
        [&] { return sum; });
  }
  if (plan_.edges) {
    auto edge = [&](ValueId at, ValueId limit) {
      const ValueId offset = b_.convert(b_.lane(), DType::i64);
      const ValueId mask = b_.both(row_mask, b_.lt(offset, b_.sub(limit, at)));
      return fold_tile(load({at}, 1, mask));
    };
    sum = b_.branch(
        b_.compute(Op::eq, {my_warp, b_.i64(0)}),
        [&] {
          Partials all = merge(lift(edge(begin, from)), unflatten(sum));
          return flatten(lift(merge(all, edge(to, end))));
        },
        [&] { return sum; });
  }
  return unflatten(sum);
}

Partials TileLowering::reduce_lanes(Partials a, int first, int lanes) {
  for (std::size_t f = 0; f < a.size(); ++f) {
    if (a[f].complete) continue;
    for (int mask = first; mask < lanes; mask *= 2) {
      Partial other = a[f];
      for (ValueId& field : other.fields) {
        if (b_.type(field).shape == Shape::lane) field = b_.shuffle_xor(field, mask);
      }
      a[f] = merge(f, a[f], other);
    }
  }
  return a;
}

Partials TileLowering::pair_rows(const Partials& a, const Partials& b, int mask) {
  const ValueId upper =
      b_.compute(Op::ne, {b_.compute(Op::bit_and, {b_.lane(), b_.i32(mask)}), b_.i32(0)});
  Partials paired;
  for (std::size_t f = 0; f < a.size(); ++f) {
    const Partial x = a[f].lifted || b[f].lifted ? lift(f, a[f]) : a[f];
    const Partial y = a[f].lifted || b[f].lifted ? lift(f, b[f]) : b[f];
    Partial keep = x, received = x;
    for (std::size_t i = 0; i < x.fields.size(); ++i) {
      keep.fields[i] = b_.select(upper, y.fields[i], x.fields[i]);
      if (x.complete) continue;
      // One exchange serves both rows: each lane sends what the other row's lane needs.
      const ValueId send = b_.select(upper, x.fields[i], y.fields[i]);
      received.fields[i] = b_.type(send).shape == Shape::lane ? b_.shuffle_xor(send, mask) : send;
    }
    paired.push_back(x.complete ? keep : merge(f, keep, received));
  }
  return paired;
}

std::vector<ValueId> TileLowering::flatten(const Partials& lifted) {
  std::vector<ValueId> fields;
  for (const Partial& partial : lifted) {
    for (ValueId field : partial.fields) fields.push_back(b_.splat(field));
  }
  return fields;
}

Partials TileLowering::unflatten(const std::vector<ValueId>& fields) {
  Partials partials;
  std::size_t next = 0;
  for (const Fold& fold : graph_.folds) {
    Partial partial{.fields = {}, .lifted = true};
    for (std::size_t i = 0; i < fold.state.size(); ++i) partial.fields.push_back(fields[next++]);
    partials.push_back(std::move(partial));
  }
  return partials;
}

std::vector<ValueId> TileLowering::finish(const Partials& partials, ValueId extent) {
  Scope scope;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    const auto id = static_cast<NodeId>(i);
    if (node.kind == NodeKind::extent) scope.values[id] = extent;
    if (node.kind != NodeKind::fold) continue;
    const auto f = static_cast<std::size_t>(node.index);
    scope.values[id] = call(graph_.folds[f].finalize, lift(f, partials[f]).fields)[0];
  }
  std::vector<ValueId> outputs;
  for (NodeId output : graph_.outputs) outputs.push_back(node_value(output, scope));
  return outputs;
}

}  // namespace chainfold::codegen
