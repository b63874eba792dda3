// lower_elements: segments of one element. A lane's load holds `load_width` of them side by side.
// Each is folded by itself (Loaded::across), and their results are stored as they were loaded. A
// warp has `depth` such loads under way. What is no whole tile is taken an element a lane. So is
// every tile where an output does not begin on the width of its stores.
#include "chainfold/codegen/lower/fold/elements.hpp"

#include <algorithm>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

class ElementsLowering {
 public:
  ElementsLowering(Program& program, const Graph& graph, const Plan& plan)
      : b_(program), graph_(graph), plan_(plan), tile_(b_, graph, plan) {}

  void lower(int segments) {
    const ValueId tile =
        b_.add(b_.mul(b_.block(), b_.i64(plan_.warps)), b_.convert(b_.warp(), DType::i64));
    const ValueId first = b_.mul(tile, b_.i64(plan_.segments_per_warp()));
    const ValueId behind = b_.add(first, b_.i64(plan_.segments_per_warp()));
    const ValueId exist = b_.param(segments);
    auto by_elements = [&] {
      lower_by_elements(first, b_.min(behind, exist));
      return Builder::Values{};
    };
    if (plan_.load_width == 1) {
      by_elements();
      return;
    }
    ValueId whole = b_.compute(Op::le, {behind, exist});
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const int unit = plan_.load_width * size_of(graph_.node(graph_.outputs[i]).type);
      whole = b_.both(whole,
                      b_.compute(Op::eq, {b_.misalignment(output(i), b_.i64(0), unit), b_.i64(0)}));
    }
    auto by_loads = [&] {
      lower_tile(first, plan_.load_width, kNoValue);
      return Builder::Values{};
    };
    b_.branch(whole, by_loads, by_elements);
  }

 private:
  [[nodiscard]] int output(std::size_t i) const {
    return static_cast<int>(graph_.inputs.size() + i);
  }

  /// Segments from `at` on, `width` a load, those from `limit` on (kNoValue: none) masked.
  void lower_tile(ValueId at, int width, ValueId limit) {
    struct Load {
      Address at{};
      Loaded elements{};
    };
    std::vector<Load> loads;
    for (int i = 0; i < plan_.depth; ++i) {
      const Address place{.base = b_.add(at, b_.i64(std::int64_t{i} * kWarpWidth * width))};
      ValueId exists = kNoValue;
      if (limit != kNoValue)
        exists = b_.lt(b_.convert(b_.lane(), DType::i64), b_.sub(limit, place.base));
      loads.push_back({place, tile_.load(place, width, exists, b_.i64(0))});
      loads.back().elements.across = true;
    }
    for (const Load& load : loads) {
      const Partials partials = tile_.fold_elements(load.elements);
      const std::vector<ValueId> outputs = tile_.finish(partials, b_.i64(1));
      for (std::size_t i = 0; i < outputs.size(); ++i)
        b_.store(output(i), load.at, b_.widen(outputs[i], width), load.elements.mask);
    }
  }

  void lower_by_elements(ValueId begin, ValueId end) {
    const std::int64_t step = std::int64_t{kWarpWidth} * plan_.depth;
    b_.loop(begin, end, b_.i64(step), {}, [&](ValueId at, const Builder::Values&) {
      lower_tile(at, 1, end);
      return Builder::Values{};
    });
  }

  Builder b_;
  const Graph& graph_;
  const Plan& plan_;
  TileLowering tile_;
};

}  // namespace

Program lower_elements(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "fold_elements";
  declare_graph(program, graph, plan, target);
  const int segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  const std::int64_t per_block = std::int64_t{plan.warps} * plan.segments_per_warp();
  program.launches.push_back({.name = "fold_elements",
                              .grid = ceil_div(SizeExpr::param(segments, "segments"), per_block),
                              .warps = plan.warps});
  ElementsLowering(program, graph, plan).lower(segments);
  return program;
}

}  // namespace chainfold::codegen
