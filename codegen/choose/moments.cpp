#include "chainfold/codegen/choose/moments.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/moments.hpp"
#include "chainfold/codegen/plan/units.hpp"

namespace chainfold::codegen {

void choose_moments(PlanChoice& choice, const Graph& graph, const Target& target, int width,
                    std::int64_t loads) {
  const TunedMoments& tuned = tuned_for(target).moments;
  const auto is_short = [&](const Node& node) {
    if (node.kind != NodeKind::fold) return true;
    const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    return fold.moments ? node.filter == kNoNode : fold.tile.has_value();
  };
  const int bytes = width * bytes_of_moments(graph);
  if (!target.vector_lanes || bytes == 0 ||
      !std::all_of(graph.nodes.begin(), graph.nodes.end(), is_short))
    return;
  choice.depth = std::max(choice.depth, floor_power_of_two(tuned.batch_bytes / bytes));
  if (loads > 1)
    choice.rows = std::min(tuned.most_rows, floor_power_of_two(tuned.row_bytes / (bytes * loads)));
}

int loads_of_moments(const Graph& graph, const Target& target, int width) {
  const bool bytes = !target.is_cpu() && widest_input(graph) == 1;
  return bytes ? std::max(1, tuned_for(target).moments.most_words / width)
               : std::numeric_limits<int>::max();
}

}  // namespace chainfold::codegen
