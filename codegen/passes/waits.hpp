// Pass: launches of a program overlap.
#pragma once

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Pass, for targets whose launches overlap. Before: no launch does. After: all do, but for the
/// first where others read inputs before they wait: an ordinary launch ends before anything behind
/// it starts, which no wait in another launch replaces. Each that overlaps has a WaitForLaunch, in
/// front of its first instruction that touches memory which may still change or be read
/// (EarlyStart), or of the loop or branch in which that stands: what is before it is done while the
/// launch before still runs. All but the last let the next one start: the first behind its wait,
/// the others at once.
void place_waits(Program& program);

}  // namespace chainfold::codegen
