#include "chainfold/codegen/plan_space.hpp"

#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/ranges.h>

#include "chainfold/codegen/error.hpp"
#include "chainfold/codegen/plan_published.hpp"
#include "chainfold/codegen/plan_scan.hpp"

namespace chainfold::codegen {

namespace {

/// Shorter segments leave most of a block without work when they are cut.
constexpr std::int64_t kShortestInParts = 4096;
/// More elements than this are no warp's work.
constexpr std::int64_t kLongestInRows = std::int64_t{1} << 20;

struct Field {
  std::string_view name;
  int PlanChoice::* value;
};
constexpr Field kRows[] = {{"warps", &PlanChoice::warps},
                           {"depth", &PlanChoice::depth},
                           {"rows", &PlanChoice::rows},
                           {"bytes", &PlanChoice::bytes}};
constexpr Field kParts[] = {{"warps", &PlanChoice::warps},
                            {"depth", &PlanChoice::depth},
                            {"parts", &PlanChoice::parts},
                            {"bytes", &PlanChoice::bytes}};
constexpr Field kStaged[] = {{"warps", &PlanChoice::warps}, {"lanes", &PlanChoice::lanes},
                             {"rows", &PlanChoice::rows},   {"stages", &PlanChoice::stages},
                             {"burst", &PlanChoice::burst}, {"blocks", &PlanChoice::blocks},
                             {"bytes", &PlanChoice::bytes}};

constexpr Field kColumns[] = {{"warps", &PlanChoice::warps},
                              {"depth", &PlanChoice::depth},
                              {"runs", &PlanChoice::rows},
                              {"parts", &PlanChoice::parts},
                              {"bytes", &PlanChoice::bytes}};
constexpr Field kScan[] = {{"warps", &PlanChoice::warps},
                           {"depth", &PlanChoice::depth},
                           {"blocks", &PlanChoice::blocks},
                           {"bytes", &PlanChoice::bytes}};
constexpr Field kTiles[] = {{"warps", &PlanChoice::warps},
                            {"depth", &PlanChoice::depth},
                            {"tile", &PlanChoice::tile},
                            {"blocks", &PlanChoice::blocks},
                            {"bytes", &PlanChoice::bytes}};
constexpr Field kAhead[] = {{"warps", &PlanChoice::warps},
                            {"depth", &PlanChoice::depth},
                            {"stages", &PlanChoice::stages},
                            {"blocks", &PlanChoice::blocks},
                            {"bytes", &PlanChoice::bytes}};
constexpr Field kReduction16[] = {
    {"warps", &PlanChoice::warps}, {"rows", &PlanChoice::rows}, {"bytes", &PlanChoice::bytes}};
constexpr Field kMultiple16[] = {{"warps", &PlanChoice::warps},
                                 {"depth", &PlanChoice::depth},
                                 {"chain", &PlanChoice::chain},
                                 {"bytes", &PlanChoice::bytes}};
constexpr Field kReduction256[] = {{"warps", &PlanChoice::warps},
                                   {"rows", &PlanChoice::rows},
                                   {"product", &PlanChoice::product},
                                   {"bytes", &PlanChoice::bytes}};
constexpr Field kInefficient[] = {{"warps", &PlanChoice::warps},
                                  {"depth", &PlanChoice::depth},
                                  {"product", &PlanChoice::product},
                                  {"bytes", &PlanChoice::bytes}};
constexpr Field kMultiple256[] = {{"warps", &PlanChoice::warps},
                                  {"depth", &PlanChoice::depth},
                                  {"chain", &PlanChoice::chain},
                                  {"product", &PlanChoice::product},
                                  {"bytes", &PlanChoice::bytes}};
constexpr Field kGrid[] = {{"warps", &PlanChoice::warps},     {"depth", &PlanChoice::depth},
                           {"chain", &PlanChoice::chain},     {"blocks", &PlanChoice::blocks},
                           {"product", &PlanChoice::product}, {"bytes", &PlanChoice::bytes}};
constexpr Field kRecurrence[] = {
    {"warps", &PlanChoice::warps}, {"chain", &PlanChoice::chain}, {"bytes", &PlanChoice::bytes}};
constexpr Field kSinglePass[] = {{"warps", &PlanChoice::warps},
                                 {"chain", &PlanChoice::chain},
                                 {"blocks", &PlanChoice::blocks},
                                 {"product", &PlanChoice::product},
                                 {"bytes", &PlanChoice::bytes}};
constexpr Field kSplit[] = {{"warps", &PlanChoice::warps},     {"depth", &PlanChoice::depth},
                            {"blocks", &PlanChoice::blocks},   {"fraction", &PlanChoice::fraction},
                            {"product", &PlanChoice::product}, {"bytes", &PlanChoice::bytes}};

constexpr Field kScanColumns[] = {
    {"warps", &PlanChoice::warps}, {"chain", &PlanChoice::chain}, {"bytes", &PlanChoice::bytes}};
constexpr Field kScanSquares[] = {{"warps", &PlanChoice::warps},
                                  {"chain", &PlanChoice::chain},
                                  {"product", &PlanChoice::product},
                                  {"bytes", &PlanChoice::bytes}};
constexpr Field kScanBlock[] = {{"warps", &PlanChoice::warps},
                                {"product", &PlanChoice::product},
                                {"bytes", &PlanChoice::bytes}};

/// A strategy and the decisions that it knows, in the order of its text.
struct StrategyText {
  std::string_view name;
  Strategy strategy;
  std::span<const Field> fields;
};
constexpr StrategyText kStrategies[] = {
    {"rows", Strategy::rows, kRows},
    {"parts", Strategy::parts, kParts},
    {"staged", Strategy::staged, kStaged},
    {"columns", Strategy::columns, kColumns},
    {"scan_tile", Strategy::scan_tile, kScan},
    {"scan_run", Strategy::scan_run, kScan},
    {"scan_block", Strategy::scan_block, kScan},
    {"look_back", Strategy::look_back, kTiles},
    {"look_ahead", Strategy::look_ahead, kAhead},
    {"propagate", Strategy::propagate, kTiles},
    {"reduction16", Strategy::reduction16, kReduction16},
    {"strided16n", Strategy::strided16n, kMultiple16},
    {"coalesced16n", Strategy::coalesced16n, kMultiple16},
    {"reduction256", Strategy::reduction256, kReduction256},
    {"inefficient256n", Strategy::inefficient256n, kInefficient},
    {"efficient256n", Strategy::efficient256n, kMultiple256},
    {"block256n", Strategy::block256n, kMultiple256},
    {"grid256n", Strategy::grid256n, kGrid},
    {"recurrence", Strategy::recurrence, kRecurrence},
    {"single_pass", Strategy::single_pass, kSinglePass},
    {"split", Strategy::split, kSplit},
    {"scan16", Strategy::scan16, kReduction16},
    {"scan16n", Strategy::scan16n, kScanColumns},
    {"scan256", Strategy::scan256, kReduction256},
    {"scan256n", Strategy::scan256n, kScanSquares},
    {"scan_block256n", Strategy::scan_block256n, kScanBlock},
    {"scan_grid256n", Strategy::scan_grid256n, kScanBlock}};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw UserError(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is no plan: {}; take one that Kernel::plan() told, such as "
                              "\"rows warps=8 depth=1 rows=4 bytes=16 mma\"",
                              text, why),
                  "plan");
}

