#include "chainfold/codegen/lower/lower.hpp"

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/columns.hpp"
#include "chainfold/codegen/lower/fold/elements.hpp"
#include "chainfold/codegen/lower/fold/parts.hpp"
#include "chainfold/codegen/lower/fold/rows.hpp"
#include "chainfold/codegen/lower/fold/staged.hpp"
#include "chainfold/codegen/lower/published/columns.hpp"
#include "chainfold/codegen/lower/published/recurrence.hpp"
#include "chainfold/codegen/lower/published/scan.hpp"
#include "chainfold/codegen/lower/published/squares.hpp"
#include "chainfold/codegen/lower/published/whole.hpp"
#include "chainfold/codegen/lower/scan/look_ahead.hpp"
#include "chainfold/codegen/lower/scan/look_back.hpp"
#include "chainfold/codegen/lower/scan/propagate.hpp"
#include "chainfold/codegen/lower/scan/segments.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

Program lower(const Graph& graph, const Plan& plan, const Target& target) {
  switch (plan.strategy) {
    case Strategy::rows: return lower_rows(graph, plan, target);
    case Strategy::elements: return lower_elements(graph, plan, target);
    case Strategy::staged: return lower_staged(graph, plan, target);
    case Strategy::parts: return lower_parts(graph, plan, target);
    case Strategy::columns: return lower_columns(graph, plan, target);
    case Strategy::scan_tile: return lower_scan_tile(graph, plan, target);
    case Strategy::scan_run: return lower_scan_run(graph, plan, target);
    case Strategy::scan_block: return lower_scan_block(graph, plan, target);
    case Strategy::look_back: return lower_look_back(graph, plan, target);
    case Strategy::look_ahead: return lower_look_ahead(graph, plan, target);
    case Strategy::propagate: return lower_propagate(graph, plan, target);
    case Strategy::reduction16:
    case Strategy::strided16n:
    case Strategy::coalesced16n: return lower_published_columns(graph, plan, target);
    case Strategy::reduction256:
    case Strategy::inefficient256n:
    case Strategy::efficient256n:
    case Strategy::block256n: return lower_published_squares(graph, plan, target);
    case Strategy::grid256n:
    case Strategy::single_pass:
    case Strategy::split: return lower_published_whole(graph, plan, target);
    case Strategy::scan16:
    case Strategy::scan16n:
    case Strategy::scan256:
    case Strategy::scan256n:
    case Strategy::scan_block256n:
    case Strategy::scan_grid256n: return lower_published_scan(graph, plan, target);
    case Strategy::recurrence: return lower_published_recurrence(graph, plan, target);
  }
  throw InternalError("a plan without a strategy");
}

}  // namespace chainfold::codegen
