#include "chainfold/codegen/plan/published_scan.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/units.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

namespace {

constexpr PlanField kScan16[] = {
    {"warps", &PlanChoice::warps}, {"rows", &PlanChoice::rows}, {"bytes", &PlanChoice::bytes}};
constexpr PlanField kScan256[] = {{"warps", &PlanChoice::warps},
                                  {"rows", &PlanChoice::rows},
                                  {"product", &PlanChoice::product},
                                  {"bytes", &PlanChoice::bytes}};
constexpr PlanField kScanColumns[] = {
    {"warps", &PlanChoice::warps}, {"chain", &PlanChoice::chain}, {"bytes", &PlanChoice::bytes}};
constexpr PlanField kScanSquares[] = {{"warps", &PlanChoice::warps},
                                      {"chain", &PlanChoice::chain},
                                      {"product", &PlanChoice::product},
                                      {"bytes", &PlanChoice::bytes}};
constexpr PlanField kScanBlock[] = {{"warps", &PlanChoice::warps},
                                    {"product", &PlanChoice::product},
                                    {"bytes", &PlanChoice::bytes}};

constexpr Published kTable[] = {
    {Strategy::scan16, "scan16", "[D] 5.1, Scan16", "segments of 16", kScan16},
    {Strategy::scan16n, "scan16n", "[D] 5.1, Scan16N (strided)", "segments of a multiple of 16",
     kScanColumns},
    {Strategy::scan256, "scan256", "[D] 5.1, Scan256", "segments of 256", kScan256},
    {Strategy::scan256n, "scan256n", "[D] 5.1, Scan256N", "segments of a multiple of 256",
     kScanSquares},
    {Strategy::scan_block256n, "scan_block256n", "[D] 5.2, block-level Scan256N",
     "segments of a multiple of 256", kScanBlock},
    {Strategy::scan_grid256n, "scan_grid256n", "[D] 5.3, grid-level scan",
     "the whole input, where the sum itself is the output", kScanBlock},
};

constexpr std::int64_t kLongest = std::int64_t{1} << 24;
constexpr int kFragment = 8;    // elements of a lane's A fragment of m16n8k16
constexpr int kMostWarps = 16;  // of a block: its partial sums are one row of a square
constexpr int kMostRows = 8;
constexpr double kUnit = 0x1p-24;
bool has_products(Strategy strategy) {
  return strategy != Strategy::scan16 && strategy != Strategy::scan16n;
}

/// The longest way of an element to a prefix, as for scans of our own; products that round are
/// factors of a geometric growth.
double bound_of(const Plan& plan, const Target& target) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(plan.folds[0].mma_row)];
  const double one = mma_sum_error_bound(row, target.arch),
               link = mma_error_bound(row, target.arch);
  const double rounding = row.input == DType::f16 ? 0x1p-11 : 0x1p-8;
  constexpr double kCarry = 2.25;  // a state's rounding, its addition, and terms of second order
  const auto squares = static_cast<double>(squares_of(plan.segment));
  auto grown = [&](double units, double factor) {
    return ((1 + units * kUnit) * factor - 1) / kUnit * (1 + 0x1p-10);
  };
  const double second = (1 + rounding) * (1 + link * kUnit);
  // Four additions of a row's columns by lanes, or the second product.
  const double total = plan.published.product ? grown(one, second) : one + 4;
  switch (plan.strategy) {
    case Strategy::scan16: return one;
    case Strategy::scan16n:
      return plan.published.chain == 0 ? link * static_cast<double>(plan.segment / kSquareRow)
                                       : one + kCarry;
    case Strategy::scan256: return total + (plan.published.product ? 0 : 1);
    case Strategy::scan256n:
      if (plan.published.chain != 0) return total + kCarry;
      // What came before passes each square's accumulators.
      return total + 1 + squares * (plan.published.product ? 2 * link : link + 1);
    case Strategy::scan_grid256n:  // a square's values, what comes before the warp, and the block
      return (plan.published.product ? grown(total, second) : total) + 1 + kCarry;
    default: return (plan.published.product ? grown(total, second) : total) + kCarry;
  }
}

}  // namespace

bool serves_published_scan(Strategy strategy, std::int64_t s) {
  if (strategy == Strategy::scan_grid256n) return s == 0;
  if (s < 1 || s > kLongest) return false;
  switch (strategy) {
    case Strategy::scan16: return s == kSquareRow;
    case Strategy::scan16n: return s % kSquareRow == 0;
    case Strategy::scan256: return s == kSquare;
    default: return s % kSquare == 0;
  }
}

