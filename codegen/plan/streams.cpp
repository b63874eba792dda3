#include "chainfold/codegen/plan/streams.hpp"

#include <algorithm>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

std::int64_t tile_bytes(const Plan& plan, const Graph& graph) {
  return plan.segments_per_warp() * plan.segment * element_bytes(graph);
}

int streams_of(const Plan& plan, const Graph& graph, const Target& target) {
  constexpr std::int64_t kTurnBytes = 16 * 1024;  // of all streams' blocks that are next
  // What a batch reads of a stream (docs/tuned-values.md#memory-of-a-cpu).
  constexpr std::int64_t kPieceBytes = 2 * 1024;
  constexpr std::int64_t kRowBytes = 128;  // of a matrix, of which two are not in a line
  if (target.interleaved_streams == 1 || needs_order(graph)) return 1;
  const std::int64_t load = std::int64_t{kWarpWidth} * plan.load_width * widest_input(graph);
  const int of_loop = plan.depth * load == kPieceBytes * target.interleaved_streams
                          ? target.interleaved_streams
                          : 1;
  switch (plan.strategy) {
    case Strategy::parts: return of_loop;
    case Strategy::columns: {
      const std::int64_t row = plan.segment * widest_input(graph);
      const bool long_rows =
          plan.columns.strip > 0 || (plan.parts.wanted > kCpuFewBlocks && row >= kRowBytes);
      return long_rows ? plan.depth : 1;
    }
    case Strategy::rows: {
      const std::int64_t bytes = std::max<std::int64_t>(1, tile_bytes(plan, graph));
      if (plan.has_loop()) return bytes < kLoopStreamBytes ? 1 : of_loop;
      return std::clamp(floor_power_of_two(kTurnBytes / bytes), 1, target.interleaved_streams);
    }
    default: return 1;
  }
}

bool has_many_threads(const Target& target) {
  // Threads from which folds from memory gain by asking ahead
  // (docs/tuned-values.md#memory-of-a-cpu).
  constexpr int kManyThreads = 8;
  return target.is_cpu() && target.processors >= kManyThreads;
}

bool many_ask_ahead(const Target& target) {
  return target.ahead_bytes > 0 && has_many_threads(target);
}

std::int64_t ahead_of(const Plan& plan, const Graph& graph, const Target& target) {
  // Where rows of a matrix are short, those that are read next are some rows on.
  constexpr int kShortRowsAhead = 4;
  if (target.ahead_bytes == 0 || graph.inputs.empty() || plan.strided) return 0;
  const std::int64_t ahead = target.ahead_bytes / widest_input(graph);
  const std::int64_t ahead_of_many = many_ask_ahead(target) ? ahead : 0;
  switch (plan.strategy) {
    case Strategy::parts:
    case Strategy::rows: return ahead_of_many;
    case Strategy::columns:
      if (plan.segment <= ahead) return kShortRowsAhead * ahead_of_many;
      // A batch's rows are all read along; states of moments want the room in the caches.
      return has_moments(graph) ? 0 : ahead_of_many / plan.depth;
    case Strategy::scan_tile: return ahead;
    case Strategy::scan_run: return plan.segment > 0 ? ahead : ahead_of_many;
    case Strategy::look_back: return plan.scan.in_registers ? 0 : ahead_of_many;
    default: return 0;
  }
}

}  // namespace chainfold::codegen
