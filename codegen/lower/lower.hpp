// Lowerings: graph and plan in, program out. One strategy, one file.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Before: a verified graph and plan. After: a program whose launches write every output; buffers
/// are the graph's inputs, outputs, then scratch arrays; parameters carry their roles.
Program lower(const Graph& graph, const Plan& plan, const Target& target);

Program lower_rows(const Graph& graph, const Plan& plan, const Target& target);
Program lower_elements(const Graph& graph, const Plan& plan, const Target& target);
Program lower_staged(const Graph& graph, const Plan& plan, const Target& target);
Program lower_parts(const Graph& graph, const Plan& plan, const Target& target);
Program lower_published_columns(const Graph& graph, const Plan& plan, const Target& target);
Program lower_published_squares(const Graph& graph, const Plan& plan, const Target& target);
Program lower_published_whole(const Graph& graph, const Plan& plan, const Target& target);
Program lower_published_recurrence(const Graph& graph, const Plan& plan, const Target& target);
Program lower_published_scan(const Graph& graph, const Plan& plan, const Target& target);
Program lower_columns(const Graph& graph, const Plan& plan, const Target& target);

Program lower_scan_tile(const Graph& graph, const Plan& plan, const Target& target);
Program lower_scan_run(const Graph& graph, const Plan& plan, const Target& target);
Program lower_scan_block(const Graph& graph, const Plan& plan, const Target& target);
Program lower_look_back(const Graph& graph, const Plan& plan, const Target& target);
Program lower_look_ahead(const Graph& graph, const Plan& plan, const Target& target);
Program lower_propagate(const Graph& graph, const Plan& plan, const Target& target);

/// Pass. Before: any program. After: instructions without effect whose results nobody uses are
/// gone.
void eliminate_dead(Program& program);

/// Pass. Before: any program. After: no float is added to +0.0 in vain: such a sum's value is used
/// in its place where that cannot be -0.0, which no addition of +0.0 leaves. Every value is the
/// same, bit for bit (NaN payloads and quiet bits aside).
void drop_zeros(Program& program);

/// Pass, for targets whose launches overlap. Before: no launch does. After: all do, but for the
/// first where others read inputs before they wait: an ordinary launch ends before anything behind
/// it starts, which no wait in another launch replaces. Each that overlaps has a WaitForLaunch, in
/// front of its first instruction that touches memory which may still change or be read
/// (EarlyStart), or of the loop or branch in which that stands: what is before it is done while the
/// launch before still runs. All but the last let the next one start: the first behind its wait,
/// the others at once.
void place_waits(Program& program);

}  // namespace chainfold::codegen