int published_scan_mma_row(Strategy strategy, const Graph& graph, const Target& target) {
  if (!target.has_mma || graph.folds.size() != 1 || graph.inputs.size() != 1) return -1;
  const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& n) { return n.kind == NodeKind::scan; });
  if (node == graph.nodes.end() || node->exclusive || node->reverse) return -1;
  for (const Node& other : graph.nodes) {
    if (other.kind == NodeKind::fold || other.kind == NodeKind::index) return -1;
  }
  for (const NodeId output : graph.outputs) {
    if (graph.node(output).level != Level::element) return -1;
  }
  const MmaOperands data = mma_operands(graph, *node);
  if (data.a == kNoNode || data.b != kNoNode || !graph.folds[0].tile) return -1;
  const DType type = graph.node(data.a).type;
  if (type != DType::f16 && type != DType::bf16) return -1;
  // What a first launch has stored is the sum itself where a later one adds to it.
  const bool plain = graph.outputs.size() == 1 && &graph.node(graph.outputs[0]) == &*node;
  if (strategy == Strategy::scan_grid256n && !plain) return -1;
  const int index = find_mma_of(type, target.arch, kFragment);
  return index >= 0 && node->type == DType::f32 ? index : -1;
}

const Published* published_scan(Strategy strategy) {
  const auto* row = std::find_if(std::begin(kTable), std::end(kTable), [&](const Published& known) {
    return known.strategy == strategy;
  });
  return row == std::end(kTable) ? nullptr : row;
}

bool derive_published_scan(Plan& plan, const PlanChoice& choice, const Graph& graph,
                           const Target& target, int widest) {
  const int row = published_scan_mma_row(choice.strategy, graph, target);
  if (row < 0 || widest < 2 || !serves_published_scan(choice.strategy, plan.segment)) return false;
  if (plan.promises.nonfinite != NonFinite::assume_finite) return false;
  if (2 * widest_of_scan(graph) > plan.base_alignment) return false;  // pairs are stored at once
  plan.strategy = choice.strategy;
  plan.folds[0] = {.unit = Unit::mma_scan, .mma_row = row};
  plan.load_width = 2;
  plan.depth = 1;
  const bool grid = choice.strategy == Strategy::scan_grid256n;
  plan.launches = grid ? 3 : 1;
  plan.scan.tile = grid ? plan.warps * kSquare : 0;
  const bool several = choice.strategy == Strategy::scan16 || choice.strategy == Strategy::scan256;
  plan.rows = several ? choice.rows : 1;
  if (plan.rows > kMostRows || choice.product > 1 || choice.chain > 1) return false;
  plan.published.product = has_products(choice.strategy) && choice.product == 1;
  const bool carries =
      choice.strategy == Strategy::scan16n || choice.strategy == Strategy::scan256n;
  plan.published.chain = carries ? choice.chain : 1;
  if ((grid || choice.strategy == Strategy::scan_block256n) && plan.warps > kMostWarps)
    return false;
  plan.combine_states = true;
  plan.folds[0].error_bound_u = bound_of(plan, target);
  return true;
}

std::string print_published_scan(const Plan& plan) {
  return fmt::format("  source {}\n  squares at once {}, carry {}, rows before added by {}\n",
                     published_scan(plan.strategy)->source, plan.rows,
                     plan.published.chain == 0 ? "in the accumulator" : "as a state",
                     !has_products(plan.strategy) ? "nothing"
                     : plan.published.product     ? "a second product"
                                                  : "lanes");
}

void verify_published_scan(const Plan& plan, const Graph& graph, const Target& target,
                           const RequireRule& require) {
  require(serves_published_scan(plan.strategy, plan.segment),
          "the strategy serves the segment size");
  const int row = plan.folds[0].mma_row;
  require(row >= 0 && published_scan_mma_row(plan.strategy, graph, target) == row,
          "the strategy serves the graph on the target");
  require(plan.load_width == 2 && plan.rows <= kMostRows, "loads are pairs of a row");
  require(plan.promises.nonfinite == NonFinite::assume_finite,
          "nothing guards rows against another's NaN");
  require(!plan.published.product || plan.promises.accuracy == Accuracy::as_published,
          "sums are rounded to the inputs' type under as_published alone");
  require(!plan.strided, "rows of scans have no gaps");
}

std::span<const Published> published_scans() { return kTable; }

namespace {

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  Plan plan = begun;
  if (!choice.mma || !site.request.allow_mma ||
      !derive_published_scan(plan, choice, site.graph, site.target, site.widest.aligned))
    return std::nullopt;
  return within_policy(std::move(plan), site);
}

}  // namespace

std::vector<StrategyRow> published_scan_strategies() {
  std::vector<StrategyRow> rows;
  for (const Published& known : kTable) {
    rows.push_back(
        {.id = known.strategy,
         .name = known.name,
         .serves = fmt::format(
             "one inclusive sum of one cf::f16 or cf::bf16 input (sm_80 and later), without a "
             "filter, over {}, of finite data (NonFinite::assume_finite); with product=1, and with "
             "chain=0 where the bound does not allow it, under Accuracy::as_published alone",
             known.serves),
         .fields = known.fields,
         .make = make,
         .print = [](const Plan& plan,
                     const Graph& /*graph*/) { return print_published_scan(plan); },
         .verify = verify_published_scan});
  }
  return rows;
}

}  // namespace chainfold::codegen
