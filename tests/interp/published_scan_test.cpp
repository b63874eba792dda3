// The published scans against the reference, on sizes that fill no square, warp or block.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include <fmt/format.h>

#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/tensor_scans.hpp"

namespace chainfold::test {
namespace {

using codegen::Strategy;

struct Row {
  const char* plan;
  std::int64_t segment;
  std::int64_t count;  ///< segments, or elements of the whole
  bool loose = false;  ///< needs Accuracy::as_published
};
const Row kRows[] = {
    {"scan16 warps=2 rows=1", 16, 37},
    {"scan16 warps=1 rows=4 bytes=4", 16, 100},
    {"scan16n warps=2 chain=1", 16, 40},
    {"scan16n warps=2 chain=1", 112, 33},
    {"scan16n warps=1 chain=0", 112, 17, true},
    {"scan256 warps=2 rows=1", 256, 3},
    {"scan256 warps=1 rows=4", 256, 6},
    {"scan256 warps=2 rows=2 product=1", 256, 5, true},
    {"scan256n warps=2 chain=1", 768, 3},
    {"scan256n warps=2 chain=0", 1280, 2, true},
    {"scan256n warps=1 chain=1 product=1", 768, 2, true},
    {"scan256n warps=2 chain=0 product=1", 1280, 3, true},
    {"scan_block256n warps=4", 256, 2},
    {"scan_block256n warps=4", 1280, 2},
    {"scan_block256n warps=16", 2048, 1},
    {"scan_block256n warps=4 product=1", 1280, 2, true},
    {"scan_block256n warps=16 product=1", 4352, 1, true},
    {"scan_grid256n warps=4", 0, 5003, true},
    {"scan_grid256n warps=1", 0, 9001, true},
    {"scan_grid256n warps=2", 0, 0, true},
    {"scan_grid256n warps=4 product=1", 0, 5003, true},
};

codegen::PlanRequest request_of(const Row& row) {
  return {.accuracy = row.loose ? Accuracy::as_published : Accuracy::accurate,
          .nonfinite = NonFinite::assume_finite,
          .segment = row.segment};
}

TEST(PublishedScan, AgreesWithTheReference) {
  std::uint64_t seed = 1;
  for (const Row& row : kRows) {
    for (const char* name : {"running_sum_f16", "running_sum_bf16", "running_sum_to_f16"}) {
      if (row.segment == 0 && name == std::string("running_sum_to_f16")) continue;
      for (const Fill fill : {Fill::uniform, Fill::whole, Fill::adversarial}) {
        InterpCase what{.segment = row.segment,
                        .elements = row.segment > 0 ? row.segment * row.count : row.count,
                        .fill = fill,
                        .seed = seed++,
                        .nonfinite = NonFinite::assume_finite,
                        .accuracy = request_of(row).accuracy,
                        .choice = codegen::parse_choice(row.plan)};
        what.options.schedule = seed % 2 ? codegen::Schedule::random : codegen::Schedule::reversed;
        what.options.seed = seed;
        const codegen::Target target = codegen::gpu_target(seed % 3 == 0 ? 80 : 90);
        const Verdict verdict = check_interpreted(program(name), target, what);
        EXPECT_EQ(verdict.problems, "")
            << row.plan << ", S = " << row.segment << ", " << name << ", " << name_of(fill);
      }
    }
  }
}

TEST(PublishedScan, EveryStrategyIsRunAndNamed) {
  std::set<Strategy> run, known;
  for (const Row& row : kRows) {
    const codegen::PlanChoice choice = codegen::parse_choice(row.plan);
    run.insert(choice.strategy);
    EXPECT_EQ(codegen::parse_choice(to_text(choice)), choice);
    EXPECT_NE(codegen::describe(choice.strategy).find("inclusive sum"), std::string::npos);
  }
  for (int s = 0; s < 256; ++s) {
    if (codegen::is_published_scan(static_cast<Strategy>(s)))
      known.insert(static_cast<Strategy>(s));
  }
  EXPECT_EQ(run, known);
}

TEST(PublishedScan, IsLegalForWhatItServesAlone) {
  auto plan_of = [](const char* name, const Row& row, codegen::PlanRequest request,
                    const char* target = "sm_90") {
    const Computation computation =
        program(name).over(request.segment > 0 ? segments(request.segment) : whole());
    return make_plan(computation.graph(), codegen::parse_target(target), request,
                     codegen::parse_choice(row.plan));
  };
  for (const Row& row : kRows) {
    const codegen::PlanRequest request = request_of(row);
    EXPECT_TRUE(plan_of("running_sum_f16", row, request)) << row.plan;
    for (const char* name : {"sum_before_f16", "running_sum_back_f16", "running_sum_i8",
                             "scans_and_folds_f16", "sum_f16"})
      EXPECT_FALSE(plan_of(name, row, request)) << row.plan << ", " << name;
    EXPECT_FALSE(plan_of("running_sum_f16", row, request, "sm_75")) << row.plan;
    codegen::PlanRequest other = request;
    other.nonfinite = NonFinite::ieee;
    EXPECT_FALSE(plan_of("running_sum_f16", row, other)) << row.plan << " is not guarded";
    other = request;
    other.base_alignment = 8;
    EXPECT_TRUE(plan_of("running_sum_f16", row, other)) << row.plan;
    other.base_alignment = 4;
    EXPECT_FALSE(plan_of("running_sum_f16", row, other)) << row.plan << " stores pairs of f32";
    EXPECT_EQ(plan_of("running_sum_to_f16", row, other).has_value(),
              plan_of("running_sum_to_f16", row, request).has_value())
        << row.plan << " stores pairs of f16, if it does";
    other = request;
    other.segment += 8;
    EXPECT_FALSE(plan_of("running_sum_f16", row, other)) << row.plan;
    if (row.loose) {
      other = request;
      other.accuracy = Accuracy::accurate;
      EXPECT_FALSE(plan_of("running_sum_f16", row, other)) << row.plan;
    }
  }
}

TEST(PublishedScan, IsOfferedToFiniteDataAndNeverTheDefault) {
  const Computation computation = program("running_sum_f16").over(segments(256));
  for (const NonFinite nonfinite : {NonFinite::ieee, NonFinite::assume_finite}) {
    const codegen::PlanRequest request{.nonfinite = nonfinite, .segment = 256};
    const auto space = plan_space(computation.graph(), codegen::gpu_target(90), request);
    EXPECT_FALSE(codegen::is_published_scan(space.front().strategy));
    std::set<Strategy> theirs;
    bool quads = false;
    for (const codegen::PlanChoice& choice : space) {
      if (codegen::is_published_scan(choice.strategy)) theirs.insert(choice.strategy);
      quads = quads || (choice.mma && choice.strategy == Strategy::scan_tile);
    }
    EXPECT_EQ(theirs.size(), nonfinite == NonFinite::ieee ? 0U : 4U);
    EXPECT_TRUE(quads) << "our own scan by tensor cores is worth measuring";
  }
}

}  // namespace
}  // namespace chainfold::test
