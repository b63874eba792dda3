#include "chainfold/codegen/plan/print_scan.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

std::string print_scan(const Plan& plan) {
  std::string text;
  const bool runs = plan.strategy == Strategy::scan_run;
  if ((plan.strategy == Strategy::scan_tile || runs) && plan.segment > 0)
    text += fmt::format("  segments of a warp {}\n", plan.tile_segments);
  if (plan.strategy == Strategy::scan_block && plan.tile_segments > 0)
    text += fmt::format("  segments of a block {}\n", plan.tile_segments);
  if (plan.strategy == Strategy::look_back || plan.strategy == Strategy::propagate)
    text += fmt::format("  tile {} elements{}\n", plan.tile, plan.heads ? " of all segments" : "");
  if (plan.strategy == Strategy::look_ahead)
    text += fmt::format("  tile {} elements, stages {}, blocks {}\n", plan.tile, plan.stages,
                        plan.blocks);
  if (plan.direct) text += "  tiles fold the states before them\n";
  if (plan.state_warps > 1 || plan.states_a_lane > 1)
    text += fmt::format("  states of tiles: warps {}, {} a lane\n", plan.state_warps,
                        plan.states_a_lane);
  if (plan.near > 0) text += fmt::format("  looks at {} groups of tiles one by one\n", plan.near);
  if (plan.across > 0) text += fmt::format("  takes tiles of {} segments in turn\n", plan.across);
  if (plan.blocked) text += "  lanes have their part of a whole run one behind the other\n";
  if (plan.ragged && plan.segment > 0) text += "  tiles that are all there have no masks\n";
  if (plan.resident > 0) text += fmt::format("  at least {} blocks a processor\n", plan.resident);
  if (plan.stream_from > 0)
    text += fmt::format("  outputs of {} bytes and more pass the caches by{}\n", plan.stream_from,
                        plan.to_lines ? ", rows of ranges on lines of memory" : "");
  if (!plan.in_registers) {
    text += fmt::format("  rows {} at once", plan.range_depth);
    if (plan.range_width > 1)
      text += fmt::format(", {0} as one of {0} elements a lane", plan.range_width);
    text += runs ? ", read twice if elements ask for a fold" : ", read twice";
    if (plan.range_load > 1) text += fmt::format(", folded by {} elements a lane", plan.range_load);
    return text + "\n";
  }
  if (plan.staged == 0) return text + fmt::format("  rows {}, in registers\n", plan.depth);
  if (plan.staged == plan.depth)
    return text + fmt::format("  rows {}, in shared memory\n", plan.depth);
  return text + fmt::format("  rows {}, {} in shared memory, {} in registers\n", plan.depth,
                            plan.staged, plan.depth - plan.staged);
}

}  // namespace chainfold::codegen
