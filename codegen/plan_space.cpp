#include "chainfold/codegen/plan_space.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "chainfold/codegen/error.hpp"

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
constexpr Field kFields[] = {{"warps", &PlanChoice::warps},
                             {"depth", &PlanChoice::depth},
                             {"rows", &PlanChoice::rows},
                             {"parts", &PlanChoice::parts},
                             {"bytes", &PlanChoice::bytes}};

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
  for (const int warps : {8, 4, 16, 2}) {
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
  const bool parts = choice.strategy == Strategy::parts;
  return fmt::format("{} warps={} depth={} {}={} bytes={} {}", parts ? "parts" : "rows",
                     choice.warps, choice.depth, parts ? "parts" : "rows",
                     parts ? choice.parts : choice.rows, choice.bytes, choice.mma ? "mma" : "simt");
}

PlanChoice parse_choice(std::string_view text) {
  PlanChoice choice;
  bool strategy = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word.empty()) continue;
    if (word == "rows" || word == "parts") {
      choice.strategy = word == "rows" ? Strategy::rows : Strategy::parts;
      strategy = true;
      continue;
    }
    if (word == "mma" || word == "simt") {
      choice.mma = word == "mma";
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) refuse(text, fmt::format("'{}' says nothing", word));
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    const auto* const field = std::find_if(std::begin(kFields), std::end(kFields),
                                           [&](const Field& f) { return f.name == name; });
    if (field == std::end(kFields)) refuse(text, fmt::format("it has no '{}'", name));
    choice.*(field->value) = number(text, value);
  }
  if (!strategy) refuse(text, "it names no strategy");
  return choice;
}

std::vector<PlanChoice> plan_space(const Graph& graph, const Target& target,
                                   const PlanRequest& request) {
  const PlanChoice best_guess = default_choice(graph, target, request);
  Space space(graph, target, request);
  space.add(best_guess);
  if (target.max_warps == 1) {
    add_cpu(space, best_guess);
    return space.take();
  }
  // The other strategy starts from the default of a size that it would be chosen for.
  const bool parts = best_guess.strategy == Strategy::parts;
  PlanRequest other = request;
  other.segment = parts ? kShortestInParts : 0;
  const PlanChoice second_guess = default_choice(graph, target, other);
  const std::int64_t s = request.segment;
  if (parts) {
    add_parts(space, best_guess);
    if (s > 0 && s <= kLongestInRows) add_rows(space, second_guess);
  } else {
    add_rows(space, best_guess);
    if (s >= kShortestInParts) add_parts(space, second_guess);
  }
  return space.take();
}

}  // namespace chainfold::codegen
