// Hints of a plan: what makes loads faster and changes nothing else, as far as rules can tell.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// What PlanHints::evict_first says (docs/decisions/0049-cache-hints.md):
/// - of warps whose lanes' loads lie side by side over several lines, which a segment fills, so
///   that its ends alone share some,
/// - of columns whose rows are whole lines; pointers are taken to begin on lines.
///
/// Such loads take less time with the hint, most where each of a warp's lies in another row. Loads
/// of short segments, which share lines, and of rows that begin within lines take more.
bool takes_lines(const Plan& plan, const Graph& graph, const Target& target);
/// Whether vectors of half a register's bits take no longer, where a processor's units are that
/// wide (docs/decisions/0030-half-registers.md). They do not where hardly more is done to an
/// element than to load and to add it:
/// - There is one sum, of what one input holds or of products of two.
/// - It is of floats as they are, or of integers of 4 bytes or 8.
/// - Segments are so long that few lanes are exchanged, or they fill rows of lanes.
///
/// Such vectors load floats from memory faster: loads of whole registers bring more lines at once
/// than prefetchers keep up with.
bool half_vectors_do(const Plan& plan, const Graph& graph, const Target& target);
/// Whether loops screen batches for better values (PlanHints::screens): where lanes are elements of
/// vectors, for which a comparison with all of a batch costs one operation.
bool screens_batches(const Plan& plan, const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
