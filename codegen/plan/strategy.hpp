// StrategyRow: what is known of a strategy before it is lowered, as a row of a table
// (strategies.hpp).
//
// Each strategy's row stands in the file of its plans (rows.cpp, ...; those of scans in
// scan_strategies.cpp). Its lowering is in the table of lower/lower.cpp.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// A decision, by the word that texts of choices have for it.
struct PlanField {
  std::string_view name;
  int PlanChoice::* value;
  bool told_at_zero = true;  ///< a text has it even if it is 0
};

/// What a plan is made for.
struct PlanSite {
  const Graph& graph;
  const Target& target;
  const PlanRequest& request;
  Widest widest;  ///< of the choice's bytes
};

/// Tells a rule that a legal plan keeps, and whether this one does.
using RequireRule = std::function<void(bool holds, const char* rule)>;

struct StrategyRow {
  Strategy id = Strategy::rows;
  std::string_view name;  ///< the first word of its choices' texts
  /// What it serves, in a sentence without its period that follows "NAME serves". The sentence
  /// tells partitions and sizes, graphs, types, alignment and targets, and what the fields mean.
  /// Tests hold it against `make`.
  std::string serves;
  /// In the order of its texts; `mma` or `simt` ends every text and is none of them.
  std::span<const PlanField> fields;
  /// The plan that follows from a choice, out of `begun`, which holds the request and the warps.
  /// Nothing where the choice is not legal, or errs more than the policy allows.
  std::optional<Plan> (*make)(const Plan& begun, const PlanChoice& choice, const PlanSite& site);
  /// The lines of a plan's text that are its own, each indented and ended.
  std::string (*print)(const Plan& plan, const Graph& graph);
  /// The rules that are its own.
  void (*verify)(const Plan& plan, const Graph& graph, const Target& target,
                 const RequireRule& require);
};

}  // namespace chainfold::codegen
