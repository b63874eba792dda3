// place_waits: where blocks that start early wait, and from where on the next ones may start.
#include <algorithm>

#include "chainfold/codegen/launch_overlap.hpp"
#include "chainfold/codegen/lower.hpp"

namespace chainfold::codegen {

void place_waits(Program& program) {
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const EarlyStart early(program, i);
    std::vector<Instr>& body = program.launches[i].body.body;
    auto place = std::find_if(body.begin(), body.end(),
                              [&](const Instr& instr) { return early.has_to_wait(instr); });
    place = body.insert(place, {WaitForLaunch{}, {}});
    if (i + 1 < program.launches.size())
      body.insert(i == 0 ? place + 1 : body.begin(), {LetNextStart{}, {}});
    program.launches[i].overlaps = true;
  }
}

}  // namespace chainfold::codegen
