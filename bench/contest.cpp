#include "chainfold/bench/contest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/tuning/progress.hpp"

namespace chainfold::bench {
namespace {

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

codegen::PlanRequest request_for(const Case& test, bool as_published, bool finite = false) {
  codegen::PlanRequest request{.segment = test.plan_size()};
  if (finite) request.nonfinite = NonFinite::assume_finite;
  if (as_published) {
    request.accuracy = Accuracy::as_published;
    request.determinism = Determinism::not_guaranteed;
  }
  return request;
}

/// Where the cost of containing NaN and infinities is measured: several segments share a column of
/// a matrix instruction in the shorter ones, and none does in the longest.
bool shows_containment(const Case& test) {
  constexpr std::int64_t kSizes[] = {8, 16, 32, 64, 256};
  return test.op == Op::sum && test.columns == 0 && !test.ragged && is_float(test.in) &&
         size_of(test.in) == 2 &&
         std::find(std::begin(kSizes), std::end(kSizes), test.segment) != std::end(kSizes);
}

}  // namespace

std::string Way::name() const {
  std::string text = impl;
  if (!kind.empty()) text += ' ' + kind;
  if (!strategy.empty()) text += ' ' + strategy;
  return text;
}

Entrant make_entrant(const Way& way, const std::function<void(Entrant&)>& load) {
  Entrant entrant{.way = way, .plan = way.strategy};
  try {
    load(entrant);
  } catch (const WrongResult& error) {
    entrant.wrong = true;
    entrant.missing = error.what();
  } catch (const std::exception& error) {
    entrant.missing = error.what();
  }
  return entrant;
}

double peer_scan_bound_u(const Case& test, int roundings) {
  constexpr double kAdditions = 32;
  const double narrow = test.out == DType::f16 ? 0x1p13 : test.out == DType::bf16 ? 0x1p16 : 1;
  return kAdditions + (roundings - 1) * narrow;
}

std::vector<std::string> OurPlans::plans_of(const Case& test, bool as_published) const {
  std::vector<std::string> texts;
  const codegen::PlanRequest request = request_for(test, as_published);
  const codegen::Graph graph = codegen::legalize(test.computation.graph(), target_);
  for (const auto& choice : codegen::plan_space(graph, target_, request))
    texts.push_back(codegen::to_text(choice));
  return texts;
}

std::vector<Way> OurPlans::ways(const Case& test) const {
  std::vector<Way> result = {{.impl = "chainfold", .kind = "chosen", .strategy = {}}};
  if (tune_) result.push_back({.impl = "chainfold", .kind = "tuned", .strategy = {}});
  std::vector<std::string> seen;  // the space begins with the default, which is chosen
  for (const bool as_published : {false, true}) {
    for (const std::string& text : plans_of(test, as_published)) {
      const std::string strategy = first_word(text);
      if (std::find(seen.begin(), seen.end(), strategy) != seen.end()) continue;
      if (!seen.empty()) {
        result.push_back({.impl = "chainfold",
                          .kind = "forced",
                          .strategy = strategy,
                          .as_published = as_published});
      }
      seen.push_back(strategy);
    }
  }
  if (target_.has_mma && shows_containment(test))
    result.push_back({.impl = kFiniteImpl, .kind = "chosen", .strategy = {}});
  return result;
}

std::string OurPlans::best_of(const Case& test, const Way& way) const {
  if (tune_ && !way.as_published) {
    const Kernel tuned =
        compile(test, {.impl = "chainfold", .kind = "tuned", .strategy = {}});  // a record by now
    if (const auto result = tuned.tuning()) {
      const TuningResult::Candidate* best = nullptr;
      for (const auto& candidate : result->candidates) {
        if (first_word(candidate.plan) == way.strategy && candidate.ms > 0 &&
            (best == nullptr || candidate.ms < best->ms))
          best = &candidate;
      }
      if (best != nullptr) return best->plan;
    }
  }
  for (const std::string& text : plans_of(test, way.as_published))
    if (first_word(text) == way.strategy) return text;
  throw std::runtime_error("no plan of the strategy " + way.strategy);
}

Kernel OurPlans::compile(const Case& test, const Way& way) const {
  Options options{.target = target_, .tuning = Tuning::off};
  if (way.kind == "tuned") {
    options.tuning = Tuning::measure;
    options.on_tuning = progress_to_stderr;
    // Short runs are tuned as they are; two gibibytes tell as much about longer ones as all of it.
    constexpr std::int64_t kShort = 256 << 20;
    if (test.bytes_read() < kShort) options.tuning_elements = test.elements;
  }
  if (way.as_published) {
    options.accuracy = Accuracy::as_published;
    options.determinism = Determinism::not_guaranteed;
  }
  if (way.finite) options.nonfinite = NonFinite::assume_finite;
  if (way.kind == "forced") options.plan = best_of(test, way);
  if (way.kind == "pinned") options.plan = way.strategy;
  if (way.impl == kFiniteImpl) {
    options.nonfinite = NonFinite::assume_finite;
    options.plan = plans_of(test, false).front();
  }
  return chainfold::compile(test.computation, options);
}

double OurPlans::bound_u(const Case& test, const Way& way, const Kernel& kernel) const {
  if (!way.as_published) return kernel.plan_facts().error_bound_u;
  const auto plan =
      codegen::make_plan(codegen::legalize(test.computation.graph(), target_), target_,
                         request_for(test, true, way.finite), codegen::parse_choice(kernel.plan()));
  if (!plan) throw std::logic_error("a kernel of a plan that is not legal");
  double bound = 0;
  for (const codegen::FoldPlan& fold : plan->folds) bound = std::max(bound, fold.error_bound_u);
  return bound;
}

}  // namespace chainfold::bench