int number(std::string_view text, std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 0)
    refuse(text, fmt::format("'{}' is no number", digits));
  return value;
}

/// Collects choices whose plans differ.
class Space {
 public:
  Space(const Graph& graph, const Target& target, const PlanRequest& request)
      : graph_(graph), target_(target), request_(request) {}

  void add(const PlanChoice& choice) {
    const std::optional<Plan> plan = make_plan(graph_, target_, request_, choice);
    if (!plan) return;
    std::string text = print(*plan, graph_);
    if (std::find(seen_.begin(), seen_.end(), text) != seen_.end()) return;
    seen_.push_back(std::move(text));
    choices_.push_back(choice);
  }
  /// The choice with one decision taken differently, for each value in turn.
  void vary(const PlanChoice& around, int PlanChoice::* decision,
            std::initializer_list<int> values) {
    for (const int value : values) {
      PlanChoice choice = around;
      choice.*decision = value;
      add(choice);
    }
  }
  std::vector<PlanChoice> take() { return std::move(choices_); }

 private:
  const Graph& graph_;
  const Target& target_;
  const PlanRequest& request_;
  std::vector<PlanChoice> choices_;
  std::vector<std::string> seen_;
};

void add_rows(Space& space, const PlanChoice& around) {
  for (const int warps : {8, 4, 16}) {
    PlanChoice choice = around;
    choice.warps = warps;
    space.vary(choice, &PlanChoice::rows, {around.rows, 1, 2, 4, 8});
    space.vary(choice, &PlanChoice::depth, {4, 8, 16});
  }
  space.vary(around, &PlanChoice::bytes, {8, 4});
  PlanChoice lanes = around;
  lanes.mma = false;
  space.vary(lanes, &PlanChoice::rows, {around.rows, 1, 2, 4, 8});
}

