// place_waits: which launches start early, where they wait, and from where on the next ones may
// start.
#include "chainfold/codegen/passes/waits.hpp"

#include <algorithm>

#include "chainfold/codegen/program/launch_overlap.hpp"

namespace chainfold::codegen {

namespace {

using Body = std::vector<Instr>;

Body::iterator place_of_wait(Program& program, std::size_t launch) {
  const EarlyStart early(program, launch);
  Body& body = program.launches[launch].body.body;
  return std::find_if(body.begin(), body.end(),
                      [&](const Instr& instr) { return early.has_to_wait(instr); });
}

/// Whether a launch behind the first does something sooner if the first does not overlap.
bool inputs_are_read_early(Program& program) {
  for (std::size_t i = 1; i < program.launches.size(); ++i) {
    program.launches[0].overlaps = false;
    const auto late = place_of_wait(program, i);
    program.launches[0].overlaps = true;
    if (place_of_wait(program, i) != late) return true;
  }
  return false;
}

}  // namespace

void place_waits(Program& program) {
  program.launches[0].overlaps = !inputs_are_read_early(program);
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    Launch& launch = program.launches[i];
    launch.overlaps = launch.overlaps || i > 0;
    Body& body = launch.body.body;
    auto start = body.begin();
    if (launch.overlaps) {
      const auto wait = body.insert(place_of_wait(program, i), {WaitForLaunch{}, {}});
      start = i == 0 ? wait + 1 : body.begin();
    }
    if (i + 1 < program.launches.size()) body.insert(start, {LetNextStart{}, {}});
  }
}

}  // namespace chainfold::codegen
