// Where the published strategies are legal, what they promise, and that nobody gets one unasked.
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/verify.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/plan/verify.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/published.hpp"

namespace chainfold::test {
namespace {

using codegen::parse_choice;
using codegen::Plan;
using codegen::PlanChoice;
using codegen::PlanRequest;
using codegen::Strategy;

std::optional<Plan> plan_of(const char* graph, const char* target, const PlanRequest& request,
                            const std::string& text, const dsl::Partition& partition) {
  const Computation computation = program(graph).over(partition);
  return make_plan(computation.graph(), codegen::parse_target(target), request, parse_choice(text));
}
std::optional<Plan> plan_of(const char* graph, const char* target, const PlanRequest& request,
                            const std::string& text) {
  return plan_of(graph, target, request, text,
                 request.segment > 0 ? segments(request.segment) : whole());
}

/// Of every case in the table the first part of the text, for requests of our own.
class PublishedCases : public testing::TestWithParam<std::size_t> {
 protected:
  const PublishedCase& row() const { return published_cases()[GetParam()]; }
  PlanRequest request() const {
    return {.accuracy = row().loose ? Accuracy::as_published : Accuracy::accurate,
            .segment = row().segment};
  }
  /// For the case's own segments.
  std::optional<Plan> own_plan(const char* graph, const char* target, const PlanRequest& asked,
                               const std::string& text) const {
    return plan_of(graph, target, asked, text, row().partition());
  }
};

TEST_P(PublishedCases, AreLegalForSumsOfSixteenBitFloatsAlone) {
  const std::string plan = row().plan;
  for (const char* target : {"sm_75", "sm_80", "sm_90", "sm_120"})
    EXPECT_TRUE(own_plan("sum_f16", target, request(), plan)) << plan << " on " << target;
  EXPECT_TRUE(own_plan("sum_bf16", "sm_80", request(), plan)) << plan;
  EXPECT_FALSE(own_plan("sum_bf16", "sm_75", request(), plan)) << "no instruction takes bf16 there";
  EXPECT_FALSE(own_plan("sum_f16", "cpu", request(), plan)) << plan;
  for (const char* graph :
       {"sum_f32", "sum_i8", "sum_f64", "dot_f16", "norm_f16", "filter_f16", "basics_f16",
        "two_sums_f16", "frames", "variance_f32", "sum_i32", "bitmap_where_f16", "scan_sum_f16"})
    EXPECT_FALSE(own_plan(graph, "sm_90", request(), plan)) << plan << " for " << graph;
}

TEST_P(PublishedCases, AreLegalForTheirSegmentsAlone) {
  const std::string plan = row().plan;
  const Strategy strategy = parse_choice(plan).strategy;
  for (const std::int64_t s : {0, 1, 8, 16, 17, 32, 100, 255, 256, 257, 272, 512, 1000, 4096}) {
    const bool sixteen = s > 0 && s % 16 == 0, square = s > 0 && s % 256 == 0;
    const bool serves = strategy == Strategy::reduction16    ? s == 16
                        : strategy == Strategy::reduction256 ? s == 256
                        : strategy == Strategy::strided16n   ? sixteen
                        : strategy == Strategy::coalesced16n ? sixteen && s >= 256
                        : row().offsets                      ? false
                        : row().segment > 0                  ? square
                                                             : s == 0;
    if (!serves) {
      EXPECT_FALSE(
          plan_of("sum_f16", "sm_90", {.accuracy = Accuracy::as_published, .segment = s}, plan))
          << plan << " for segments of " << s;
    }
  }
  const bool by_offsets = strategy == Strategy::padded;
  for (const dsl::Partition& told :
       {offsets("o"), offsets("from", "to"), offsets<std::int32_t>("o")})
    EXPECT_EQ(plan_of("sum_f16", "sm_90", request(), plan, told).has_value(), by_offsets) << plan;
  for (const dsl::Partition& other :
       {heads(input<bool>("b")), heads(input<f16>("x") == input<f16>("x"))})
    EXPECT_FALSE(plan_of("sum_f16", "sm_90", request(), plan, other)) << plan;
  EXPECT_FALSE(plan_of("sum_f16", "sm_90", {.accuracy = Accuracy::as_published, .segment = 64},
                       plan, columns(64)))
      << plan;
}

TEST_P(PublishedCases, KeepTheBoundOrPromiseNone) {
  const std::string plan = row().plan;
  const auto made = own_plan("sum_f16", "sm_90", request(), plan);
  ASSERT_TRUE(made);
  const Computation computation = program("sum_f16").over(row().partition());
  const std::string text = print(*made, computation.graph());
  EXPECT_EQ(text.find("none proven (as published)") != std::string::npos, rounds_sums(*made));
  EXPECT_NE(text.find(fmt::format("strategy {}", name_of(made->strategy))), std::string::npos)
      << text;
  EXPECT_NE(text.find("source ["), std::string::npos);
  PlanRequest strict = request();
  strict.accuracy = Accuracy::accurate;
  EXPECT_EQ(own_plan("sum_f16", "sm_90", strict, plan).has_value(), !row().loose) << plan;
  strict.accuracy = Accuracy::fast;
  EXPECT_EQ(own_plan("sum_f16", "sm_90", strict, plan).has_value(),
            !rounds_sums(*made) && made->folds[0].error_bound_u <= 64)
      << plan << ": " << made->folds[0].error_bound_u;
  EXPECT_GT(made->folds[0].error_bound_u, 10);
}

TEST_P(PublishedCases, TextsReadBack) {
  const PlanChoice choice = parse_choice(row().plan);
  EXPECT_EQ(parse_choice(to_text(choice)), choice);
  EXPECT_EQ(to_text(choice).substr(0, to_text(choice).find(' ')), name_of(choice.strategy));
  EXPECT_FALSE(own_plan("sum_f16", "sm_90", request(), std::string(row().plan) + " simt"));
}

INSTANTIATE_TEST_SUITE_P(All, PublishedCases,
                         testing::Range(std::size_t{0}, published_cases().size()));

TEST(PublishedPlans, DecisionsThatMakeNoSense) {
  const PlanRequest whole_input{.accuracy = Accuracy::as_published};
  for (const char* text :
       {"recurrence warps=8 chain=0", "recurrence warps=8 chain=9", "recurrence warps=3 chain=4",
        "single_pass warps=4 chain=4", "single_pass warps=4 chain=4 blocks=1000",
        "split warps=8 blocks=1", "split warps=8 blocks=1 fraction=100",
        "split warps=1 blocks=1 fraction=50", "grid256n warps=8 depth=4 blocks=1",
        "grid256n warps=8 depth=4 chain=8 blocks=1", "grid256n warps=8 depth=32 chain=1 blocks=1",
        "single_pass warps=4 chain=4 blocks=1 product=2"}) {
    EXPECT_FALSE(plan_of("sum_f16", "sm_90", whole_input, text)) << text;
  }
  EXPECT_FALSE(plan_of("sum_f16", "sm_90", {.accuracy = Accuracy::as_published, .segment = 4096},
                       "efficient256n warps=8 depth=4 chain=3"));
  EXPECT_FALSE(plan_of("sum_f16", "sm_90", {.segment = 16}, "reduction16 warps=8 rows=16"));
}

TEST(PublishedPlans, BlocksAddAtomicallyOnlyWhereNothingIsPromised) {
  const std::string plan = "single_pass warps=4 chain=1 blocks=2";
  auto atomics = [&](const char* graph, Accuracy accuracy, Determinism determinism) {
    return plan_of(graph, "sm_90", {.accuracy = accuracy, .determinism = determinism}, plan)
        .value()
        .published.atomics;
  };
  EXPECT_TRUE(atomics("sum_f16", Accuracy::as_published, Determinism::not_guaranteed));
  EXPECT_FALSE(atomics("sum_f16", Accuracy::as_published, Determinism::run_to_run));
  EXPECT_FALSE(atomics("sum_f16", Accuracy::accurate, Determinism::not_guaranteed));
  EXPECT_FALSE(atomics("sum_to_f16", Accuracy::as_published, Determinism::not_guaranteed))
      << "the output is not the sum";
  Plan forged =
      plan_of("sum_f16", "sm_90",
              {.accuracy = Accuracy::as_published, .determinism = Determinism::not_guaranteed},
              plan)
          .value();
  forged.promises.determinism = Determinism::run_to_run;
  const Computation computation = program("sum_f16").over(whole());
  EXPECT_THROW(verify(forged, computation.graph(), codegen::gpu_target(90)), InternalError);
}

TEST(PublishedPlans, NobodyGetsOneUnasked) {
  for (const Accuracy accuracy : {Accuracy::accurate, Accuracy::fast, Accuracy::as_published}) {
    for (const char* graph : {"sum_f16", "sum_bf16"}) {
      for (const std::int64_t s : {0, 16, 48, 256, 512, 1040, 4096, 65536, 1 << 20}) {
        const Computation computation = program(graph).over(s > 0 ? segments(s) : whole());
        const Plan plan = choose_plan(computation.graph(), codegen::gpu_target(90),
                                      {.accuracy = accuracy, .segment = s});
        EXPECT_FALSE(codegen::is_published(plan.strategy)) << s;
        EXPECT_LE(plan.folds[0].error_bound_u, accuracy == Accuracy::accurate ? 16 : 64);
      }
    }
  }
}

TEST(PublishedPlans, AreInTheSpaceBehindOurs) {
  const Computation computation = program("sum_f16").over(whole());
  std::set<Strategy> found;
  for (const Accuracy accuracy : {Accuracy::accurate, Accuracy::as_published}) {
    for (const std::int64_t s : {0, 16, 48, 256, 1040, 4096}) {
      bool behind = false;
      for (const PlanChoice& choice : plan_space(computation.graph(), codegen::gpu_target(90),
                                                 {.accuracy = accuracy, .segment = s})) {
        const bool theirs = codegen::is_published(choice.strategy);
        EXPECT_TRUE(theirs || !behind) << to_text(choice);
        behind = behind || theirs;
        if (theirs) found.insert(choice.strategy);
        if (accuracy == Accuracy::accurate) {
          EXPECT_EQ(choice.product, 0) << to_text(choice);
        }
      }
      EXPECT_TRUE(behind) << s;
    }
  }
  EXPECT_EQ(found.size(), 11U);  // one more serves segments that offsets tell alone
}

TEST(PublishedPlans, ThoseOfIrregularSegmentsAreBehindOurs) {
  const Computation computation = program("sum_f16").over(offsets("offsets"));
  const codegen::Target target = codegen::gpu_target(90);
  for (const Accuracy accuracy : {Accuracy::accurate, Accuracy::fast, Accuracy::as_published}) {
    const PlanRequest request{.accuracy = accuracy};
    EXPECT_EQ(choose_plan(computation.graph(), target, request).strategy, Strategy::merge_path);
    const std::vector<PlanChoice> space = plan_space(computation.graph(), target, request);
    EXPECT_EQ(space.front().strategy, Strategy::merge_path);
    EXPECT_EQ(space.back().strategy, Strategy::padded);
    for (const PlanChoice& choice : space) {
      EXPECT_TRUE(choice.strategy == Strategy::merge_path || choice.strategy == Strategy::padded);
    }
  }
}

TEST(PublishedPlans, LaunchesOfARecurrence) {
  EXPECT_EQ(codegen::recurrence_launches(1), 5);
  EXPECT_EQ(codegen::recurrence_launches(4), 4);
  EXPECT_EQ(codegen::recurrence_launches(8), 4);
}

}  // namespace
}  // namespace chainfold::test
