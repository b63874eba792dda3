#include "chainfold/codegen/plan/published.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/bound.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/units.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

namespace {

/// Squares whose loads a warp issues together, at most; so many registers are free.
constexpr int kMostDepth = 16;

constexpr int kMostLinks = 8;
/// Longer segments are no warp's or block's work.
constexpr std::int64_t kLongest = std::int64_t{1} << 24;

constexpr double kUnit = 0x1p-24;
constexpr PlanField kReduction16[] = {
    {"warps", &PlanChoice::warps}, {"rows", &PlanChoice::rows}, {"bytes", &PlanChoice::bytes}};
constexpr PlanField kMultiple16[] = {{"warps", &PlanChoice::warps},
                                     {"depth", &PlanChoice::depth},
                                     {"chain", &PlanChoice::chain},
                                     {"bytes", &PlanChoice::bytes}};
constexpr PlanField kReduction256[] = {{"warps", &PlanChoice::warps},
                                       {"rows", &PlanChoice::rows},
                                       {"product", &PlanChoice::product},
                                       {"bytes", &PlanChoice::bytes}};
constexpr PlanField kInefficient[] = {{"warps", &PlanChoice::warps},
                                      {"depth", &PlanChoice::depth},
                                      {"product", &PlanChoice::product},
                                      {"bytes", &PlanChoice::bytes}};
constexpr PlanField kMultiple256[] = {{"warps", &PlanChoice::warps},
                                      {"depth", &PlanChoice::depth},
                                      {"chain", &PlanChoice::chain},
                                      {"product", &PlanChoice::product},
                                      {"bytes", &PlanChoice::bytes}};
constexpr PlanField kPadded[] = {
    {"warps", &PlanChoice::warps}, {"depth", &PlanChoice::depth}, {"chain", &PlanChoice::chain}};
constexpr PlanField kGrid[] = {
    {"warps", &PlanChoice::warps},     {"depth", &PlanChoice::depth},
    {"chain", &PlanChoice::chain},     {"blocks", &PlanChoice::occupancy},
    {"product", &PlanChoice::product}, {"bytes", &PlanChoice::bytes}};
constexpr PlanField kRecurrence[] = {
    {"warps", &PlanChoice::warps}, {"chain", &PlanChoice::chain}, {"bytes", &PlanChoice::bytes}};
constexpr PlanField kSinglePass[] = {{"warps", &PlanChoice::warps},
                                     {"chain", &PlanChoice::chain},
                                     {"blocks", &PlanChoice::occupancy},
                                     {"product", &PlanChoice::product},
                                     {"bytes", &PlanChoice::bytes}};
constexpr PlanField kSplit[] = {
    {"warps", &PlanChoice::warps},      {"depth", &PlanChoice::depth},
    {"blocks", &PlanChoice::occupancy}, {"fraction", &PlanChoice::fraction},
    {"product", &PlanChoice::product},  {"bytes", &PlanChoice::bytes}};

constexpr Published kTable[] = {
    {Strategy::reduction16, "reduction16", "[D] 4.1, Reduction16", "segments of 16", kReduction16},
    {Strategy::strided16n, "strided16n", "[D] 4.1, strided Reduction16N",
     "segments of a multiple of 16", kMultiple16},
    {Strategy::coalesced16n, "coalesced16n", "[D] 4.1, coalesced Reduction16N",
     "segments of a multiple of 16 from 256 on", kMultiple16},
    {Strategy::reduction256, "reduction256", "[D] 4.1, Reduction256", "segments of 256",
     kReduction256},
    {Strategy::inefficient256n, "inefficient256n", "[D] 4.1, work-inefficient Reduction256N",
     "segments of a multiple of 256", kInefficient},
    {Strategy::efficient256n, "efficient256n", "[D] 4.1, work-efficient Reduction256N",
     "segments of a multiple of 256", kMultiple256},
    {Strategy::block256n, "block256n", "[D] 4.2, block-level Reduction256N",
     "segments of a multiple of 256", kMultiple256},
    {Strategy::grid256n, "grid256n", "[D] 4.3, grid-level reduction", "the whole input", kGrid},
    {Strategy::recurrence, "recurrence", "[C] III and [N] 5.1, recurrence", "the whole input",
     kRecurrence},
    {Strategy::single_pass, "single_pass", "[N] 5.2, single pass", "the whole input", kSinglePass},
    {Strategy::split, "split", "[N] 5.3, split in two", "the whole input", kSplit},
    {Strategy::padded, "padded", "[D] footnote 4, irregular segments by padding",
     "segments of any lengths that cf::offsets tells", kPadded},
};

/// Whether the computation's one output is the sum itself, so that blocks can add to it.
bool is_plain_sum(const Graph& graph) {
  return graph.outputs.size() == 1 && graph.node(graph.outputs[0]).kind == NodeKind::fold;
}

bool is_square(Strategy s) {
  return s != Strategy::reduction16 && s != Strategy::strided16n && s != Strategy::coalesced16n &&
         s != Strategy::padded;
}

/// Elements that a lane loads at once, at most. Padded segments begin anywhere.
int most_of_load(Strategy s) {
  if (s == Strategy::padded) return 1;
  return is_square(s) ? 8 : 4;
}

/// Products in a row that a warp has for one accumulator, before `chain` cuts them.
std::int64_t links_in_a_row(const Plan& plan) {
  const std::int64_t squares = squares_of(plan.segment);
  switch (plan.strategy) {
    case Strategy::strided16n: return plan.segment / kSquareRow;
    case Strategy::coalesced16n: return std::max(squares, plan.segment % kSquare / kSquareRow);
    case Strategy::padded: return kMostOfSegment / kSquareRow;  // no plan knows how many
    case Strategy::efficient256n: return squares;
    case Strategy::block256n: return (squares + plan.warps - 1) / plan.warps;
    case Strategy::grid256n:
    case Strategy::single_pass:
    case Strategy::recurrence: return plan.published.chain;
    default: return 1;  // its chains have one link
  }
}

/// The bound in units of 2^-24 of the sum of absolute values, first-order factors multiplied where
/// they are large:
/// - the products of a chain,
/// - two additions of the columns that a lane holds and two across lanes, or rounding of columns
///   and the second product,
/// - a state's merges and its final rounding.
double bound_of(const Plan& plan, const Target& target) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(plan.folds[0].mma_row)];
  const double one = mma_error_bound(row, target.arch);
  const double link = one * (16.0 / row.k);
  const std::int64_t in_a_row = links_in_a_row(plan);
  const auto links = static_cast<double>(chain_of(plan, std::max<std::int64_t>(1, in_a_row)));
  const bool states = plan.combine_states;
  if (plan.strategy == Strategy::reduction16 || plan.strategy == Strategy::strided16n ||
      plan.strategy == Strategy::padded)
    return links * link + (states ? 2 : 0);
  if (!rounds_sums(plan)) {
    // Across lanes a state's merges are compensated, a single value's are not.
    double bound = links * link + 2 + 2;
    if (plan.published.atomics) bound += static_cast<double>(plan.blocks);
    return bound;
  }
  const double rounding = row.input == DType::f16 ? 0x1p-11 : 0x1p-8;
  const std::int64_t seconds =
      plan.strategy == Strategy::inefficient256n ? squares_of(plan.segment) : 1;
  const double square = (1 + links * link * kUnit) * (1 + rounding) *
                        (1 + static_cast<double>(seconds) * link * kUnit);
  double all = square;
  if (plan.strategy == Strategy::recurrence) {
    const int launches = recurrence_launches(plan.published.chain);
    all = std::pow(square, launches) * std::pow(1 + rounding, launches - 1);
  }
  double bound = (all - 1) / kUnit * (1 + 0x1p-10) + 2;
  if (plan.published.atomics) bound += 2 * static_cast<double>(plan.blocks);
  return bound;
}

}  // namespace

