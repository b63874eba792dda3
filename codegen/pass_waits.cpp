// place_waits: where blocks that start early wait.
#include <algorithm>

#include "chainfold/codegen/launch_overlap.hpp"
#include "chainfold/codegen/lower.hpp"

namespace chainfold::codegen {

void place_waits(Program& program) {
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    if (!program.launches[i].overlaps) continue;
    const EarlyStart early(program, i);
    std::vector<Instr>& body = program.launches[i].body.body;
    const auto place = std::find_if(body.begin(), body.end(),
                                    [&](const Instr& instr) { return early.has_to_wait(instr); });
    body.insert(place, {WaitForLaunch{}, {}});
  }
}

}  // namespace chainfold::codegen
