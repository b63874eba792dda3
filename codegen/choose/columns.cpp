// The columns strategy's decisions. How the lanes of a warp lie on the matrix follows from the
// number of columns. How the rows are cut follows from how many blocks the columns give.
#include "chainfold/codegen/choose/columns.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/few.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/columns.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/streams.hpp"

namespace chainfold::codegen {

namespace {

/// Bytes of a cache's sector. A warp brings one sector more than it asks for where rows begin
/// within one.
constexpr int kSectorBytes = 32;

/// At most `runs` loads of `width` columns side by side, fewer where blocks of half as many read a
/// ninth less in all. The last block reads columns of the one before.
int runs_that_fit(std::int64_t columns, int width, int runs) {
  auto read = [&](int side) {
    const std::int64_t block = std::int64_t{side} * width * kWarpWidth;
    return (columns + block - 1) / block * block;
  };
  while (runs > 1 && 8 * read(runs) > 9 * read(runs / 2)) runs /= 2;
  return runs;
}

/// Loads side by side that a GPU's warp takes of a row.
int runs_of(const Graph& graph, const Target& target, std::int64_t columns, int width) {
  const TunedColumns& tuned = tuned_for(target).columns;
  const bool within = std::any_of(
      graph.inputs.begin(), graph.inputs.end(),
      [&](const GraphInput& input) { return columns * size_of(input.type) % kSectorBytes != 0; });
  const int bytes = kWarpWidth * width * widest_input(graph);
  int runs = within ? std::max(1, tuned.window_bytes / bytes) : 1;
  while (runs > 1 && carried_bytes(graph) * width * runs > tuned.most_state_bytes) runs /= 2;
  return runs;
}

/// Columns of one of few strips, as even as whole steps make them, whose states fit a cache.
std::int64_t strip_of(const Graph& graph, const Target& target, std::int64_t columns,
                      std::int64_t step) {
  const TunedColumns& tuned = tuned_for(target).columns;
  const std::int64_t state = std::max<std::int64_t>(1, state_bytes(graph));
  const std::int64_t fit = std::max<std::int64_t>(1, tuned.strip_bytes / state / step);
  const std::int64_t steps = (columns + step - 1) / step, strips = (steps + fit - 1) / fit;
  return (steps + strips - 1) / strips * step;
}

/// is_plain() but for moments, which take some more.
bool is_of_moments(const Graph& graph) {
  return !is_plain(graph) &&
         std::all_of(graph.folds.begin(), graph.folds.end(),
                     [](const Fold& fold) { return fold.tile || fold.moments; });
}

/// Whether a batch for moments leaves registers for two blocks: of words, beside sums at most.
bool are_light(const Graph& graph) {
  return std::all_of(graph.folds.begin(), graph.folds.end(), [](const Fold& fold) {
    return (fold.moments || fold.linear) && size_of(fold.operands[0]) <= 4;
  });
}

/// Bytes of a lane's loads for moments, whose batches are tall rather than wide.
int least_moment_bytes(const Graph& graph, const Target& target) {
  const TunedColumns& tuned = tuned_for(target).columns;
  return std::clamp(4 * widest_input(graph), tuned.moment_bytes, target.vector_bytes);
}

/// The same, but as wide as loads can be where rows are not few and begin within the windows of a
/// warp's narrow loads. Evidence: docs/tuned-values.md#columns.
int moment_bytes(const Graph& graph, const Target& target, const PlanRequest& request) {
  const int bytes = least_moment_bytes(graph, target);
  const int size = widest_input(graph);
  if (most_warps_of_few_rows(graph, target, request) > 0) return bytes;
  const bool within = request.segment % (std::int64_t{kWarpWidth} * bytes / size) != 0;
  return within && size > 1 ? target.vector_bytes : bytes;
}

int moment_loads(const Graph& graph, const Target& target, int bytes, int elements) {
  const TunedColumns& tuned = tuned_for(target).columns;
  return std::min(tuned.moment_loads, elements * widest_input(graph) / bytes);
}

/// Warps of a multiprocessor whose loads of `bytes` bytes keep memory busy.
int warps_of_processor(const Target& target, int bytes) {
  return std::min(2 * target.resident_warps, kPartWarps * target.vector_bytes / bytes);
}

/// Parts of the rows, so that the blocks of `bands` bands fill the target with `processor` warps on
/// each multiprocessor.
int parts_of(const Target& target, int warps, int processor, std::int64_t bands, bool cached) {
  const TunedColumns& tuned = tuned_for(target).columns;
  const std::int64_t wanted = target.is_cpu() ? (cached ? kCpuFewBlocks : tuned.cpu_blocks)
                                              : std::max(1, target.processors * processor / warps);
  std::int64_t parts = std::clamp<std::int64_t>(wanted / bands, 1, kMostParts);
  if (target.is_cpu()) return static_cast<int>(parts);
  // So that the blocks are little less than a multiple of what the target takes.
  auto share = [&](std::int64_t count) {
    const std::int64_t blocks = count * bands, waves = (blocks + wanted - 1) / wanted;
    return static_cast<double>(blocks) / static_cast<double>(waves * wanted);
  };
  std::int64_t best = parts;
  for (; share(best) < tuned.full_waves && parts <= tuned.more_parts; ++parts)
    if (share(parts) > share(best)) best = parts;
  return static_cast<int>(best);
}

/// Chooses the warps of a GPU's block, and parts of the rows, of folds that take few instructions
/// an element.
///
/// Blocks are as large and parts as few as let all blocks be there at once, with about `processor`
/// warps on each multiprocessor. Blocks have `least` warps at least. So many warps are equally fast
/// in blocks of any size (docs/tuned-values.md#columns). One fold of one input by narrow bands
/// (`light`), which leaves the registers for them, may have more (TunedColumns::room_of_light). Far
/// more warps take their turns, in blocks of any size; so do others that no blocks suit.
void take_blocks(PlanChoice& choice, const Target& target, int processor, std::int64_t bands,
                 int least, bool light) {
  const TunedColumns& tuned = tuned_for(target).columns;
  const std::int64_t wanted = std::int64_t{target.processors} * processor;
  auto share = [&](std::int64_t warps) {
    return static_cast<double>(bands * warps) / static_cast<double>(wanted);
  };
  const double room = light ? tuned.room_of_light : 1;
  const bool many = share(least) > (least > 1 ? tuned.many_waves : room);
  const std::int64_t turns =
      many && !light ? std::max<std::int64_t>(tuned.many_warps, least) : tuned.block_warps;
  choice.warps = static_cast<int>(turns);
  choice.parts = 1;
  double most = share(tuned.block_warps) > tuned.many_waves ? tuned.poor_share - tuned.gain : 0;
  // The fewer the parts, the fewer the states.
  for (std::int64_t warps = tuned.block_warps; warps >= least && most < tuned.full_share;
       warps /= 2) {
    if (share(warps) > room) continue;
    const std::int64_t parts = std::clamp<std::int64_t>(wanted / (bands * warps), 1, kMostParts);
    const double all = std::min(1.0, share(parts * warps));
    if (all < most + tuned.gain) continue;
    most = all;
    choice.warps = static_cast<int>(warps);
    choice.parts = static_cast<int>(parts);
  }
}

/// The same where the request is for few rows: one part, of few warps.
void take_few_rows(PlanChoice& choice, const Graph& graph, const Target& target,
                   const PlanRequest& request, int least) {
  const int most = most_warps_of_few_rows(graph, target, request);
  if (most == 0) return;
  choice.warps = std::max(least, std::min(choice.warps, most));
  choice.parts = 1;
}

/// Rows that a CPU's thread adds up before it goes on to its states
/// (docs/tuned-values.md#columns-on-a-cpu). They are TunedColumns::cpu_few_depth in three cases:
/// - States stay in the first-level cache and rows lie apart (plan/streams.hpp): the fewer places
///   are read at once, the better.
/// - Rows side by side compete for the same set of a cache.
/// - States are in scratch (`scratch`), and those of a load are as many as the registers.
int cpu_depth(const Graph& graph, const Target& target, const PlanRequest& request, bool scratch) {
  const TunedColumns& tuned = tuned_for(target).columns;
  const std::int64_t columns = std::max<std::int64_t>(1, request.segment);
  const std::int64_t row = columns * widest_input(graph), states = state_bytes(graph);
  const bool far_rows = target.interleaved_streams > 1 && !needs_order(graph);
  if (far_rows && row >= tuned.near_row_bytes && columns * states <= tuned.near_state_bytes)
    return tuned.cpu_few_depth;
  if (!is_plain(graph)) return tuned.cpu_depth;
  const bool same_sets = row % tuned.same_set_bytes == 0 && !request.strided &&
                         widest_input(graph) >= tuned.same_set_element;
  const bool crowded = scratch && kWarpWidth * carried_bytes(graph) >= target.register_bytes;
  return (same_sets && !far_rows) || crowded ? tuned.cpu_few_depth : tuned.cpu_depth;
}

}  // namespace

PlanChoice columns_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (const std::optional<PlanChoice> phased = phased_columns_choice(graph, target, request))
    return *phased;
  return narrow_columns_choice(graph, target, request);
}

