#include "chainfold/codegen/choose/space.hpp"

#include <algorithm>
#include <utility>

#include "chainfold/codegen/choose/columns.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/few.hpp"
#include "chainfold/codegen/choose/merge_path.hpp"
#include "chainfold/codegen/choose/parts.hpp"
#include "chainfold/codegen/choose/published.hpp"
#include "chainfold/codegen/choose/rows.hpp"
#include "chainfold/codegen/choose/scan_guess.hpp"
#include "chainfold/codegen/choose/scan_heads.hpp"
#include "chainfold/codegen/choose/scan_staged.hpp"
#include "chainfold/codegen/choose/staged.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

namespace {

/// Shorter segments leave most of a block without work when they are cut.
constexpr std::int64_t kShortestInParts = 4096;
/// More elements than this are no warp's work.
constexpr std::int64_t kLongestInRows = std::int64_t{1} << 20;

/// Collects choices whose plans differ.
class Space {
 public:
  Space(const Graph& graph, const Target& target, const PlanRequest& request)
      : graph_(graph), target_(target), request_(request) {}

  void add(const PlanChoice& choice) {
    const std::optional<Plan> plan = make_plan(graph_, target_, request_, choice);
    if (!plan) return;
    std::string text = print(*plan, graph_);
    if (std::find(seen_.begin(), seen_.end(), text) != seen_.end()) return;
    seen_.push_back(std::move(text));
    choices_.push_back(choice);
  }
  /// The choice with one decision taken differently, for each value after the other.
  void vary(const PlanChoice& around, int PlanChoice::* decision,
            std::initializer_list<int> values) {
    for (const int value : values) {
      PlanChoice choice = around;
      choice.*decision = value;
      add(choice);
    }
  }
  std::vector<PlanChoice> take() { return std::move(choices_); }

