#include "chainfold/codegen/lower_scan_block.hpp"

#include <utility>

namespace chainfold::codegen {

ScanBlock::ScanBlock(Builder& builder, Program& program, const Graph& graph, ScanTile& scan)
    : b_(builder), program_(program), graph_(graph), scan_(scan) {}

void ScanBlock::share(const Partials& totals, int lanes) {
  lanes_ = lanes;
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
  const int warps = program_.launches.back().warps;
  ValueId mask = kNoValue;
  if (warps < lanes_) mask = b_.compute(Op::lt, {held(), b_.i32(warps)});
  of_warps_ = totals_.load(b_, scan_.tile(), {.base = at, .group = lanes_}, mask);
}

ValueId ScanBlock::held() {
  if (lanes_ == kWarpWidth) return b_.lane();
  return b_.compute(Op::bit_and, {b_.lane(), b_.i32(lanes_ - 1)});
}

Partials ScanBlock::before_warp(ValueId of) {
  Partials before;
  const ValueId warp = b_.splat(b_.warp());
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    if (of_warps_.empty()) {
      before.push_back(scan_.tile().identity(f));
      continue;
    }
    const Op side = scan_.reverse(f) ? Op::gt : Op::lt;
    const ValueId earlier = b_.both(b_.compute(side, {held(), warp}), of);
    before.push_back(scan_.tile().keep_where(f, of_warps_[f], earlier));
  }
  if (of_warps_.empty()) return before;
  return scan_.tile().reduce_lanes(std::move(before), 1, lanes_);
}

Partials ScanBlock::all() {
  return of_warps_.empty() ? own_ : scan_.tile().reduce_lanes(of_warps_, 1, lanes_);
}

}  // namespace chainfold::codegen
