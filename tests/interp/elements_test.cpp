// Segments of one element, of which a lane's load holds several: every program around the ends of
// loads, of warps' and of blocks' tiles, with inputs and outputs that begin anywhere. The
// interpreter refuses accesses that are not aligned or leave their arrays.
#include <gtest/gtest.h>

#include <random>

#include <fmt/format.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::Plan;
using codegen::PlanChoice;
using codegen::Strategy;

class Elements : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] const TestProgram& tested() const { return programs()[GetParam()]; }
};

TEST_P(Elements, OfEveryNumberAreRight) {
  const Computation computation = tested().over(segments(1));
  if (has_scans(computation.graph())) GTEST_SKIP() << "scans have strategies of their own";
  std::mt19937_64 random(GetParam());
  std::size_t turn = GetParam();
  for (const char* name : {"sm_75", "sm_90"}) {
    const codegen::Target target = codegen::parse_target(name);
    const PlanChoice usual = codegen::default_choice(computation.graph(), target, {.segment = 1});
    ASSERT_EQ(usual.strategy, Strategy::elements);
    for (const int which : {0, 1, 2, 3}) {
      ++turn;  // other numbers for each
      PlanChoice choice = usual;
      if (which == 1) choice.depth = 2, choice.warps = 2;
      if (which == 2) choice.depth = 4, choice.bytes = 8;
      if (which == 3) choice.bytes = 4;
      constexpr int kAlignments[] = {16, 16, 8, 4, 2, 1};
      const int alignment = kAlignments[(turn + static_cast<std::size_t>(which)) % 6];
      const int tile = codegen::make_plan(computation.graph(), target,
                                          {.segment = 1, .base_alignment = alignment}, choice)
                           .value()
                           .segments_per_warp();
      const std::int64_t block = std::int64_t{tile} * choice.warps;
      const std::int64_t counts[] = {
          0,         1,
          tile - 1,  tile,
          tile + 1,  2 * tile + 17,
          block - 1, block,
          block + 1, 2 * block + static_cast<std::int64_t>(random() % 1500)};
      for (const std::int64_t count : counts) {
        if (++turn % (2 * kThin) != 0) continue;
        InterpCase c{.segment = 1,
                     .elements = count,
                     .fill = tested().fills[turn % tested().fills.size()],
                     .seed = random(),
                     .base_alignment = alignment,
                     .output_shift = static_cast<int>(random() % 3),
                     .chunks = random() % 5 == 3 ? 3 : 1,
                     .choice = choice};
        SCOPED_TRACE(fmt::format("{} on {}: {} of {}, aligned to {}, outputs {} off, {} chunks: {}",
                                 tested().name, name, count, name_of(c.fill), c.base_alignment,
                                 c.output_shift, c.chunks, to_text(choice)));
        const Verdict verdict = check_interpreted(tested(), target, c);
        EXPECT_EQ(verdict.problems, "");
        EXPECT_TRUE(count == 0 || verdict.values > 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Elements, testing::Range(std::size_t{0}, programs().size()),
                         [](const auto& info) { return programs()[info.param].name; });

std::optional<Plan> plan_of(const char* name, const PlanChoice& choice,
                            const codegen::PlanRequest& request, const char* target = "sm_90") {
  return codegen::make_plan(program(name).over(segments(request.segment)).graph(),
                            codegen::parse_target(target), request, choice);
}

TEST(ElementsPlan, IsLegalForSegmentsOfOneElementThatLieSideBySide) {
  const PlanChoice choice{.strategy = Strategy::elements, .warps = 4, .depth = 2, .mma = false};
  EXPECT_TRUE(plan_of("sum_f16", choice, {.segment = 1}));
  EXPECT_FALSE(plan_of("sum_f16", choice, {.segment = 2}));
  EXPECT_FALSE(plan_of("sum_f16", choice, {.segment = 1, .strided = true}));
  EXPECT_FALSE(plan_of("sum_f16", choice, {.segment = 1}, "cpu"));
}

TEST(ElementsPlan, AccessesAreAsWideAsTheWidestArrayAllows) {
  const PlanChoice choice{.strategy = Strategy::elements, .warps = 4, .depth = 2, .mma = false};
  const auto width = [&](const char* name, int alignment) {
    return plan_of(name, choice, {.segment = 1, .base_alignment = alignment}).value().load_width;
  };
  EXPECT_EQ(width("sum_f16", 16), 4);  // sums of f16 are f32
  EXPECT_EQ(width("sum_f64", 16), 2);
  EXPECT_EQ(width("sum_i8", 16), 2);  // and of i8 i64
  EXPECT_EQ(width("sum_f16", 4), 2);
  EXPECT_EQ(width("sum_f16", 2), 1);
}

}  // namespace
}  // namespace chainfold::test
