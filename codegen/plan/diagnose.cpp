// Finds which decisions of a choice are out of range: asks make_plan() what else it would take. So
// a message tells the rules themselves, also those that depend on the graph, the target or other
// decisions. There is no second copy of them.
#include "chainfold/codegen/plan/diagnose.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/text.hpp"

namespace chainfold::codegen {

namespace {

/// Every value up to kDense is tried, beyond them powers of two up to kMost, and ends of ranges are
/// looked for between those.
constexpr int kDense = 128, kMost = 1 << 20;

/// Ranges that a message tells, about; of more it tells the first.
constexpr std::size_t kMostTold = 12;

/// From first to last, both included.
struct Range {
  int first, last;
};

/// "1, 2, 4 to 8 or 16"
std::string words(const std::vector<Range>& ranges) {
  std::vector<std::string> told;
  for (const auto [first, last] : ranges) {
    if (told.size() >= kMostTold) {
      told.emplace_back("...");
      break;
    }
    told.push_back(last == kMost      ? fmt::format("{} and more", first)
                   : last - first > 1 ? fmt::format("{} to {}", first, last)
                                      : fmt::format("{}", first));
    if (last - first == 1) told.push_back(fmt::format("{}", last));
  }
  const std::string last = std::move(told.back());
  told.pop_back();
  if (told.empty()) return last;
  return fmt::format("{}{}{}", fmt::join(told, ", "), last == "..." ? ", " : " or ", last);
}

class Search {
 public:
  Search(const Graph& graph, const Target& target, const PlanRequest& request,
         const PlanChoice& pinned)
      : graph_(graph),
        target_(target),
        request_(request),
        pinned_(pinned),
        fields_(row_of(pinned.strategy).fields) {}

  std::string run() const {
    for (const PlanField& field : fields_) {
      if (std::string fault = fault_at(pinned_, field); !fault.empty()) return fault;
    }
    PlanChoice other_unit = pinned_;
    other_unit.mma = !pinned_.mma;
    if (legal(other_unit)) return unit_fault();
    return several_faults();
  }

 private:
  [[nodiscard]] bool legal(const PlanChoice& choice) const {
    return make_plan(graph_, target_, request_, choice).has_value();
  }
  [[nodiscard]] bool legal(PlanChoice choice, const PlanField& field, int value) const {
    choice.*field.value = value;
    return legal(choice);
  }
  [[nodiscard]] std::string unit_fault() const {
    return pinned_.mma ? "mma does not serve here, simt does"
                       : "simt does not serve here, mma does";
  }
  /// Empty where no value of the field makes the others legal.
  [[nodiscard]] std::string fault_at(const PlanChoice& others, const PlanField& field) const {
    const std::vector<Range> ranges = ranges_of(others, field);
    if (ranges.empty()) return {};
    return fmt::format("{}={} is out of range ({})", field.name, pinned_.*field.value,
                       words(ranges));
  }

  /// Ascending, of the values that are legal beside `others`.
  [[nodiscard]] std::vector<Range> ranges_of(const PlanChoice& others,
                                             const PlanField& field) const {
    std::vector<Range> ranges;
    auto add = [&](int value) {
      if (!legal(others, field, value)) return;
      if (!ranges.empty() && ranges.back().last == value - 1) {
        ranges.back().last = value;
      } else {
        ranges.push_back({value, value});
      }
    };
    for (int value = 0; value <= kDense; ++value) add(value);
    const bool goes_on = legal(others, field, kDense + 1);
    if (!ranges.empty() && ranges.back().last == kDense && goes_on) {
      ranges.back().last = end_of_range(others, field);
      return ranges;
    }
    for (int value = 2 * kDense; value <= kMost; value *= 2) add(value);
    return ranges;
  }
  /// The last legal value of a range that goes on behind kDense.
  [[nodiscard]] int end_of_range(const PlanChoice& others, const PlanField& field) const {
    int last = kDense + 1, behind = 2 * kDense;
    while (behind <= kMost && legal(others, field, behind))
      last = std::exchange(behind, 2 * behind);
    if (behind > kMost) return kMost;
    while (behind - last > 1) {
      const int middle = last + (behind - last) / 2;
      (legal(others, field, middle) ? last : behind) = middle;
    }
    return last;
  }

