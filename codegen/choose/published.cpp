// Choices of the published strategies that are worth measuring.
#include "chainfold/codegen/choose/published.hpp"

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"

namespace chainfold::codegen {

std::vector<PlanChoice> published_choices(const Graph& graph, const Target& target,
                                          const PlanRequest& request) {
  std::vector<PlanChoice> choices;
  const std::int64_t s = request.segment;
  if (published_mma_row(graph, target) < 0 || !request.allow_mma) return choices;
  const bool loose = request.accuracy == Accuracy::as_published;
  auto add = [&](Strategy strategy, PlanChoice choice) {
    if (!serves_published(strategy, s) || (strategy == Strategy::padded) != has_offsets(graph))
      return;
    choice.strategy = strategy;
    if (choice.warps == 1) choice.warps = 8;
    choices.push_back(choice);
  };
  add(Strategy::reduction16, {.rows = 2});
  add(Strategy::reduction16, {.rows = 4});
  if (s > kSquareRow && s <= 1024) add(Strategy::strided16n, {.depth = 4, .chain = 1});
  // Multiples of 256 have forms of their own, which a tuner would rather spend its time on.
  if (s % kSquare != 0 || loose) add(Strategy::coalesced16n, {.depth = 4, .chain = 1});
  add(Strategy::reduction256, {.rows = 4});
  if (s > kSquare) {
    add(Strategy::inefficient256n, {.depth = 4});
    add(Strategy::efficient256n, {.depth = 8, .chain = 1});
    if (s >= 8 * kSquare) add(Strategy::block256n, {.warps = 4, .depth = 4, .chain = 1});
  }
  add(Strategy::grid256n, {.warps = 16, .depth = 4, .occupancy = 4, .chain = 1});
  add(Strategy::single_pass, {.warps = 4, .occupancy = 8, .chain = loose ? 4 : 1});
  add(Strategy::split, {.warps = 8, .depth = 4, .occupancy = 4, .fraction = 50});
  for (const int depth : {1, 2, 4}) add(Strategy::padded, {.depth = depth, .chain = 1});
  if (!loose) return choices;
  if (s > kSquareRow && s <= 1024) add(Strategy::strided16n, {.depth = 4, .chain = 0});
  add(Strategy::reduction256, {.rows = 4, .product = 1});
  add(Strategy::inefficient256n, {.depth = 4, .product = 1});
  add(Strategy::efficient256n, {.depth = 8, .chain = 0, .product = 1});
  if (s > kSquare) add(Strategy::block256n, {.warps = 4, .depth = 4, .chain = 0, .product = 1});
  add(Strategy::recurrence, {.warps = 2, .chain = 5});
  add(Strategy::single_pass, {.warps = 4, .occupancy = 8, .chain = 4, .product = 1});
  add(Strategy::padded, {.depth = 4, .chain = 0});
  return choices;
}

std::vector<PlanChoice> published_scan_choices(const Graph& graph, const Target& target,
                                               const PlanRequest& request) {
  std::vector<PlanChoice> choices;
  if (!request.allow_mma) return choices;
  for (const Published& known : published_scans()) {
    // A launch of the grid's neither begins with a carry nor leaves one: it is for those who ask.
    if (!serves_published_scan(known.strategy, request.segment) || request.is_whole()) continue;
    if (published_scan_mma_row(known.strategy, graph, target) < 0) continue;
    PlanChoice choice{.strategy = known.strategy, .warps = 8, .chain = 1};
    for (const int rows : {1, 2, 4}) {
      choice.rows = rows;
      choices.push_back(choice);
    }
    if (request.accuracy != Accuracy::as_published) continue;
    choice.chain = 0;
    choice.product = 1;
    choices.push_back(choice);
  }
  return choices;
}

}  // namespace chainfold::codegen
