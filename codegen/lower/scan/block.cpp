#include "chainfold/codegen/lower/scan/block.hpp"

#include <bit>
#include <utility>

namespace chainfold::codegen {

ScanBlock::ScanBlock(Builder& builder, Program& program, const Graph& graph, ScanTile& scan,
                     std::string name)
    : b_(builder),
      program_(program),
      graph_(graph),
      scan_(scan),
      name_(std::move(name)),
      lanes_(
          static_cast<int>(std::bit_ceil(static_cast<unsigned>(program.launches.back().warps)))) {}

void ScanBlock::share(const Partials& totals) {
  own_ = totals;
  if (program_.launches.back().warps == 1) return;
  if (!declared_) declare(1);
  put(totals, b_.i64(0));
  b_.barrier();
  get(b_.i64(0));
}

void ScanBlock::declare(int tiles) {
  declared_ = true;
  totals_ = StateArrays::in_shared(program_, graph_, name_, tiles * program_.launches.back().warps);
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

ValueId ScanBlock::run_elements() { return b_.i32(static_cast<std::int32_t>(scan_.elements())); }

ValueId ScanBlock::reaches_over(ValueId slot, ValueId runs, bool backward) {
  const ValueId there = scan_.open_at(slot, backward);
  return b_.compute(Op::gt, {there, b_.mul(runs, run_elements())});
}

Partials ScanBlock::before_warp() {
  Partials before;
  // The lanes whose runs have something of the segment that goes on in the warp's, by direction.
  ValueId reaching[] = {kNoValue, kNoValue};
  const auto reaches = [&](bool backward) {
    if (!scan_.begins_anywhere() || reaching[backward] != kNoValue) return reaching[backward];
    const ValueId slot = scan_.run_slot(), one = b_.i32(1);
    return reaching[backward] =
               backward ? reaches_over(b_.add(slot, run_elements()),
                                       b_.sub(held(), b_.add(b_.warp(), one)), true)
                        : reaches_over(slot, b_.sub(b_.sub(b_.warp(), one), held()), false);
  };
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    const bool backward = scan_.reverse(f);
    const ValueId of = reaches(backward), warp = b_.splat(b_.warp());
    if (of_warps_.empty()) {
      before.push_back(scan_.tile().identity(f));
      continue;
    }
    const ValueId side = b_.compute(backward ? Op::gt : Op::lt, {held(), warp});
    before.push_back(scan_.tile().keep_where(f, of_warps_[f], b_.both(side, of)));
  }
  if (of_warps_.empty()) return before;
  return scan_.tile().reduce_lanes(std::move(before), 1, lanes_);
}

Partials ScanBlock::all() {
  if (of_warps_.empty()) return own_;
  Partials wanted = of_warps_;
  if (scan_.begins_anywhere()) {
    const auto warps = static_cast<std::int32_t>(program_.launches.back().warps);
    const ValueId slot = scan_.block_slot();
    const ValueId of = scan_.reverse()
                           ? reaches_over(slot, held(), true)
                           : reaches_over(b_.add(slot, b_.mul(b_.i32(warps), run_elements())),
                                          b_.sub(b_.i32(warps - 1), held()), false);
    for (std::size_t f = 0; f < wanted.size(); ++f)
      wanted[f] = scan_.tile().keep_where(f, std::move(wanted[f]), of);
  }
  return scan_.tile().reduce_lanes(std::move(wanted), 1, lanes_);
}

Partials ScanBlock::reaching_warp(Partials before) {
  const int warps = program_.launches.back().warps;
  if (!scan_.begins_anywhere() || warps == 1) return before;
  const ValueId slot = scan_.run_slot();
  const ValueId reaches = scan_.reverse() ? reaches_over(b_.add(slot, run_elements()),
                                                         b_.sub(b_.i32(warps - 1), b_.warp()), true)
                                          : reaches_over(slot, b_.warp(), false);
  for (std::size_t f = 0; f < before.size(); ++f)
    before[f] = scan_.tile().keep_where(f, std::move(before[f]), b_.splat(reaches));
  return before;
}

}  // namespace chainfold::codegen
