// Smallest and largest elements' places in long segments, whose loops look for places only in
// batches with better values.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/places.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                            DType::i8,  DType::u16, DType::i32, DType::u64};

/// Of types, sizes and targets each run takes others, one of so many.
constexpr int kTurns = 7 * static_cast<int>(kThin);

TEST(Places, AreTheFirstOnes) {
  auto turn = static_cast<int>(std::random_device{}() % kTurns);
  for (const Target& target : {codegen::cpu_target(2), codegen::cpu_target(16, "znver4"),
                               codegen::cpu_target(16, "sapphirerapids"),
                               codegen::cpu_target(4, "znver3", 256), codegen::gpu_target(90)}) {
    for (const DType type : kTypes) {
      for (const std::int64_t n : {0, 700, 4099, 5000, 20'000}) {
        if (++turn % kTurns != 0) continue;
        EXPECT_EQ(check_places(type, n, plan_interpreter(target, 0)), "") << target.name;
      }
    }
  }
}

/// Of segments within lanes, rows, warps and blocks, which begin on loads and within them.
TEST(RunningPlaces, AreTheFirstOnes) {
  auto turn = static_cast<int>(std::random_device{}() % kTurns);
  for (const Target& target : {codegen::gpu_target(90), codegen::gpu_target(75),
                               codegen::cpu_target(16, "znver4"), codegen::cpu_target(2)}) {
    for (const DType type : kTypes) {
      for (const std::int64_t n : {0, 1, 7, 64, 100, 1000, 4099}) {
        if (++turn % kTurns != 0) continue;
        EXPECT_EQ(check_running_places(type, n, plan_interpreter(target, 0)), "") << target.name;
      }
    }
  }
}

/// Of segments that groups of lanes fold, and lanes by themselves.
TEST(Places, OfShortSegmentsAreTheFirstOnes) {
  auto turn = static_cast<int>(std::random_device{}() % kTurns);
  for (const Target& target : {codegen::gpu_target(90), codegen::gpu_target(75)}) {
    for (const DType type : kTypes) {
      for (const std::int64_t n : {1, 3, 7, 13, 64, 129}) {
        if (++turn % kTurns != 0) continue;
        EXPECT_EQ(check_places(type, n, plan_interpreter(target, 0)), "") << target.name;
      }
    }
  }
}

/// One boolean for all elements.
TEST(Places, OfAFilterOfParametersAreThere) {
  const auto x = input<float>("x");
  const auto narrow = input<std::int8_t>("y");
  const auto asked = where(param<float>("p") > 0.F);
  for (const Target& target :
       {codegen::gpu_target(75), codegen::gpu_target(90), codegen::cpu_target(4, "znver4")}) {
    for (const std::int64_t n : {7, 32, 100, 4099, 100'000}) {
      const codegen::PlanRequest request{.segment = n};
      for (const Computation& what : std::initializer_list<Computation>{
               over(segments(n), argmin(x, asked)), over(segments(n), argmax(narrow, asked)),
               over(segments(n), logsumexp(x, asked)),
               over(segments(n), inclusive(argmax(x, asked))),
               over(segments(n), argmax(x, asked), sum(x, asked))}) {
        EXPECT_NO_THROW(
            codegen::compile_graph(codegen::legalize(what.graph(), target), target, request))
            << target.name << " " << n;
      }
    }
  }
}

/// Both ways are there: loops of vectors screen batches, those of GPUs do not.
TEST(Places, AreLookedForInFewBatchesOnACpu) {
  const auto x = input<float>("x");
  const Computation far = over(segments(65536), argmax(x)), sums = over(segments(65536), max(x));
  const codegen::PlanRequest request{.segment = 65536};
  const Target cpu = codegen::cpu_target(16, "znver4"), gpu = codegen::gpu_target(90);
  EXPECT_TRUE(codegen::choose_plan(far.graph(), cpu, request).hints.screens);
  EXPECT_FALSE(codegen::choose_plan(sums.graph(), cpu, request).hints.screens);
  EXPECT_FALSE(codegen::choose_plan(far.graph(), gpu, request).hints.screens);
  // Ranges of scans do, too, unless hints are off.
  const Computation running = over(whole(), inclusive(argmax(x)));
  const codegen::PlanRequest all{.segment = 0};
  codegen::PlanChoice choice = codegen::default_choice(running.graph(), cpu, all);
  EXPECT_TRUE(codegen::make_plan(running.graph(), cpu, all, choice)->hints.screens);
  choice.hints = false;
  EXPECT_FALSE(codegen::make_plan(running.graph(), cpu, all, choice)->hints.screens);
}

}  // namespace
}  // namespace chainfold::test