  /// A legal choice of the strategy out of plain values; nothing where none is.
  [[nodiscard]] std::optional<PlanChoice> plain() const {
    PlanChoice choice = pinned_;
    auto set = [&](int PlanChoice::* value, int to) {
      const bool known = std::any_of(fields_.begin(), fields_.end(),
                                     [&](const PlanField& field) { return field.value == value; });
      if (known) choice.*value = to;
    };
    for (const PlanField& field : fields_) choice.*field.value = 0;
    for (const auto value : {&PlanChoice::parts, &PlanChoice::occupancy, &PlanChoice::chain})
      set(value, 1);
    set(&PlanChoice::stages, 2);
    set(&PlanChoice::store_batch, 2);
    set(&PlanChoice::fraction, 50);
    set(&PlanChoice::bytes, PlanChoice{}.bytes);
    for (const bool mma : {false, true}) {
      for (const int warps : {1, 8, 16}) {
        for (const int tile : {0, 1}) {
          for (const int depth : {1, 4, 32, 64}) {
            for (const int rows : {1, 8}) {
              for (const int lanes : {0, 1, 8, kWarpWidth}) {
                choice.mma = mma;
                set(&PlanChoice::warps, warps);
                set(&PlanChoice::tile, tile);
                set(&PlanChoice::depth, depth);
                set(&PlanChoice::rows, rows);
                set(&PlanChoice::lanes, lanes);
                if (legal(choice)) return choice;
              }
            }
          }
        }
      }
    }
    return std::nullopt;
  }

  /// The ranges where one other value does not help. From a choice of plain values on, pinned ones
  /// are taken as long as it stays legal, by themselves and in pairs. What is left is out of range.
  [[nodiscard]] std::string several_faults() const {
    std::optional<PlanChoice> choice = plain();
    if (!choice) return {};
    auto take = [&](const PlanChoice& tried) {
      const bool taken = tried != *choice && legal(tried);
      if (taken) choice = tried;
      return taken;
    };
    auto pinned_at = [&](PlanChoice tried, const PlanField& field) {
      tried.*field.value = pinned_.*field.value;
      return tried;
    };
    for (bool changed = true; changed;) {
      changed = false;
      PlanChoice unit = *choice;
      unit.mma = pinned_.mma;
      changed |= take(unit);
      for (const PlanField& field : fields_) changed |= take(pinned_at(*choice, field));
      for (std::size_t i = 0; i < fields_.size() && !changed; ++i) {
        for (std::size_t j = i + 1; j < fields_.size() && !changed; ++j)
          changed = take(pinned_at(pinned_at(*choice, fields_[i]), fields_[j]));
      }
    }
    std::string text;
    for (const PlanField& field : fields_) {
      if ((*choice).*field.value == pinned_.*field.value) continue;
      text += (text.empty() ? "" : ", ") + fault_at(*choice, field);
    }
    if (choice->mma != pinned_.mma) text += (text.empty() ? "" : ", ") + unit_fault();
    return text;
  }

  const Graph& graph_;
  const Target& target_;
  const PlanRequest& request_;
  const PlanChoice& pinned_;
  std::span<const PlanField> fields_;
};

}  // namespace

std::string diagnose(const Graph& graph, const Target& target, const PlanRequest& request,
                     const PlanChoice& choice) {
  std::string fault = Search(graph, target, request, choice).run();
  if (!fault.empty()) return fault;
  // What no policy admits is named also where the one asked for admits nothing of the strategy.
  PlanRequest lax = request;
  lax.accuracy = Accuracy::as_published;
  lax.nonfinite = NonFinite::assume_finite;
  if (make_plan(graph, target, lax, choice)) return {};
  return Search(graph, target, lax, choice).run();
}

}  // namespace chainfold::codegen
