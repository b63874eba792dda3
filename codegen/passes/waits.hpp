// Pass: launches of a program overlap.
#pragma once

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Pass, for targets whose launches overlap. Before: no launch does. After: all launches overlap,
/// but for the first where others read inputs before they wait. An ordinary launch ends before
/// anything behind it starts, which no wait in another launch replaces. Each launch that overlaps
/// has a WaitForLaunch in front of its first instruction that has to wait (EarlyStart). Such an
/// instruction touches memory which may still change or be read. Where it stands in a loop or
/// branch, the WaitForLaunch stands in front of that. What is before it is done while the launch
/// before still runs. All but the last launch let the next one start: the first behind its wait,
/// the others at once.
void place_waits(Program& program);

}  // namespace chainfold::codegen