bool serves_published(Strategy strategy, std::int64_t s) {
  switch (strategy) {
    case Strategy::reduction16: return s == kSquareRow;
    case Strategy::strided16n: return s > 0 && s % kSquareRow == 0 && s <= kLongest;
    case Strategy::coalesced16n: return s >= kSquare && s % kSquareRow == 0 && s <= kLongest;
    case Strategy::reduction256: return s == kSquare;
    case Strategy::inefficient256n:
    case Strategy::efficient256n:
    case Strategy::block256n: return s > 0 && s % kSquare == 0 && s <= kLongest;
    default: return s == 0;
  }
}

int published_mma_row(const Graph& graph, const Target& target) {
  if (!target.has_mma || graph.folds.size() != 1 || graph.inputs.size() != 1) return -1;
  const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& n) { return n.kind == NodeKind::fold; });
  if (node == graph.nodes.end()) return -1;  // its fold is a scan's
  const MmaOperands data = mma_operands(graph, *node);
  if (data.a == kNoNode || data.b != kNoNode || !graph.folds[0].tile) return -1;
  const DType type = graph.node(data.a).type;
  if (type != DType::f16 && type != DType::bf16) return -1;
  const int index = find_mma(type, target.arch);
  if (index < 0) return -1;
  return mma_table()[static_cast<std::size_t>(index)].accumulator == node->type ? index : -1;
}