void add_parts(Space& space, const PlanChoice& around) {
  for (const int warps : {8, 4, 16, 32}) {
    PlanChoice choice = around;
    choice.warps = warps;
    choice.parts = std::clamp(around.parts * around.warps / warps, 1, kMostParts);
    space.vary(choice, &PlanChoice::depth, {4, 2, 8});
  }
  space.vary(around, &PlanChoice::parts,
             {std::max(1, around.parts / 2), std::min(kMostParts, around.parts * 2)});
  PlanChoice lanes = around;
  lanes.mma = false;
  space.vary(lanes, &PlanChoice::depth, {4, 8});
}

void add_staged(Space& space, const PlanChoice& around) {
  space.add(around);
  for (const int warps : {4, 8, 16}) {
    PlanChoice choice = around;
    choice.warps = warps;
    choice.blocks = std::max(1, around.blocks * around.warps / warps);
    space.vary(choice, &PlanChoice::stages, {2, 4});
  }
  space.vary(around, &PlanChoice::burst,
             {std::max(1, around.burst / 4), std::max(1, around.burst / 2)});
  space.vary(around, &PlanChoice::lanes, {1, 4, 8, 32});
  space.vary(around, &PlanChoice::rows, {std::max(1, around.rows / 2), around.rows * 2});
  PlanChoice lanes = around;
  lanes.mma = false;
  space.add(lanes);
}

void add_columns(Space& space, const PlanChoice& around, bool one_warp) {
  const int few = std::max(1, around.parts / 2), many = std::min(kMostParts, 2 * around.parts);
  for (const int parts : {around.parts, few, many, 1}) {
    PlanChoice choice = around;
    choice.parts = parts;
    space.vary(choice, &PlanChoice::depth, {8, 4, 16, 32});
  }
  space.vary(around, &PlanChoice::rows, {1, 2, 4, 8});
  if (one_warp) return;
  space.vary(around, &PlanChoice::warps, {4, 16, 2, 1});
  space.vary(around, &PlanChoice::bytes, {8, 4});
}

/// Scans of one strategy on tensor cores, where they serve.
void add_quads(Space& space, Strategy strategy, const Graph& graph, const Target& target,
               const PlanRequest& request) {
  const std::optional<PlanChoice> around =
      scan_choice_of(strategy, graph, target, request, target.has_mma);
  auto add = [&](const PlanChoice& choice) {
    const std::optional<Plan> plan = make_plan(graph, target, request, choice);
    if (!plan) return;
    for (const FoldPlan& fold : plan->folds) {
      if (fold.unit != Unit::simt) return space.add(choice);
    }
  };
  if (!around) return;
  for (const int bytes : {16, 8, 4}) {
    PlanChoice choice = *around;
    choice.bytes = bytes;
    for (const int depth : {around->depth, 1, 2, 4, 8, 16}) {
      choice.depth = depth;
      add(choice);
    }
    choice.depth = around->depth;
    for (const int warps : {4, 8, 16}) {
      choice.warps = warps;
      add(choice);
    }
  }
}

/// Blocks that stay, by lanes and on tensor cores: their decisions are about what is in shared
/// memory and on its way there.
void add_ahead(Space& space, const Graph& graph, const Target& target, const PlanRequest& request) {
  for (const bool mma : {false, true}) {
    if (mma && !target.has_mma) continue;
    const auto around = scan_choice_of(Strategy::look_ahead, graph, target, request, mma);
    if (!around) return;
    space.add(*around);
    space.vary(*around, &PlanChoice::depth, {std::max(1, around->depth / 2), 2 * around->depth});
    space.vary(*around, &PlanChoice::warps, {4, 16});
    space.vary(*around, &PlanChoice::blocks, {1, 3, 4});
    space.vary(*around, &PlanChoice::stages, {3, 6});
  }
}

