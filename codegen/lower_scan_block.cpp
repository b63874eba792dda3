#include "chainfold/codegen/lower_scan_block.hpp"

#include <utility>

namespace chainfold::codegen {

ScanBlock::ScanBlock(Builder& builder, Program& program, const Graph& graph, ScanTile& scan)
    : b_(builder), program_(program), graph_(graph), scan_(scan) {}

void ScanBlock::share(const Partials& totals) {
  own_ = totals;
  if (program_.launches.back().warps == 1) return;
  declare(1);
  put(totals, b_.i64(0));
  b_.barrier();
  get(b_.i64(0));
}

void ScanBlock::declare(int tiles) {
  totals_ =
      StateArrays::in_shared(program_, graph_, "total", tiles * program_.launches.back().warps);
}

void ScanBlock::put(const Partials& totals, ValueId at) {
  totals_.store_one(b_, scan_.tile(), b_.add(at, b_.convert(b_.warp(), DType::i64)), totals);
}

void ScanBlock::get(ValueId at) {
  const ValueId mask = b_.compute(Op::lt, {b_.lane(), b_.i32(program_.launches.back().warps)});
  of_warps_ = totals_.load(b_, scan_.tile(), {at}, mask);
}

Partials ScanBlock::before_warp() {
  Partials before;
  const ValueId warp = b_.splat(b_.warp());
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    if (of_warps_.empty()) {
      before.push_back(scan_.tile().identity(f));
      continue;
    }
    const Op side = scan_.reverse(f) ? Op::gt : Op::lt;
    before.push_back(scan_.tile().keep_where(f, of_warps_[f], b_.compute(side, {b_.lane(), warp})));
  }
  if (of_warps_.empty()) return before;
  return scan_.tile().reduce_lanes(std::move(before), 1, kWarpWidth);
}

Partials ScanBlock::all() {
  return of_warps_.empty() ? own_ : scan_.tile().reduce_lanes(of_warps_, 1, kWarpWidth);
}

}  // namespace chainfold::codegen