const Published* published(Strategy strategy) {
  const auto* row = std::find_if(std::begin(kTable), std::end(kTable), [&](const Published& known) {
    return known.strategy == strategy;
  });
  return row == std::end(kTable) ? nullptr : row;
}

int tensor_warps(const Plan& plan) {
  if (plan.strategy != Strategy::split) return plan.warps;
  return std::clamp((plan.warps * plan.published.fraction + 50) / 100, 1,
                    std::max(1, plan.warps - 1));
}

double padded_bound_u(const Plan& plan, std::int64_t elements) {
  const double all = plan.folds[0].error_bound_u;
  if (plan.published.chain > 0) return all;
  const std::int64_t links = (elements + kSquareRow - 1) / kSquareRow;
  return all * static_cast<double>(links) / static_cast<double>(kMostOfSegment / kSquareRow);
}

int recurrence_launches(int chain) {
  int launches = 0;
  for (double left = 0x1p40; left > 1; left /= static_cast<double>(kSquare) * chain) ++launches;
  return launches;
}

bool derive_published(Plan& plan, const PlanChoice& choice, const Graph& graph,
                      const Target& target, int widest) {
  const Strategy strategy = choice.strategy;
  const int row = published_mma_row(graph, target);
  if (row < 0 || !serves_published(strategy, plan.segment)) return false;
  if ((strategy == Strategy::padded) != has_offsets(graph)) return false;
  plan.strategy = strategy;
  plan.folds[0] = {.unit = Unit::mma_ones, .mma_row = row};
  plan.load_width = std::min(widest, most_of_load(strategy));
  plan.edges = plan.is_whole() && strategy != Strategy::padded;
  plan.rows =
      strategy == Strategy::reduction16 || strategy == Strategy::reduction256 ? choice.rows : 1;
  if (plan.rows > 8) return false;
  plan.published.product = is_square(strategy) && choice.product != 0;
  if (choice.product != 0 && choice.product != 1) return false;
  if (strategy == Strategy::recurrence || strategy == Strategy::single_pass) {
    if (choice.chain < 1 || choice.chain > kMostLinks) return false;
    plan.published.chain = plan.depth = choice.chain;
  } else if (strategy == Strategy::split) {
    plan.published.chain = 1;
    plan.depth = choice.depth;
  } else if (plan.rows > 1 || plan.segment == kSquareRow) {
    plan.published.chain = 1;
  } else if (strategy == Strategy::inefficient256n || strategy == Strategy::reduction256) {
    plan.published.chain = 1;
    plan.depth = static_cast<int>(std::min<std::int64_t>(choice.depth, squares_of(plan.segment)));
  } else {
    const bool whole = strategy == Strategy::grid256n;
    if (choice.chain < 0 || (choice.chain > 0 && !is_power_of_two(choice.chain))) return false;
    if (whole && choice.chain == 0) return false;
    plan.published.chain = choice.chain;
    plan.depth = choice.depth;
    if (!whole) {
      const std::int64_t links = links_in_a_row(plan);
      plan.depth = static_cast<int>(std::min<std::int64_t>(choice.depth, links));
      if (plan.published.chain >= links) plan.published.chain = 0;
    }
    if (plan.published.chain > plan.depth) return false;
  }
  if (plan.depth > kMostDepth) return false;
  plan.launches = strategy == Strategy::padded ? 2 : 1;
  const bool blocks_meet = strategy == Strategy::grid256n || strategy == Strategy::single_pass ||
                           strategy == Strategy::split;
  if (blocks_meet) {
    plan.blocks = std::int64_t{target.processors} * choice.occupancy;
    if (plan.blocks < 1 || plan.blocks > kMostParts) return false;
    plan.launches = 2;
    plan.published.atomics = strategy != Strategy::grid256n && is_plain_sum(graph) &&
                             plan.promises.determinism == Determinism::not_guaranteed &&
                             plan.promises.accuracy == Accuracy::as_published;
  }
  if (strategy == Strategy::split) {
    if (choice.fraction < 1 || choice.fraction > 99 || plan.warps < 2) return false;
    plan.published.fraction = choice.fraction;
  }
  if (strategy == Strategy::recurrence) plan.launches = recurrence_launches(plan.published.chain);
  const std::int64_t links = links_in_a_row(plan);
  const bool one_value = strategy == Strategy::reduction16 || strategy == Strategy::reduction256 ||
                         strategy == Strategy::recurrence ||
                         (strategy == Strategy::inefficient256n &&
                          (plan.published.product || squares_of(plan.segment) == 1)) ||
                         ((strategy == Strategy::strided16n ||
                           strategy == Strategy::efficient256n || strategy == Strategy::padded) &&
                          chain_of(plan, links) == links);
  plan.combine_states = !one_value;
  plan.folds[0].error_bound_u = bound_of(plan, target);
  return true;
}

