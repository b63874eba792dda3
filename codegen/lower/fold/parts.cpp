// lower_parts: segments are cut into parts of equal length, one a block. Every part's fold states
// go to scratch, and a second launch merges the states of each segment in the order of its parts.
// Segments of one part each are finished by the first launch, and the second has no blocks. There
// is no second launch where a plan wants one part, or a cluster, whose blocks exchange their
// states.
//
// Positions are absolute: part p of the launch is part p % parts of segment p / parts. `origin` is
// the element at which the input buffers begin. So the host may pass a long input piece by piece
// without changing any part's bounds. Inputs with strides come whole: their segments begin where
// the strides say.
#include "chainfold/codegen/lower/fold/parts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/block.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/merge_states.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

/// The second launch has half as many states in flight as there can be parts, and more than few
/// parts are.
constexpr int kMergeWarps = 16;

/// Segments that are never cut into many parts are many, and each has a block: a small one.
int merge_warps(const Plan& plan) {
  if (plan.is_whole()) return kMergeWarps;
  constexpr std::int64_t kStates = std::int64_t{kWarpWidth} * kStatesInFlight;
  const std::int64_t quanta = (plan.segment - 1) / plan.parts.quantum + 1;
  const std::int64_t parts = std::min(plan.parts.wanted, quanta);
  return warps_for(parts, kStates, kMergeWarps);
}

struct PartParams {
  int elements, origin, part_begin, part_end, parts, part_length, segments;
};

class PartsLowering {
 public:
  PartsLowering(Program& program, const Graph& graph, const Plan& plan, const PartParams& params)
      : program_(program), graph_(graph), plan_(plan), params_(params) {}

  void lower_fold() {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    const ValueId parts = b.param(params_.parts), part_length = b.param(params_.part_length);
    const ValueId part = b.compute(Op::add, {b.param(params_.part_begin), b.block()});
    const ValueId length = extent(b);
    // The whole input is one segment, or each segment has one part: no division then.
    const bool whole = plan_.is_whole(), one = plan_.parts.wanted == 1;
    const ValueId each = plan_.parts.cluster > 0 ? b.i64(plan_.parts.cluster) : parts;
    const ValueId segment = whole ? b.i64(0) : one ? part : b.div(part, each);
    const ValueId rank = one ? b.i64(0) : whole ? part : b.rem(part, each);
    const ValueId within = b.mul(rank, part_length);
    ValueId begin = within, origin = kNoValue;
    if (plan_.strided) {
      tile.place_at_row(segment);
      origin = b.i64(0);
    } else {
      begin = b.compute(Op::sub, {b.add(b.mul(segment, length), within), b.param(params_.origin)});
      origin = tile.uses_index() ? b.sub(begin, within) : kNoValue;
    }
    const ValueId size = b.compute(Op::max, {b.i64(0), b.min(part_length, b.sub(length, within))});
    Partials partials =
        tile.lift(tile.fold_range_safely(begin, size, origin, kNoValue, b.warp(), plan_.warps));
    partials =
        reduce_block(b, program_, tile, tile.reduce_lanes(std::move(partials), 1, kWarpWidth));
    if (plan_.parts.cluster > 0) {
      // Where nothing is folded there is nothing to gather.
      Builder::Values told = tile.flatten(partials);
      if (!told.empty()) told = b.gather(told);
      b.branch(
          b.compute(Op::eq, {rank, b.i64(0)}),
          [&] {
            on_first_warp(b, warps(), [&] {
              put_outputs(b, tile, segment, reduce_gathered(b, tile, told, plan_.parts.cluster));
            });
            return Builder::Values{};
          },
          [] { return Builder::Values{}; });
      return;
    }
    on_first_warp(b, warps(), [&] {
      if (one) return put_outputs(b, tile, segment, partials);
      b.branch(
          b.compute(Op::eq, {parts, b.i64(1)}),
          [&] {
            put_outputs(b, tile, segment, partials);
            return Builder::Values{};
          },
          [&] {
            states().store_one(b, tile, part, partials);
            return Builder::Values{};
          });
    });
  }

  void lower_merge() {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    const ValueId parts = b.param(params_.parts);
    const ValueId segment = plan_.is_whole() ? b.i64(0) : b.block();
    const ValueId first = b.mul(segment, parts);
    const Partials start = tile.identities();
    const Partials partials = merge_states(b, program_, tile, states(), first, parts, start);
    on_first_warp(b, warps(), [&] { put_outputs(b, tile, segment, partials); });
  }

 private:
  void put_outputs(Builder& b, TileLowering& tile, ValueId segment, const Partials& partials) {
    const std::vector<ValueId> outputs = tile.finish(partials, extent(b));
    const ValueId mask = b.compute(Op::eq, {b.lane(), b.i32(0)});
    for (std::size_t i = 0; i < outputs.size(); ++i)
      b.store(static_cast<int>(graph_.inputs.size() + i), {segment}, outputs[i], mask);
  }
  /// Of the launch at hand.
  [[nodiscard]] int warps() const { return program_.launches.back().warps; }
  ValueId extent(Builder& b) {
    return plan_.segment > 0 ? b.i64(plan_.segment) : b.param(params_.elements);
  }
  /// Of all parts.
  [[nodiscard]] StateArrays states() const {
    return {StateArrays::Memory::global,
            static_cast<int>(graph_.inputs.size() + graph_.outputs.size())};
  }

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  PartParams params_;
};

}  // namespace

Program lower_parts(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "fold_parts";
  declare_graph(program, graph, plan, target);
  auto declare = [&](const char* name, ParamRole role) {
    return add_param(program, name, DType::i64, role);
  };
  const PartParams params{.elements = declare("elements", ParamRole::elements),
                          .origin = declare("origin", ParamRole::origin),
                          .part_begin = declare("part_begin", ParamRole::part_begin),
                          .part_end = declare("part_end", ParamRole::part_end),
                          .parts = declare("parts", ParamRole::parts),
                          .part_length = declare("part_length", ParamRole::part_length),
                          .segments = declare("segments", ParamRole::segments)};
  const auto param = [&](int index) { return param_size(program, index); };
  const SizeExpr merged = param(params.segments) * min(param(params.parts) - 1, 1);
  if (plan.launches > 1) declare_states(program, graph, merged * param(params.parts), 1);
  PartsLowering lowering(program, graph, plan, params);
  program.launches.reserve(2);
  program.launches.push_back({.name = "fold_parts",
                              .grid = param(params.part_end) - param(params.part_begin),
                              .warps = plan.warps,
                              .min_blocks = plan.occupancy,
                              .half_vectors = plan.hints.half_vectors,
                              .cluster = std::max(1, plan.parts.cluster)});
  lowering.lower_fold();
  if (plan.launches == 1) return program;
  program.launches.push_back({.name = "merge_parts",
                              .grid = merged,
                              .warps = std::min(target.max_warps, merge_warps(plan))});
  lowering.lower_merge();
  return program;
}

}  // namespace chainfold::codegen
