#include "chainfold/codegen/lower/lower.hpp"

#include <algorithm>
#include <iterator>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/columns.hpp"
#include "chainfold/codegen/lower/fold/elements.hpp"
#include "chainfold/codegen/lower/fold/head_tiles.hpp"
#include "chainfold/codegen/lower/fold/merge_path.hpp"
#include "chainfold/codegen/lower/fold/parts.hpp"
#include "chainfold/codegen/lower/fold/rows.hpp"
#include "chainfold/codegen/lower/fold/staged.hpp"
#include "chainfold/codegen/lower/published/columns.hpp"
#include "chainfold/codegen/lower/published/padded.hpp"
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

namespace {

struct Lowering {
  Strategy strategy;
  Program (*lower)(const Graph& graph, const Plan& plan, const Target& target);
};
constexpr Lowering kLowerings[] = {
    {Strategy::rows, lower_rows},
    {Strategy::elements, lower_elements},
    {Strategy::parts, lower_parts},
    {Strategy::staged, lower_staged},
    {Strategy::columns, lower_columns},
    {Strategy::merge_path, lower_merge_path},
    {Strategy::head_tiles, lower_head_tiles},
    {Strategy::scan_tile, lower_scan_tile},
    {Strategy::scan_run, lower_scan_run},
    {Strategy::scan_block, lower_scan_block},
    {Strategy::look_back, lower_look_back},
    {Strategy::look_ahead, lower_look_ahead},
    {Strategy::propagate, lower_propagate},
    {Strategy::reduction16, lower_published_columns},
    {Strategy::strided16n, lower_published_columns},
    {Strategy::coalesced16n, lower_published_columns},
    {Strategy::reduction256, lower_published_squares},
    {Strategy::inefficient256n, lower_published_squares},
    {Strategy::efficient256n, lower_published_squares},
    {Strategy::block256n, lower_published_squares},
    {Strategy::grid256n, lower_published_whole},
    {Strategy::recurrence, lower_published_recurrence},
    {Strategy::single_pass, lower_published_whole},
    {Strategy::split, lower_published_whole},
    {Strategy::padded, lower_published_padded},
    {Strategy::scan16, lower_published_scan},
    {Strategy::scan16n, lower_published_scan},
    {Strategy::scan256, lower_published_scan},
    {Strategy::scan256n, lower_published_scan},
    {Strategy::scan_block256n, lower_published_scan},
    {Strategy::scan_grid256n, lower_published_scan},
};

}  // namespace

Program lower(const Graph& graph, const Plan& plan, const Target& target) {
  const auto* row =
      std::find_if(std::begin(kLowerings), std::end(kLowerings),
                   [&](const Lowering& known) { return known.strategy == plan.strategy; });
  if (row == std::end(kLowerings)) throw InternalError("a strategy without a lowering");
  return row->lower(graph, plan, target);
}

}  // namespace chainfold::codegen