std::string print_published(const Plan& plan) {
  std::string text = fmt::format("  source {}\n", published(plan.strategy)->source);
  const std::string chain =
      plan.published.chain == 0 ? "unbroken" : fmt::format("of {}", plan.published.chain);
  text += fmt::format("  chains {}, rows {}, columns added by {}", chain, plan.rows,
                      rounds_sums(plan) ? "a second product" : "lanes");
  if (plan.blocks > 0) text += fmt::format(", blocks {}", plan.blocks);
  if (plan.published.fraction > 0) {
    text += fmt::format(", {} percent by {} of {} warps", plan.published.fraction,
                        tensor_warps(plan), plan.warps);
  }
  if (plan.strategy == Strategy::single_pass || plan.strategy == Strategy::split)
    text += plan.published.atomics ? ", blocks add to the output" : ", the last block finishes";
  return text + "\n";
}

void verify_published(const Plan& plan, const Graph& graph, const Target& target,
                      const RequireRule& require) {
  require(serves_published(plan.strategy, plan.segment), "the strategy serves the segment size");
  require((plan.strategy == Strategy::padded) == has_offsets(graph),
          "segments that offsets tell are padded, and no others");
  const int row = plan.folds[0].mma_row;
  require(published_mma_row(graph, target) >= 0 && row >= 0, "the strategy serves the graph");
  require(target.arch >= mma_table()[static_cast<std::size_t>(row)].first_arch,
          "the architecture has the matrix instruction");
  require(is_power_of_two(plan.rows) && plan.depth <= kMostDepth && plan.published.chain >= 0,
          "rows, depth and chain");
  require(plan.load_width <= most_of_load(plan.strategy), "loads fit the square");
  require(!rounds_sums(plan) || plan.promises.accuracy == Accuracy::as_published,
          "sums are rounded to the inputs' type under as_published alone");
  require(!plan.published.atomics || plan.promises.determinism == Determinism::not_guaranteed,
          "floats are added atomically only where determinism is not guaranteed");
}

namespace {

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  Plan plan = begun;
  if (!choice.mma || !site.request.allow_mma ||
      !derive_published(plan, choice, site.graph, site.target, site.widest.aligned))
    return std::nullopt;
  return within_policy(std::move(plan), site);
}

}  // namespace

std::vector<StrategyRow> published_strategies() {
  std::vector<StrategyRow> rows;
  for (const Published& known : kTable) {
    rows.push_back(
        {.id = known.strategy,
         .name = known.name,
         .serves = fmt::format(
             "one sum of one cf::f16 input (sm_75 and later) or cf::bf16 input (sm_80 and later), "
             "without a filter, over {}; with product=1, the recurrence and chains that are longer "
             "than the bound allows, under Accuracy::as_published alone",
             known.serves),
         .fields = known.fields,
         .make = make,
         .print = [](const Plan& plan, const Graph& /*graph*/) { return print_published(plan); },
         .verify = verify_published});
  }
  return rows;
}

std::optional<Plan> within_policy(Plan plan, const PlanSite& site) {
  if (plan.promises.accuracy == Accuracy::as_published) return plan;
  const double allowed =
      allowed_error(site.graph, site.target, plan.promises.accuracy, plan.segment, 0);
  if (rounds_sums(plan) || plan.folds[0].error_bound_u > allowed) return std::nullopt;
  return plan;
}

}  // namespace chainfold::codegen