std::optional<PlanChoice> phased_columns_choice(const Graph& graph, const Target& target,
                                                const PlanRequest& request) {
  const TunedColumns& tuned = tuned_for(target).columns;
  const std::int64_t columns = std::max<std::int64_t>(1, request.segment);
  const int size = widest_input(graph);
  const int narrow = widest_divisor(columns, widest_load(graph, target, target.vector_bytes));
  PlanChoice choice;
  choice.strategy = Strategy::columns;
  choice.mma = false;
  const bool moments = is_of_moments(graph);
  if (moments && narrow * size >= least_moment_bytes(graph, target)) return std::nullopt;
  for (choice.bytes = target.vector_bytes; choice.bytes > narrow * size; choice.bytes /= 2) {
    Plan place;
    place.segment = columns;
    place.strided = request.strided;
    place.load_width = widest_load(graph, target, choice.bytes);
    place.lanes_per_segment = 1;
    choice.phases = place.columns.phases = phases_of(place);
    choice.warps = std::min(8, target.max_warps);
    if (choice.phases > choice.warps) continue;
    if (!moments) place.rows = std::max(1, tuned.phased_window_bytes / (kWarpWidth * choice.bytes));
    auto fits = [&] {
      return place.columns_per_block() <= columns &&
             carried_bytes(graph) * place.load_width * place.rows <= tuned.most_state_bytes;
    };
    // Narrower bands where the last one would be mostly empty.
    auto lanes = [&](int rows) {
      Plan narrower = place;
      narrower.rows = rows;
      const std::int64_t block = narrower.columns_per_block();
      return (columns + block - 1) / block * block;
    };
    while (place.rows > 1 && (!fits() || 4 * lanes(place.rows) > 5 * lanes(place.rows / 2)))
      place.rows /= 2;
    if (!fits()) continue;
    // Loads half as wide bring less than a last band that is mostly empty.
    if (2 * narrow * size >= choice.bytes && 3 * lanes(place.rows) > 4 * columns) continue;
    const std::int64_t states = carried_bytes(graph) * place.load_width * place.rows;
    const bool few =
        moments ? are_light(graph) : is_plain(graph) && states <= tuned.few_state_bytes;
    choice.rows = place.rows;
    choice.depth = tuned.phased_bytes / (choice.bytes * choice.rows);
    if (moments)
      choice.depth =
          std::min(choice.depth, moment_loads(graph, target, choice.bytes, tuned.moment_elements));
    const std::int64_t block = place.columns_per_block();
    const std::int64_t bands = (columns + block - 1) / block;
    if (is_plain(graph)) {
      take_blocks(choice, target, warps_of_processor(target, choice.bytes), bands, choice.phases,
                  false);
    } else {
      // Moments take longer: their blocks end together where there are twice as many.
      const int processor =
          moments ? warps_of_processor(target, std::min(choice.bytes, tuned.moment_bytes))
                  : 2 * target.resident_warps;
      choice.parts = parts_of(target, choice.warps, processor, bands, false);
    }
    take_few_rows(choice, graph, target, request, choice.phases);
    choice.occupancy = few ? tuned.few_block_warps / choice.warps : 0;
    PlanRequest any = request;
    any.segment = columns;
    if (make_plan(graph, target, any, choice)) return choice;
  }
  return std::nullopt;
}

