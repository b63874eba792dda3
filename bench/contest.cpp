#include "chainfold/bench/contest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "chainfold/codegen/plan_space.hpp"

namespace chainfold::bench {
namespace {

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

std::vector<std::string> plans_of(const Case& test, const Target& target) {
  std::vector<std::string> texts;
  const codegen::PlanRequest request{.segment = test.plan_size()};
  for (const auto& choice : codegen::plan_space(test.computation.graph(), target, request))
    texts.push_back(codegen::to_text(choice));
  return texts;
}

}  // namespace

std::string Way::name() const {
  std::string text = impl;
  if (!kind.empty()) text += ' ' + kind;
  if (!strategy.empty()) text += ' ' + strategy;
  return text;
}

std::vector<Way> OurPlans::ways(const Case& test) const {
  std::vector<Way> result = {{.impl = "chainfold", .kind = "chosen", .strategy = {}}};
  if (tune_) result.push_back({.impl = "chainfold", .kind = "tuned", .strategy = {}});
  std::vector<std::string> seen;  // the space begins with the default, which is chosen
  for (const std::string& text : plans_of(test, target_)) {
    const std::string strategy = first_word(text);
    if (std::find(seen.begin(), seen.end(), strategy) != seen.end()) continue;
    if (!seen.empty())
      result.push_back({.impl = "chainfold", .kind = "forced", .strategy = strategy});
    seen.push_back(strategy);
  }
  return result;
}

std::string OurPlans::best_of(const Case& test, const std::string& strategy) const {
  if (tune_) {
    const Kernel tuned =
        compile(test, {.impl = "chainfold", .kind = "tuned", .strategy = {}});  // a record by now
    if (const auto result = tuned.tuning()) {
      const TuningResult::Candidate* best = nullptr;
      for (const auto& candidate : result->candidates) {
        if (first_word(candidate.plan) == strategy && candidate.ms > 0 &&
            (best == nullptr || candidate.ms < best->ms))
          best = &candidate;
      }
      if (best != nullptr) return best->plan;
    }
  }
  for (const std::string& text : plans_of(test, target_))
    if (first_word(text) == strategy) return text;
  throw std::runtime_error("no plan of the strategy " + strategy);
}

Kernel OurPlans::compile(const Case& test, const Way& way) const {
  Options options{.target = target_, .tuning = Tuning::off};
  if (way.kind == "tuned") {
    options.tuning = Tuning::measure;
    // Short runs are tuned as they are; a gibibyte tells as much about longer ones as all of it.
    constexpr std::int64_t kShort = 256 << 20;
    if (test.bytes_read() < kShort) options.tuning_elements = test.elements;
  }
  if (way.kind == "forced") options.plan = best_of(test, way.strategy);
  return chainfold::compile(test.computation, options);
}

}  // namespace chainfold::bench