/// Every strategy of scans around its own best guess.
void add_scans(Space& space, const Graph& graph, const Target& target, const PlanRequest& request) {
  const bool one_warp = target.max_warps == 1;
  for (const Strategy strategy : {Strategy::scan_tile, Strategy::scan_run, Strategy::scan_block,
                                  Strategy::look_back, Strategy::propagate}) {
    const std::optional<PlanChoice> around = scan_choice_of(strategy, graph, target, request);
    if (!around) continue;
    space.add(*around);
    space.vary(*around, &PlanChoice::depth, {1, 2, 3, 4, 6, 8, 12, 16});
    if (around->tile > 0) {
      space.vary(*around, &PlanChoice::tile,
                 {std::max(1, around->tile / 4), std::max(1, around->tile / 2), 2 * around->tile});
    }
    if (one_warp) continue;
    add_quads(space, strategy, graph, target, request);
    for (const int warps : {4, 8, 16, 32}) {
      PlanChoice choice = *around;
      choice.warps = warps;
      space.add(choice);
      // A block's segment takes fewer rows the more warps there are.
      choice.depth = std::max(1, around->depth * around->warps / warps);
      space.add(choice);
    }
    space.vary(*around, &PlanChoice::blocks, {0, 1, 2, 3, 4, 6, 8});
    space.vary(*around, &PlanChoice::bytes, {8, 4});
  }
}

void add_cpu(Space& space, const PlanChoice& around) {
  space.vary(around, &PlanChoice::depth, {8, 16, 32, 64});
  if (around.strategy == Strategy::rows) {
    space.vary(around, &PlanChoice::rows, {4, 8, 16, 32});
  } else {
    space.vary(around, &PlanChoice::parts, {256, 512, 2048, 4096});
  }
}

}  // namespace

std::string to_text(const PlanChoice& choice) {
  const auto& row =
      *std::find_if(std::begin(kStrategies), std::end(kStrategies),
                    [&](const StrategyText& known) { return known.strategy == choice.strategy; });
  std::string text(row.name);
  for (const Field& field : row.fields)
    text += fmt::format(" {}={}", field.name, choice.*(field.value));
  return text + (choice.mma ? " mma" : " simt");
}

std::vector<std::string_view> strategy_names() {
  std::vector<std::string_view> names;
  for (const StrategyText& known : kStrategies) names.push_back(known.name);
  return names;
}

PlanChoice parse_choice(std::string_view text) {
  PlanChoice choice;
  const StrategyText* strategy = nullptr;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word.empty()) continue;
    if (strategy == nullptr) {
      strategy = std::find_if(std::begin(kStrategies), std::end(kStrategies),
                              [&](const StrategyText& known) { return known.name == word; });
      if (strategy == std::end(kStrategies))
        refuse(text, fmt::format("'{}' is no strategy (they are {})", word,
                                 fmt::join(strategy_names(), ", ")));
      choice.strategy = strategy->strategy;
      continue;
    }
    if (word == "mma" || word == "simt") {
      choice.mma = word == "mma";
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) refuse(text, fmt::format("'{}' says nothing", word));
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    const auto field = std::find_if(strategy->fields.begin(), strategy->fields.end(),
                                    [&](const Field& f) { return f.name == name; });
    if (field == strategy->fields.end())
      refuse(text, fmt::format("{} has no '{}'", strategy->name, name));
    choice.*(field->value) = number(text, value);
  }
  if (strategy == nullptr) refuse(text, "it names no strategy");
  return choice;
}

std::vector<PlanChoice> plan_space(const Graph& graph, const Target& target,
                                   const PlanRequest& request) {
  const PlanChoice best_guess = default_choice(graph, target, request);
  Space space(graph, target, request);
  space.add(best_guess);
  if (has_scans(graph)) {
    add_scans(space, graph, target, request);
    add_ahead(space, graph, target, request);
    for (const PlanChoice& choice : published_scan_choices(graph, target, request))
      space.add(choice);
    return space.take();
  }
  if (best_guess.strategy == Strategy::columns) {
    add_columns(space, best_guess, target.max_warps == 1);
    return space.take();
  }
  if (target.max_warps == 1) {
    add_cpu(space, best_guess);
    return space.take();
  }
  const std::int64_t s = request.segment;
  const bool parts = best_guess.strategy == Strategy::parts;
  // Each strategy's plans lie around its own best guess.
  if (best_guess.strategy != Strategy::rows && s > 0 && s <= kLongestInRows)
    add_rows(space, rows_choice(graph, target, request));
  if (best_guess.strategy == Strategy::rows) add_rows(space, best_guess);
  if (parts || s >= kShortestInParts) add_parts(space, parts_choice(graph, target, request));
  if (const std::optional<PlanChoice> staged = staged_choice(graph, target, request))
    add_staged(space, *staged);
  for (const PlanChoice& choice : published_choices(graph, target, request)) space.add(choice);
  return space.take();
}

}  // namespace chainfold::codegen