 private:
  const Graph& graph_;
  const Target& target_;
  const PlanRequest& request_;
  std::vector<PlanChoice> choices_;
  std::vector<std::string> seen_;
};

void add_rows(Space& space, const PlanChoice& around, bool products) {
  for (const int warps : {8, 4, 16}) {
    PlanChoice choice = around;
    choice.warps = warps;
    space.vary(choice, &PlanChoice::rows, {around.rows, 1, 2, 4, 8});
    space.vary(choice, &PlanChoice::depth, {4, 8, 16});
  }
  if (products && !around.mma) {  // lanes are the best guess
    PlanChoice choice = around;
    choice.mma = true;
    for (const int warps : {8, around.warps}) {
      choice.warps = warps;
      space.vary(choice, &PlanChoice::depth, {around.depth, std::max(1, around.depth / 2)});
    }
  }
  if (around.bytes == 8) {  // elements of 8 bytes one a load: pairs that begin anywhere as well
    PlanChoice pairs = around;
    pairs.bytes = 16;
    space.vary(pairs, &PlanChoice::depth, {std::max(1, around.depth / 2), around.depth});
  }
  space.vary(around, &PlanChoice::bytes, {8, 4});
  PlanChoice lanes = around;
  lanes.mma = false;
  space.vary(lanes, &PlanChoice::rows, {around.rows, 1, 2, 4, 8});
}

void add_elements(Space& space, const PlanChoice& around) {
  for (const int warps : {8, 4, 16}) {
    PlanChoice choice = around;
    choice.warps = warps;
    space.vary(choice, &PlanChoice::depth, {1, 2, 4});
  }
  space.vary(around, &PlanChoice::bytes, {8, 4});
}

void add_merge_paths(Space& space, const PlanChoice& around) {
  for (const int rows : {around.rows, 1, 2, 4, 8, 16, 32}) {
    PlanChoice choice = around;
    choice.rows = rows;
    for (const int depth : {around.depth, 1, 2, 4, 8, 16}) {
      choice.depth = depth;
      space.vary(choice, &PlanChoice::parts,
                 {around.parts, std::max(1, around.parts / 2), std::max(1, around.parts / 4)});
    }
  }
  space.vary(around, &PlanChoice::bytes, {8, 4});
  if (around.apart > 0) space.vary(around, &PlanChoice::apart, {0, 1, 4, 16, 64});
}

void add_parts(Space& space, const PlanChoice& around) {
  if (around.cluster > 0) {
    for (const int warps : {8, 4, 16, 32}) {
      for (const int blocks : {around.cluster, around.cluster / 2}) {
        PlanChoice choice = around;
        choice.warps = warps;
        choice.parts = choice.cluster = blocks;
        space.vary(choice, &PlanChoice::depth, {around.depth, 4, 8, 16});
      }
    }
    return;
  }
  for (const int warps : {8, 4, 16, 32}) {
    PlanChoice choice = around;
    choice.warps = warps;
    choice.parts = std::clamp(around.parts * around.warps / warps, 1, kMostParts);
    space.vary(choice, &PlanChoice::depth, {4, 2, 8});
  }
  space.vary(around, &PlanChoice::parts,
             {std::max(1, around.parts / 2), std::min(kMostParts, around.parts * 2)});
  // As many as multiprocessors keep busy, where the guess is as many as can be.
  space.vary(around, &PlanChoice::parts,
             {std::max(1, around.parts / 16), std::max(1, around.parts / 8)});
  PlanChoice lanes = around;
  lanes.mma = false;
  space.vary(lanes, &PlanChoice::depth, {4, 8});
}

/// Few long segments: a block each, or a cluster.
void add_shares(Space& space, const PlanChoice& around, const Target& target) {
  space.add(around);
  for (const int blocks : {1, target.cluster_blocks / 2, target.cluster_blocks}) {
    if (blocks < 1) continue;
    PlanChoice choice = around;
    choice.parts = blocks;
    choice.cluster = blocks > 1 ? blocks : 0;
    for (choice.warps = 8; choice.warps <= 16; choice.warps *= 2)
      space.vary(choice, &PlanChoice::depth, {around.depth, around.depth / 2});
  }
}

void add_staged(Space& space, const PlanChoice& around) {
  space.add(around);
  const bool one_burst = around.tail_trips > 0 && around.tail_trips == around.store_batch;
  // Store batches of other lengths; those of blocks that take one each stay so.
  const auto add_batch = [&](PlanChoice choice, int batch) {
    choice.store_batch = std::max(batch, choice.stages);
    choice.tail_trips =
        one_burst ? choice.store_batch : std::min(choice.tail_trips, choice.store_batch / 2);
    space.add(choice);
  };
  for (const int warps : {4, 8, 16}) {
    PlanChoice choice = around;
    choice.warps = warps;
    choice.occupancy = std::max(1, around.occupancy * around.warps / warps);
    // Tail blocks, and blocks of one store batch, have as many bytes by any number of warps.
    const auto alike = [&](int rounds) { return std::max(1, rounds * around.warps / warps); };
    if (around.tail_trips > 0) choice.tail_trips = alike(around.tail_trips);
    for (const int stages : {2, 4}) {
      choice.stages = stages;
      add_batch(choice, one_burst ? alike(around.store_batch) : around.store_batch);
    }
  }
  for (const int batch : {around.store_batch / 4, around.store_batch / 2, around.store_batch * 2})
    add_batch(around, batch);
  space.vary(around, &PlanChoice::tail_trips, {0, around.tail_trips / 2, around.tail_trips * 2});
  if (!one_burst) {
    PlanChoice ends = around;
    ends.store_batch = ends.tail_trips = std::max(around.stages, around.tail_trips / 2);
    ends.occupancy = around.occupancy + 1;
    space.add(ends);
  }
  space.vary(around, &PlanChoice::lanes, {1, 4, 8, 32});
  space.vary(around, &PlanChoice::rows, {std::max(1, around.rows / 2), around.rows * 2});
  PlanChoice lanes = around;
  lanes.mma = false;
  space.add(lanes);
}

void add_columns(Space& space, const PlanChoice& around, bool one_warp) {
  const int few = std::max(1, around.parts / 2), many = std::min(kMostParts, 2 * around.parts);
  for (const int parts : {around.parts, few, many, 1}) {
    PlanChoice choice = around;
    choice.parts = parts;
    space.vary(choice, &PlanChoice::depth, {8, 4, 16, 32});
  }
  space.vary(around, &PlanChoice::rows, {1, 2, 4, 8});
  if (one_warp) {
    PlanChoice stays = around;
    stays.strip = 0;
    space.vary(stays, &PlanChoice::rows, {4, 2, 1});
    return;
  }
  space.vary(around, &PlanChoice::warps, {4, 16, 2, 1});
  space.vary(around, &PlanChoice::bytes, {8, 4});
}

/// Rows in phases: what is in flight beside what waits in registers, and narrow loads.
void add_phased_columns(Space& space, const PlanChoice& around, const PlanChoice& narrow) {
  struct Shape {
    int depth, runs;
  };
  for (const Shape shape : {Shape{8, 2}, {4, 2}, {8, 1}, {16, 1}}) {
    PlanChoice choice = around;
    choice.depth = shape.depth;
    choice.rows = shape.runs;
    space.vary(choice, &PlanChoice::occupancy, {2, 3, 0});
  }
  space.vary(narrow, &PlanChoice::rows, {narrow.rows, 4, 2});
  space.vary(narrow, &PlanChoice::depth, {4, 16});
}

bool runs_on_quads(const Graph& graph, const Target& target, const PlanRequest& request,
                   const PlanChoice& choice) {
  const std::optional<Plan> plan = make_plan(graph, target, request, choice);
  return plan && std::any_of(plan->folds.begin(), plan->folds.end(),
                             [](const FoldPlan& fold) { return fold.unit != Unit::simt; });
}

/// Scans of one strategy on tensor cores, where they serve.
void add_quads(Space& space, Strategy strategy, const Graph& graph, const Target& target,
               const PlanRequest& request) {
  const std::optional<PlanChoice> around =
      scan_choice_of(strategy, graph, target, request, target.has_mma);
  auto add = [&](const PlanChoice& choice) {
    if (runs_on_quads(graph, target, request, choice)) space.add(choice);
  };
  if (!around) return;
  for (const int bytes : {16, 8, 4}) {
    PlanChoice choice = *around;
    choice.bytes = bytes;
    for (const int depth : {around->depth, 1, 2, 4, 8, 16}) {
      choice.depth = depth;
      add(choice);
    }
    choice.depth = around->depth;
    for (const int warps : {4, 8, 16}) {
      choice.warps = warps;
      add(choice);
    }
  }
}

/// Tiles in registers, where they wait for what comes before them. The more registers they fill,
/// the more of memory is on its way. The more blocks they belong to, the more of these compute
/// while others wait. Fewer warps have more registers each.
void add_tiles(Space& space, Strategy strategy, const Graph& graph, const Target& target,
               const PlanRequest& request) {
  struct Share {
    int eighths, warps;  // of the best guess's rows; of a multiprocessor
  };
  constexpr Share kShares[] = {{8, 16}, {8, 24}, {4, 32}, {4, 24}, {12, 16}, {16, 8}, {2, 32}};
  for (const bool mma : {false, true}) {
    if (mma && !target.has_mma) continue;
    const auto around = scan_choice_of(strategy, graph, target, request, mma);
    if (!around) return;
    space.add(*around);
    if (strategy == Strategy::look_back) space.vary(*around, &PlanChoice::interleaved, {16});
    if (shape_of_few(graph, target, request)) space.vary(*around, &PlanChoice::direct, {0, 1});
    for (const Share& share : kShares) {
      for (const int warps : {8, 4, 16}) {
        PlanChoice choice = *around;
        choice.depth = std::max(1, around->depth * share.eighths / 8);
        choice.warps = warps;
        choice.occupancy = share.warps / warps;
        if (choice.occupancy * warps == share.warps) space.add(choice);
      }
    }
  }
}

/// The same with most of a tile in shared memory, where a multiprocessor has room for more bytes on
/// their way. Shapes are of rows of 512 bytes; `row`: bytes of a row.
void add_staged_shapes(Space& space, const PlanChoice& around, int row) {
  struct Shape {
    int warps, staged, kept, blocks;
  };
  constexpr Shape kShapes[] = {{8, 12, 4, 4},  {8, 16, 8, 3}, {8, 13, 8, 4}, {4, 12, 4, 8},
                               {8, 24, 16, 2}, {8, 18, 8, 3}, {8, 8, 8, 4}};
  constexpr int kRowBytes = 512, kMostRows = 64;
  for (const Shape& shape : kShapes) {
    const int rows = (shape.staged + shape.kept) * kRowBytes;
    PlanChoice choice = around;
    choice.warps = shape.warps;
    choice.occupancy = shape.blocks;
    choice.depth = std::min(kMostRows, rows / row);
    choice.staged = choice.depth * shape.staged / (shape.staged + shape.kept);
    if (choice.staged > 0) space.add(choice);
  }
}

/// Bytes of a row of loads as wide as the target's, of elements of `element` bytes.
int row_bytes(const Graph& graph, const Target& target, const PlanRequest& request, int element) {
  return kWarpWidth * widest_load(target, request, element) * element_bytes(graph);
}

void add_staged_tiles(Space& space, const Graph& graph, const Target& target,
                      const PlanRequest& request) {
  if (!target.bulk_copies || graph.inputs.empty()) return;
  for (const bool mma : {false, true}) {
    if (mma && !target.has_mma) continue;
    const auto around = scan_choice_of(Strategy::look_back, graph, target, request, mma);
    if (!around) return;
    if (const auto staged = staged_scan_choice(graph, target, request, mma)) {
      space.add(*staged);
      space.vary(*staged, &PlanChoice::window, {0, 1, 3});
      space.vary(*staged, &PlanChoice::interleaved, {0, 16, 64, 256});
      space.vary(*staged, &PlanChoice::blocked, {0, 1});
    }
    const int element = mma ? widest_input(graph) : widest_of_scan(graph);
    add_staged_shapes(space, *around, row_bytes(graph, target, request, element));
  }
}

/// Tiles of all segments, where those of one have narrower loads.
void add_heads(Space& space, const Graph& graph, const Target& target, const PlanRequest& request) {
  const auto around = heads_scan_choice(graph, target, request);
  const int element = widest_of_scan(graph);
  // Those of one segment are as good where they begin and end with tiles of whole loads.
  constexpr std::int64_t kShort = 2048;
  const bool whole_loads = request.segment % widest_load(target, request, element) == 0;
  if (!around || (whole_loads && request.segment <= kShort)) return;
  space.add(*around);
  space.vary(*around, &PlanChoice::window, {1});
  PlanChoice in_registers = *around;
  in_registers.staged = 0;
  space.vary(in_registers, &PlanChoice::depth, {4, 8});
  if (target.bulk_copies && !graph.inputs.empty())
    add_staged_shapes(space, *around, row_bytes(graph, target, request, element));
}

/// Persistent loops, by lanes and on tensor cores. Their decisions are about what is in shared
/// memory, or a CPU's cache, and on its way there.
void add_ahead(Space& space, const Graph& graph, const Target& target, const PlanRequest& request) {
  for (const bool mma : {false, true}) {
    if (mma && !target.has_mma) continue;
    const auto around = scan_choice_of(Strategy::look_ahead, graph, target, request, mma);
    if (!around) return;
    space.add(*around);
    space.vary(*around, &PlanChoice::depth, {std::max(1, around->depth / 2), 2 * around->depth});
    if (around->tile > 0) {
      space.vary(*around, &PlanChoice::tile,
                 {std::max(1, around->tile / 4), std::max(1, around->tile / 2), 2 * around->tile});
      continue;
    }
    space.vary(*around, &PlanChoice::warps, {4, 16});
    space.vary(*around, &PlanChoice::occupancy, {1, 3, 4});
    space.vary(*around, &PlanChoice::stages, {3, 6});
  }
}

/// Blocks of several segments: wider loads than the best guess, if its rows are then enough, and
/// narrower ones for fewer segments.
void add_groups(Space& space, const PlanChoice& around, const Graph& graph, const Target& target,
                const PlanRequest& request) {
  auto add = [&](const PlanChoice& choice) {
    const std::optional<Plan> plan = make_plan(graph, target, request, choice);
    if (plan && plan->scan.tile_segments > 0) space.add(choice);
  };
  struct Shape {
    int warps, depth;
  };
  for (const int bytes : {16, 8, 4, 2, 1}) {
    PlanChoice choice = around;
    choice.bytes = bytes;
    for (const int blocks : {around.occupancy, 0}) {
      choice.occupancy = blocks;
      add(choice);
    }
    for (const Shape shape :
         {Shape{4, 7}, {5, 5}, {7, 7}, {8, 4}, {8, 8}, {16, 5}, {16, 9}, {22, 6}, {26, 5}}) {
      choice.warps = shape.warps;
      choice.depth = shape.depth;
      add(choice);
    }
  }
}

/// Every strategy of scans around its own best guess.
void add_scans(Space& space, const Graph& graph, const Target& target, const PlanRequest& request) {
  const bool one_warp = target.is_cpu();
  for (const Strategy strategy : {Strategy::scan_tile, Strategy::scan_run, Strategy::scan_block,
                                  Strategy::look_back, Strategy::propagate}) {
    if (!one_warp && (strategy == Strategy::look_back || strategy == Strategy::propagate)) {
      add_tiles(space, strategy, graph, target, request);
      if (strategy == Strategy::look_back) {
        add_staged_tiles(space, graph, target, request);
        add_heads(space, graph, target, request);
      }
      continue;
    }
    const std::optional<PlanChoice> around = scan_choice_of(strategy, graph, target, request);
    if (!around) continue;
    space.add(*around);
    space.vary(*around, &PlanChoice::depth, {1, 2, 3, 4, 6, 8, 12, 16});
    if (around->tile > 0) {
      space.vary(*around, &PlanChoice::tile,
                 {std::max(1, around->tile / 4), std::max(1, around->tile / 2), 2 * around->tile});
    }
    if (one_warp) continue;
    if (strategy == Strategy::scan_block) add_groups(space, *around, graph, target, request);
    add_quads(space, strategy, graph, target, request);
    for (const int warps : {4, 8, 16, 32}) {
      PlanChoice choice = *around;
      choice.warps = warps;
      space.add(choice);
      // A block's segment takes fewer rows the more warps there are.
      choice.depth = std::max(1, around->depth * around->warps / warps);
      space.add(choice);
    }
    space.vary(*around, &PlanChoice::occupancy, {0, 1, 2, 3, 4, 6, 8});
    space.vary(*around, &PlanChoice::bytes, {8, 4});
  }
}

void add_cpu(Space& space, const PlanChoice& around) {
  space.vary(around, &PlanChoice::depth, {8, 16, 32, 64});
  if (around.strategy == Strategy::rows) {
    space.vary(around, &PlanChoice::rows, {4, 8, 16, 32});
    if (around.lanes > 0) space.vary(around, &PlanChoice::lanes, {4, 8, 16, 32});
  } else {
    space.vary(around, &PlanChoice::parts, {256, 512, 2048, 4096});
  }
  space.vary(around, &PlanChoice::bytes, {0});  // one element a load
}

}  // namespace

