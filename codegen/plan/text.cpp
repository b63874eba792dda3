#include "chainfold/codegen/plan/text.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/ranges.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/plan/strategies.hpp"

namespace chainfold::codegen {

namespace {

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

std::string to_text(const PlanChoice& choice) {
  const StrategyRow& row = row_of(choice.strategy);
  std::string text(row.name);
  for (const PlanField& field : row.fields) {
    const int value = choice.*(field.value);
    if (value != 0 || field.told_at_zero) text += fmt::format(" {}={}", field.name, value);
  }
  return text + (choice.mma ? " mma" : " simt") + (choice.hints ? "" : " hints=off");
}

PlanChoice parse_choice(std::string_view text) {
  PlanChoice choice;
  const StrategyRow* strategy = nullptr;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word.empty()) continue;
    if (strategy == nullptr) {
      const auto all = strategies();
      const auto found = std::find_if(all.begin(), all.end(),
                                      [&](const StrategyRow& known) { return known.name == word; });
      if (found == all.end())
        refuse(text, fmt::format("'{}' is no strategy (they are {})", word,
                                 fmt::join(strategy_names(), ", ")));
      strategy = &*found;
      choice.strategy = strategy->id;
      continue;
    }
    if (word == "mma" || word == "simt") {
      choice.mma = word == "mma";
      continue;
    }
    if (word == "hints=off" || word == "hints=on") {
      choice.hints = word == "hints=on";
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) refuse(text, fmt::format("'{}' says nothing", word));
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    const auto field = std::find_if(strategy->fields.begin(), strategy->fields.end(),
                                    [&](const PlanField& f) { return f.name == name; });
    if (field == strategy->fields.end())
      refuse(text, fmt::format("{} has no '{}'", strategy->name, name));
    choice.*(field->value) = number(text, value);
  }
  if (strategy == nullptr) refuse(text, "it names no strategy");
  return choice;
}

}  // namespace chainfold::codegen