PlanChoice narrow_columns_choice(const Graph& graph, const Target& target,
                                 const PlanRequest& request) {
  const TunedColumns& tuned = tuned_for(target).columns;
  const std::int64_t columns = std::max<std::int64_t>(1, request.segment);
  const auto inputs = static_cast<int>(std::max<std::size_t>(1, graph.inputs.size()));
  PlanChoice choice;
  choice.strategy = Strategy::columns;
  choice.mma = false;
  choice.bytes = target.vector_bytes;
  choice.warps = std::min(8, target.max_warps);
  const bool one_warp = target.is_cpu();
  const std::int64_t few = few_columns_limit(graph, target);
  const bool cached = one_warp && !request.is_unlimited() && request.size_limit <= few;
  const bool moments = is_of_moments(graph), plain = is_plain(graph);
  int width = 1;
  if (one_warp) {
    const int fixed = std::max(1, target.register_bytes / tuned.fixed_run_bytes);
    // Columns whose states fit the registers at once have no need of scratch.
    choice.rows = cached || columns <= std::int64_t{fixed} * kWarpWidth
                      ? fixed
                      : std::max(1, target.register_bytes / tuned.run_bytes);
    choice.depth =
        cached ? tuned.cpu_depth
               : cpu_depth(graph, target, request, columns > std::int64_t{fixed} * kWarpWidth);
    if (cached) {
      choice.bytes = load_bytes(graph, target);
      width = widest_divisor(columns, widest_load(graph, target, choice.bytes));
      // States of all lanes that stay in registers are half of these.
      while (choice.rows > 1 &&
             2 * kWarpWidth * choice.rows * width * carried_bytes(graph) > target.register_bytes)
        choice.rows /= 2;
      // A batch is added to the states once: more of that for less bytes where elements have two.
      if (widest_input(graph) == 2 && inputs == 1 && plain) choice.depth *= 2;
    }
  } else {
    const int most = widest_input(graph);
    if (moments) choice.bytes = moment_bytes(graph, target, request);
    while (choice.bytes > most &&
           carried_bytes(graph) * (choice.bytes / most) > tuned.most_state_bytes)
      choice.bytes /= 2;
    width = widest_divisor(columns, widest_load(graph, target, choice.bytes));
    const int loads = moments
                          ? moment_loads(graph, target, width * most, tuned.moment_elements * most)
                      : width * most <= tuned.narrow_bytes ? 2 * tuned.loads
                                                           : tuned.loads;
    choice.depth = std::max(
        4, static_cast<int>(std::bit_floor(static_cast<unsigned>(loads / std::min(inputs, 2)))));
    // Windows side by side take the registers of moments' batches.
    choice.rows =
        moments && width * most >= tuned.moment_bytes ? 1 : runs_of(graph, target, columns, width);
  }
  Plan place;
  place.segment = columns;
  lie(place, width, choice.rows);
  choice.rows = cached ? runs_that_fit(columns, width, place.rows) : place.rows;
  place.rows = choice.rows;
  // Runs are in flight together, too.
  const int most_loads = kMostColumnLoads / std::min(inputs, 2);
  while (!one_warp && choice.depth > 4 && choice.depth * choice.rows > most_loads)
    choice.depth /= 2;
  // A kernel has twice the copies that it has of rows.
  while (one_warp && choice.depth > 1 && 2 * choice.depth * choice.rows > tile_loads(graph, width))
    choice.depth /= 2;
  std::int64_t block = place.columns_per_block();
  if (one_warp && !cached && columns > block) {
    block = strip_of(graph, target, columns, block);
    choice.strip = static_cast<int>(block);
  }
  const std::int64_t bands = (columns + block - 1) / block;
  const int bytes = width * widest_input(graph);
  // Runs are on their way together, too.
  const int processor = moments && bytes >= tuned.moment_bytes ? kPartWarps
                        : moments || plain
                            ? warps_of_processor(target, inputs == 1 ? bytes * choice.rows : bytes)
                            : 2 * target.resident_warps;
  if (!one_warp && (moments || plain) && choice.rows == 1) {
    const bool light = inputs == 1 && graph.folds.size() == 1 && plain;
    take_blocks(choice, target, processor, bands, 1, light);
  } else {
    choice.parts = parts_of(target, choice.warps, processor, bands, cached);
  }
  take_few_rows(choice, graph, target, request, 1);
  // States that do not fit shared memory need fewer warps, then narrower loads.
  PlanRequest any = request;
  any.segment = columns;
  while (!make_plan(graph, target, any, choice) && (choice.warps > 1 || choice.bytes > 1)) {
    if (choice.warps > 1) {
      choice.warps /= 2;
    } else {
      choice.bytes /= 2;
    }
  }
  return choice;
}

}  // namespace chainfold::codegen
