#include "chainfold/codegen/choose/moments.hpp"

#include <algorithm>
#include <cstddef>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/moments.hpp"
#include "chainfold/codegen/plan/units.hpp"

namespace chainfold::codegen {

namespace {

/// Bytes of a lane's values of a batch: within one, weights of merges are constants, and sums need
/// no compensation.
constexpr int kBatchBytes = 256;

/// Bytes of a lane's values that rows side by side may take, and their number: more is only code.
/// Measured on a Zen 4, from cache, GB/s by 1, 2, 4, 8 and 16 rows: f16 of 128 10, 16, 21, 24 and
/// 26, of 512 20, 24, 28, 30 and 30; f32 of 128 27, 37, 46, 52 and 57.
constexpr int kRowBytes = 512, kMostRows = 16;

}  // namespace

void place_moments(PlanChoice& choice, const Graph& graph, const Target& target, int width,
                   std::int64_t loads) {
  const auto is_short = [&](const Node& node) {
    if (node.kind != NodeKind::fold) return true;
    const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    return fold.moments ? node.filter == kNoNode : fold.tile.has_value();
  };
  const int bytes = width * bytes_of_moments(graph);
  if (!target.vector_lanes || bytes == 0 ||
      !std::all_of(graph.nodes.begin(), graph.nodes.end(), is_short))
    return;
  choice.depth = std::max(choice.depth, floor_power_of_two(kBatchBytes / bytes));
  if (loads > 1) choice.rows = std::min(kMostRows, floor_power_of_two(kRowBytes / (bytes * loads)));
}

}  // namespace chainfold::codegen
