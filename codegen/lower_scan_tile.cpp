#include "chainfold/codegen/lower_scan_tile.hpp"

#include <algorithm>
#include <utility>

namespace chainfold::codegen {

namespace {

constexpr int kStoreBytes = 16;

Plan range_plan(const Plan& plan) {
  Plan narrow = plan;
  narrow.strategy = Strategy::parts;  // the rest of a range is a loop, too
  narrow.load_width = 1;
  narrow.edges = false;
  narrow.depth = plan.range_depth;
  return narrow;
}

bool any_reverse(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.kind == NodeKind::scan && node.reverse;
  });
}

}  // namespace

ScanTile::ScanTile(Builder& builder, const Graph& graph, const Plan& plan, std::int64_t segment)
    : b_(builder),
      graph_(graph),
      plan_(plan),
      narrow_(range_plan(plan)),
      segment_(segment),
      reverse_(any_reverse(graph)),
      tile_(builder, graph, plan_),
      narrow_tile_(builder, graph, narrow_),
      row_(builder, tile_, graph, segment),
      narrow_row_(builder, narrow_tile_, graph, 0) {}

Loaded ScanTile::load_row(TileLowering& tile, int width, ValueId begin, std::int64_t slot,
                          ValueId count, ValueId position) {
  ValueId mask = kNoValue;
  if (count != kNoValue) {
    const ValueId lanes = b_.convert(b_.mul(b_.lane(), b_.i32(width)), DType::i64);
    mask = b_.lt(lanes, b_.sub(count, b_.i64(slot)));
  }
  return tile.load({.base = b_.add(begin, b_.i64(slot))}, width, mask, position);
}

ValueId ScanTile::row_position(ValueId place, int r) {
  if (!tile_.uses_index()) return kNoValue;
  const ValueId first = b_.add(place, b_.i64(r * row_elements()));
  const ValueId position = tile_.positions(first, kWarpWidth, plan_.load_width);
  return segment_ > 0 ? b_.rem(position, b_.i64(segment_)) : position;
}

std::vector<Loaded> ScanTile::load(ValueId begin, ValueId count, ValueId place) {
  std::vector<Loaded> rows;
  for (int r = 0; r < plan_.depth; ++r)
    rows.push_back(load_row(tile_, plan_.load_width, begin, r * row_elements(), count,
                            row_position(place, r)));
  return rows;
}

Partials ScanTile::total(const std::vector<Loaded>& rows) {
  std::vector<Partials> folded;
  for (const Loaded& row : rows) {
    // A row's lanes follow each other: what needs order is merged across them row by row.
    folded.push_back(tile_.reduce_ordered(tile_.fold_tile(row)));
  }
  Partials total = tile_.merge_all(std::move(folded));
  if (plan_.combine_states) total = tile_.lift(std::move(total));
  return tile_.lift(tile_.reduce_lanes(std::move(total), 1, kWarpWidth));
}

void ScanTile::scan(const std::vector<Loaded>& rows, ValueId begin, Carry carry, ValueId extent) {
  const auto count = static_cast<int>(rows.size());
  for (int i = 0; i < count; ++i) {
    const int r = reverse_ ? count - 1 - i : i;
    const Loaded& row = rows[static_cast<std::size_t>(r)];
    const Partials elements = tile_.fold_elements(row);
    std::vector<ValueId> scanned;
    for (std::size_t f = 0; f < graph_.folds.size(); ++f)
      scanned.push_back(row_.scan(f, elements[f], row.width, r * row_elements(), carry[f]));
    store_row(tile_, row, b_.add(begin, b_.i64(r * row_elements())), scanned, extent);
  }
}

void ScanTile::store_row(TileLowering& tile, const Loaded& row, ValueId at,
                         const std::vector<ValueId>& scanned, ValueId extent) {
  const std::vector<ValueId> outputs = tile.finish_elements(row, scanned, extent);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto buffer = static_cast<int>(graph_.inputs.size() + i);
    const ValueId value = b_.widen(outputs[i], row.width);
    const int width = std::min(row.width, kStoreBytes / size_of(b_.type(value).elem));
    for (int first = 0; first < row.width; first += width) {
      Address address{.base = b_.add(at, b_.i64(first))};
      if (width < row.width) address = {.base = address.base, .group = 1, .stride = row.width};
      b_.store(buffer, address, b_.extract(value, first, width), row.mask);
    }
  }
}