std::vector<PlanChoice> plan_space(const Graph& graph, const Target& target,
                                   const PlanRequest& request) {
  const PlanChoice best_guess = default_choice(graph, target, request);
  Space space(graph, target, request);
  space.add(best_guess);
  if (best_guess.strategy == Strategy::head_tiles) {
    space.vary(best_guess, &PlanChoice::depth, {1, 2, 4, 8, 16});
    space.vary(best_guess, &PlanChoice::parts, {best_guess.parts / 2, best_guess.parts * 2});
    space.vary(best_guess, &PlanChoice::bytes, {8, 4});
    add_merge_paths(space, merge_path_choice(graph, target, request));
    return space.take();
  }
  if (best_guess.strategy == Strategy::merge_path) {
    add_merge_paths(space, best_guess);
    for (const PlanChoice& choice : published_choices(graph, target, request)) space.add(choice);
    return space.take();
  }
  if (has_scans(graph)) {
    add_scans(space, graph, target, request);
    add_ahead(space, graph, target, request);
    for (const PlanChoice& choice : published_scan_choices(graph, target, request))
      space.add(choice);
    return space.take();
  }
  if (best_guess.strategy == Strategy::columns) {
    add_columns(space, best_guess, target.is_cpu());
    if (target.is_cpu() && !request.is_unlimited()) {
      PlanRequest longer = request;
      longer.size_limit = 0;
      space.add(narrow_columns_choice(graph, target, longer));
    }
    if (best_guess.phases > 1)
      add_phased_columns(space, best_guess, narrow_columns_choice(graph, target, request));
    return space.take();
  }
  if (target.is_cpu()) {
    add_cpu(space, best_guess);
    return space.take();
  }
  if (best_guess.strategy == Strategy::elements) {
    add_elements(space, best_guess);
    space.add(rows_choice(graph, target, request));
    return space.take();
  }
  const std::int64_t s = request.segment;
  const bool parts = best_guess.strategy == Strategy::parts;
  const bool products = target.has_mma && request.allow_mma;
  // Each strategy's plans lie around its own best guess.
  if (best_guess.strategy != Strategy::rows && s > 0 && s <= kLongestInRows)
    add_rows(space, rows_choice(graph, target, request), products);
  if (best_guess.strategy == Strategy::rows) add_rows(space, best_guess, products);
  if (parts || s >= kShortestInParts) {
    const PlanChoice guess = parts_choice(graph, target, request);
    const bool few_long = blocks_of_few_long(graph, target, request) > 0;
    few_long ? add_shares(space, guess, target) : add_parts(space, guess);
    PlanRequest longer = request;
    longer.size_limit = 0;
    if (few_long || guess.cluster > 0) add_parts(space, parts_choice(graph, target, longer));
  }
  if (const std::optional<PlanChoice> staged = staged_choice(graph, target, request))
    add_staged(space, *staged);
  for (const PlanChoice& choice : published_choices(graph, target, request)) space.add(choice);
  return space.take();
}

}  // namespace chainfold::codegen
