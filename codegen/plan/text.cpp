// Plan choices as texts: a strategy's name, its decisions, and the unit.
#include "chainfold/codegen/plan/text.hpp"

#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/ranges.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/fields.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

using Field = PlanField;
constexpr Field kRows[] = {{"warps", &PlanChoice::warps},
                           {"depth", &PlanChoice::depth},
                           {"lanes", &PlanChoice::lanes, false},
                           {"rows", &PlanChoice::rows},
                           {"bytes", &PlanChoice::bytes}};
constexpr Field kElements[] = {
    {"warps", &PlanChoice::warps}, {"depth", &PlanChoice::depth}, {"bytes", &PlanChoice::bytes}};
constexpr Field kParts[] = {{"warps", &PlanChoice::warps},
                            {"depth", &PlanChoice::depth},
                            {"parts", &PlanChoice::parts},
                            {"cluster", &PlanChoice::cluster, false},
                            {"bytes", &PlanChoice::bytes}};
constexpr Field kStaged[] = {{"warps", &PlanChoice::warps},   {"lanes", &PlanChoice::lanes},
                             {"rows", &PlanChoice::rows},     {"stages", &PlanChoice::stages},
                             {"burst", &PlanChoice::burst},   {"late", &PlanChoice::late, false},
                             {"blocks", &PlanChoice::blocks}, {"bytes", &PlanChoice::bytes}};

constexpr Field kColumns[] = {{"warps", &PlanChoice::warps},
                              {"depth", &PlanChoice::depth},
                              {"runs", &PlanChoice::rows},
                              {"phases", &PlanChoice::phases, false},
                              {"strip", &PlanChoice::strip, false},
                              {"parts", &PlanChoice::parts},
                              {"blocks", &PlanChoice::blocks, false},
                              {"bytes", &PlanChoice::bytes}};
constexpr Field kScan[] = {{"warps", &PlanChoice::warps},
                           {"depth", &PlanChoice::depth},
                           {"blocks", &PlanChoice::blocks},
                           {"bytes", &PlanChoice::bytes}};
constexpr Field kTiles[] = {{"warps", &PlanChoice::warps},          {"depth", &PlanChoice::depth},
                            {"direct", &PlanChoice::direct, false}, {"tile", &PlanChoice::tile},
                            {"blocks", &PlanChoice::blocks},        {"bytes", &PlanChoice::bytes}};
constexpr Field kBack[] = {{"warps", &PlanChoice::warps},
                           {"depth", &PlanChoice::depth},
                           {"staged", &PlanChoice::staged},
                           {"heads", &PlanChoice::heads, false},
                           {"near", &PlanChoice::near, false},
                           {"across", &PlanChoice::across, false},
                           {"blocked", &PlanChoice::blocked, false},
                           {"tile", &PlanChoice::tile},
                           {"blocks", &PlanChoice::blocks},
                           {"bytes", &PlanChoice::bytes}};
constexpr Field kAhead[] = {{"warps", &PlanChoice::warps},      {"depth", &PlanChoice::depth},
                            {"near", &PlanChoice::near, false}, {"tile", &PlanChoice::tile, false},
                            {"stages", &PlanChoice::stages},    {"blocks", &PlanChoice::blocks},
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
    {"elements", Strategy::elements, kElements},
    {"parts", Strategy::parts, kParts},
    {"staged", Strategy::staged, kStaged},
    {"columns", Strategy::columns, kColumns},
    {"scan_tile", Strategy::scan_tile, kScan},
    {"scan_run", Strategy::scan_run, kScan},
    {"scan_block", Strategy::scan_block, kScan},
    {"look_back", Strategy::look_back, kBack},
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

const StrategyText& text_of(Strategy strategy) {
  return *std::find_if(std::begin(kStrategies), std::end(kStrategies),
                       [&](const StrategyText& known) { return known.strategy == strategy; });
}

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

}  // namespace

std::span<const PlanField> fields_of(Strategy strategy) { return text_of(strategy).fields; }

std::string to_text(const PlanChoice& choice) {
  const StrategyText& row = text_of(choice.strategy);
  std::string text(row.name);
  for (const Field& field : row.fields) {
    const int value = choice.*(field.value);
    if (value != 0 || field.told_at_zero) text += fmt::format(" {}={}", field.name, value);
  }
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

}  // namespace chainfold::codegen