Partials ScanTile::total_of_range(ValueId begin, ValueId count, ValueId place) {
  const ValueId origin = narrow_tile_.uses_index() ? b_.sub(begin, place) : kNoValue;
  Partials total = narrow_tile_.fold_range(begin, count, origin, kNoValue, b_.i32(0), 1);
  return narrow_tile_.lift(narrow_tile_.reduce_lanes(std::move(total), 1, kWarpWidth));
}

void ScanTile::scan_range(ValueId begin, ValueId count, ValueId place, const Partials& carry,
                          ValueId extent) {
  const std::int64_t batch = std::int64_t{kWarpWidth} * narrow_.depth;
  const ValueId end = b_.add(begin, count), batches = b_.div(count, b_.i64(batch));
  // `rows` rows from `at` on, of elements before `limit` (kNoValue: all exist).
  auto scan_rows = [&](ValueId at, int rows, ValueId limit, const Builder::Values& carried) {
    Partials states = narrow_tile_.unflatten(carried, true);
    std::vector<Loaded> loaded;
    const ValueId left = limit == kNoValue ? kNoValue : b_.sub(limit, at);
    const ValueId first = narrow_tile_.uses_index() ? b_.add(place, b_.sub(at, begin)) : kNoValue;
    for (int r = 0; r < rows; ++r) {
      const std::int64_t slot = std::int64_t{r} * kWarpWidth;
      const ValueId position = narrow_tile_.uses_index()
                                   ? narrow_tile_.positions(b_.add(first, b_.i64(slot)), kWarpWidth, 1)
                                   : kNoValue;
      loaded.push_back(load_row(narrow_tile_, 1, at, slot, left, position));
    }
    for (int i = 0; i < rows; ++i) {
      const int r = reverse_ ? rows - 1 - i : i;
      const Loaded& row = loaded[static_cast<std::size_t>(r)];
      const Partials elements = narrow_tile_.fold_elements(row);
      std::vector<ValueId> scanned;
      for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
        std::optional<Partial> state = states[f];
        scanned.push_back(narrow_row_.scan(f, elements[f], 1, 0, state));
        states[f] = *state;
      }
      store_row(narrow_tile_, row, b_.add(at, b_.i64(std::int64_t{r} * kWarpWidth)), scanned,
                extent);
    }
    return narrow_tile_.flatten(narrow_tile_.lift(std::move(states)));
  };
  const ValueId zero = b_.i64(0), one = b_.i64(1), step = b_.i64(batch);
  Builder::Values carried = narrow_tile_.flatten(carry);
  carried = b_.loop(zero, batches, one, carried, [&](ValueId j, const Builder::Values& states) {
    const ValueId at = reverse_ ? b_.sub(end, b_.mul(b_.add(j, one), step))
                                : b_.add(begin, b_.mul(j, step));
    return scan_rows(at, narrow_.depth, kNoValue, states);
  });
  // What is left is at the end that the scan reaches last.
  const ValueId done = b_.mul(batches, step), rest = b_.sub(count, done);
  const ValueId rest_at = reverse_ ? begin : b_.add(begin, done), rest_end = b_.add(rest_at, rest);
  const ValueId row = b_.i64(kWarpWidth);
  const ValueId rows = b_.div(b_.add(rest, b_.i64(kWarpWidth - 1)), row);
  b_.loop(zero, rows, one, carried, [&](ValueId j, const Builder::Values& states) {
    const ValueId r = reverse_ ? b_.sub(b_.sub(rows, one), j) : j;
    return scan_rows(b_.add(rest_at, b_.mul(r, row)), 1, rest_end, states);
  });
}

}  // namespace chainfold::codegen
