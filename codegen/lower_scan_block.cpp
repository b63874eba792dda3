#include "chainfold/codegen/lower_scan_block.hpp"

#include <utility>

namespace chainfold::codegen {

int declare_shared_states(Program& program, const Graph& graph, const std::string& name,
                          int length) {
  auto& shared = program.launches.back().shared;
  const auto first = static_cast<int>(shared.size());
  int field = 0;
  for (const Fold& fold : graph.folds) {
    for (const DType type : fold.state)
      shared.push_back({name + "_" + std::to_string(field++), type, length});
  }
  return first;
}

void store_shared(Builder& b, TileLowering& tile, int first_array, ValueId at,
                  const Partials& states) {
  const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
  for (const ValueId field : tile.flatten(states))
    b.shared_store(first_array++, {at}, field, first_lane);
}

Partials load_shared(Builder& b, TileLowering& tile, const Graph& graph, int first_array,
                     ValueId at) {
  std::vector<ValueId> fields;
  for (const Fold& fold : graph.folds) {
    for (std::size_t i = 0; i < fold.state.size(); ++i)
      fields.push_back(b.shared_load(first_array++, {.base = at, .group = 1, .stride = 0}));
  }
  return tile.unflatten(fields);
}

ScanBlock::ScanBlock(Builder& builder, Program& program, const Graph& graph, ScanTile& scan)
    : b_(builder), program_(program), graph_(graph), scan_(scan) {}

void ScanBlock::share(const Partials& totals) {
  own_ = totals;
  const int warps = program_.launches.back().warps;
  if (warps == 1) return;
  const int arrays = declare_shared_states(program_, graph_, "total", warps);
  store_shared(b_, scan_.tile(), arrays, b_.convert(b_.warp(), DType::i64), totals);
  b_.barrier();
  const ValueId mask = b_.compute(Op::lt, {b_.lane(), b_.i32(warps)});
  of_warps_.clear();
  int array = arrays;
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    Partial state = scan_.tile().identity(f);
    for (ValueId& field : state.fields)
      field = b_.select(mask, b_.shared_load(array++, {b_.i64(0)}, 1, mask), field);
    of_warps_.push_back(std::move(state));
  }
}

Partials ScanBlock::fold_where(ValueId lanes) {
  Partials kept = of_warps_;
  for (std::size_t f = 0; lanes != kNoValue && f < kept.size(); ++f)
    kept[f] = scan_.tile().keep_where(f, std::move(kept[f]), lanes);
  return scan_.tile().reduce_lanes(std::move(kept), 1, kWarpWidth);
}

Partials ScanBlock::before_warp() {
  if (of_warps_.empty()) {
    Partials none;
    for (std::size_t f = 0; f < graph_.folds.size(); ++f) none.push_back(scan_.tile().identity(f));
    return none;
  }
  return fold_where(
      b_.compute(scan_.reverse() ? Op::gt : Op::lt, {b_.lane(), b_.splat(b_.warp())}));
}

Partials ScanBlock::all() { return of_warps_.empty() ? own_ : fold_where(kNoValue); }

}  // namespace chainfold::codegen
