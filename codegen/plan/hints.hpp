// Hints of a plan: what makes loads faster and changes nothing else, as far as rules can tell.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// What PlanHints::evict_first says: of warps whose lanes' loads lie side by side over several
/// lines, which a segment fills, so that its ends alone share some; or of columns whose rows are
/// whole lines (pointers are taken to begin on them). Measured on an H200: such loads take 0.1
/// to 2.5 % less time if the cache is told, most where each of a warp's lies in another row; those
/// that share lines, of short segments, up to 10 % more, and those of rows that begin within lines
/// 1 % more.
bool takes_lines(const Plan& plan, const Graph& graph, const Target& target);
/// Whether vectors of half a register's bits take no longer, where a processor's units are that
/// wide, because hardly more is done to an element than to load and to add it: one sum of what one
/// input holds, or of products of two, of floats as they are or integers of 4 bytes or 8, in
/// segments so long that few lanes are exchanged, or which fill rows of lanes. A Zen 4 then loads
/// floats from memory faster, where loads of whole registers bring more lines at once than its
/// prefetchers keep up with: f32 of 64 to 1000 elements 0.92 to 0.97 of the time, all of f32 or f64
/// 0.95. In its second-level cache f32 and i32 of 32 to 2^15 elements take 0.9 to 1 of the time,
/// f64 of 100 and more 0.95, but of 64 1.1, and those that are left out (f32 of 8, f64 of 37, 50 or
/// 777) 1.15 to 1.3.
bool half_vectors_do(const Plan& plan, const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
