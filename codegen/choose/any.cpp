#include "chainfold/codegen/choose/any.hpp"

#include <algorithm>
#include <bit>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/units.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

namespace {

/// Loads of one input that a lane issues before their first use. Where each feeds several folds, or
/// comes with loads of other inputs, fewer do: their code would grow without keeping more bytes in
/// flight.
int choose_batch(const Graph& graph, const Target& target) {
  int halves = 0;  // folds that merge tiles are short
  // A merge an element is long. Moments merge whole batches, but keep them in registers meanwhile.
  const bool many_registers = !target.is_cpu();
  for (const Fold& fold : graph.folds) {
    const bool is_short = fold.tile || fold.accumulate;
    const int folds = is_short || (fold.moments && many_registers) ? 1 : fold.moments ? 3 : 4;
    halves += is_short && many_registers ? folds : 2 * folds;
  }
  const int shares = std::max({1, halves / 2, static_cast<int>(graph.inputs.size())});
  const int batch = std::max(
      target.min_loads_in_flight,
      static_cast<int>(std::bit_floor(static_cast<unsigned>(target.loads_in_flight / shares))));
  if (!target.vector_lanes) return batch;
  return std::min(batch, tile_loads(graph, widest_load(graph, target, load_bytes(graph, target))));
}

}  // namespace

PlanChoice any_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  PlanChoice choice;
  choice.warps = std::min(8, target.max_warps);
  choice.mma = target.has_mma && request.allow_mma;
  choice.bytes = load_bytes(graph, target);
  choice.depth = choose_batch(graph, target);
  return choice;
}

}  // namespace chainfold::codegen
