// A part of TileLowering: where the inputs' elements are, and loads of them, one or a batch.
#include <cstdint>
#include <utility>
#include <vector>

#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

void TileLowering::read_ahead_as_planned() {
  read_ahead(plan_.hints.read_ahead > 0 ? b_.i64(plan_.hints.read_ahead) : kNoValue);
}

ValueId TileLowering::positions(ValueId first, int group, int lane_stride) {
  const ValueId lane = group == kWarpWidth ? b_.lane() : b_.rem(b_.lane(), b_.i32(group));
  return b_.add(first, b_.convert(b_.mul(lane, b_.i32(lane_stride)), DType::i64));
}

ValueId TileLowering::stride(std::size_t input) {
  return b_.param(static_cast<int>(graph_.literals.size() + graph_.params.size() + input));
}

void TileLowering::place_at_row(ValueId row) {
  std::vector<ValueId> bases, steps;
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    steps.push_back(stride(i));
    bases.push_back(b_.mul(row, steps.back()));
  }
  place(std::move(bases), std::move(steps));
}

Loaded TileLowering::load(const Address& at, int width, ValueId mask, ValueId position, bool rows) {
  Loaded tile{.inputs = {}, .mask = mask, .position = position, .width = width};
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    const auto index = static_cast<int>(i);
    ValueId value = kNoValue;
    if (input_used_[i]) {
      Address place = at;
      if (!bases_.empty()) place.base = b_.add(bases_[i], at.base);
      if (!staged_) place.base = place_in_input(b_, graph_, i, place.base);
      if (rows && !steps_.empty()) {
        place.stride = 0;
        place.step = steps_[i];
      }
      value = staged_ ? b_.shared_load(index, place, width, mask)
                      : b_.load(index, place, width, mask,
                                graph_.inputs[i].is_packed() ? kNoValue : ahead_,
                                plan_.hints.evict_first && width == plan_.load_width);
    }
    tile.inputs.push_back(value);
  }
  return tile;
}

Loaded TileLowering::load_one(ValueId at, ValueId position) {
  Loaded one{.inputs = Builder::Values(graph_.inputs.size(), kNoValue), .position = position};
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
    if (input_used_[i])
      one.inputs[i] = b_.load_uniform(static_cast<int>(i), place_in_input(b_, graph_, i, at));
  return one;
}

Loaded TileLowering::load_inside(const Address& at, int width, ValueId row_mask, ValueId inside,
                                 ValueId position, bool rows) {
  const ValueId mask = b_.both(row_mask, inside);
  Loaded tile = load(at, width, mask, position, rows);
  const ValueId counts = plan_.mean_loads > 0 ? inside : mask;
  const bool by_elements = counts != kNoValue && b_.type(counts).width > 1;
  tile.mask = by_elements ? kNoValue : counts;
  tile.valid = by_elements ? counts : kNoValue;
  tile.zeros = by_elements;
  return tile;
}

ValueId TileLowering::inside(ValueId offset, ValueId end) {
  if (!plan_.has_partial_loads()) return b_.lt(offset, end);
  Builder::Values steps;
  for (int i = 0; i < plan_.load_width; ++i)
    steps.push_back(b_.constant(b_.type(end).elem, static_cast<Bits>(i)));
  return b_.lt(b_.add(offset, b_.concat(std::move(steps))), end);
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

}  // namespace chainfold::codegen
