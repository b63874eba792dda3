#include "chainfold/codegen/plan/print_scan.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

std::string print_scan(const Plan& plan) {
  std::string text;
  const bool runs = plan.strategy == Strategy::scan_run;
  if ((plan.strategy == Strategy::scan_tile || runs) && plan.segment > 0)
    text += fmt::format("  segments of a warp {}\n", plan.scan.tile_segments);
  if (plan.strategy == Strategy::scan_block && plan.scan.tile_segments > 0)
    text += fmt::format("  segments of a block {}\n", plan.scan.tile_segments);
  if (plan.strategy == Strategy::look_back || plan.strategy == Strategy::propagate)
    text += fmt::format("  tile {} elements{}\n", plan.scan.tile,
                        plan.scan.heads ? " of all segments" : "");
  if (plan.strategy == Strategy::look_ahead)
    text += fmt::format("  tile {} elements, stages {}, blocks {}\n", plan.scan.tile, plan.stages,
                        plan.blocks);
  if (plan.scan.direct) text += "  tiles fold the states before them\n";
  if (plan.scan.state_warps > 1 || plan.scan.states_a_lane > 1)
    text += fmt::format("  states of tiles: warps {}, {} a lane\n", plan.scan.state_warps,
                        plan.scan.states_a_lane);
  if (plan.scan.window > 0)
    text += fmt::format("  looks at {} groups of tiles one by one\n", plan.scan.window);
  if (plan.scan.interleaved > 0)
    text += fmt::format("  takes tiles of {} segments in turn\n", plan.scan.interleaved);
  if (plan.scan.blocked) text += "  lanes have their part of a whole run one behind the other\n";
  if (plan.scan.ragged && plan.segment > 0) text += "  tiles that are all there have no masks\n";
  if (plan.occupancy > 0) text += fmt::format("  at least {} blocks a processor\n", plan.occupancy);
  if (plan.hints.non_temporal_from > 0)
    text += fmt::format("  outputs of {} bytes and more pass the caches by{}\n",
                        plan.hints.non_temporal_from,
                        plan.hints.to_lines ? ", rows of ranges on lines of memory" : "");
  if (!plan.scan.in_registers) {
    text += fmt::format("  rows {} at once", plan.scan.range_depth);
    if (plan.scan.range_width > 1)
      text += fmt::format(", {0} as one of {0} elements a lane", plan.scan.range_width);
    text += runs ? ", read twice if elements ask for a fold" : ", read twice";
    if (plan.scan.range_load > 1)
      text += fmt::format(", folded by {} elements a lane", plan.scan.range_load);
    return text + "\n";
  }
  if (plan.scan.staged_rows == 0)
    return text + fmt::format("  rows {}, in registers\n", plan.depth);
  if (plan.scan.staged_rows == plan.depth)
    return text + fmt::format("  rows {}, in shared memory\n", plan.depth);
  return text + fmt::format("  rows {}, {} in shared memory, {} in registers\n", plan.depth,
                            plan.scan.staged_rows, plan.depth - plan.scan.staged_rows);
}

}  // namespace chainfold::codegen
