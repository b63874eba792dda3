// Size classes: which of them launches of up to so many elements may have.
#include "chainfold/codegen/choose/size_classes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

struct Case {
  Computation computation;
  std::int64_t segment = 0;
};

std::vector<Case> cases() {
  const auto f = cf::input<float>("x");
  const auto h = cf::input<cf::f16>("h");
  const auto d = cf::input<double>("d");
  const auto b = cf::input<std::int8_t>("b");
  return {{cf::over(cf::whole(), cf::sum(h))},
          {cf::over(cf::whole(), cf::mean(d), cf::max(d))},
          {cf::over(cf::whole(), cf::inclusive_sum(f))},
          {cf::over(cf::whole(), cf::inclusive(cf::max(d)))},
          {cf::over(cf::segments(64), cf::sum(h)), 64},
          {cf::over(cf::segments(3), cf::sum(b)), 3},
          {cf::over(cf::segments(40000), cf::sum(f)), 40000},
          {cf::over(cf::segments(200000), cf::sum(f)), 200000},
          {cf::over(cf::segments(1 << 19), cf::inclusive_sum(h)), 1 << 19},
          {cf::over(cf::columns(1 << 20), cf::sum(f)), 1 << 20},
          {cf::over(cf::columns(100), cf::sum(f)), 100}};
}

std::vector<Target> targets() {
  return {codegen::gpu_target(75),
          codegen::gpu_target(80),
          codegen::gpu_target(90),
          codegen::gpu_target(120),
          codegen::cpu_target(16, "sapphirerapids"),
          codegen::cpu_target(2, "znver4"),
          codegen::cpu_target(64)};
}

/// Of launches of every order of magnitude, and of those about the classes' ends.
TEST(SizeClasses, BetweenTwoCountsAreThoseOfAllLaunches) {
  const auto seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const auto up_to = [&](int most_bits) {
    const int bits = std::uniform_int_distribution<int>(0, most_bits)(random);
    return static_cast<std::int64_t>(random() >> 4U) % (std::int64_t{1} << bits);
  };
  for (const Case& c : cases()) {
    const codegen::Graph& graph = c.computation.graph();
    const std::int64_t segment = c.segment;
    const std::int64_t least = segment == 0 || has_columns(graph) ? 0 : segment;
    for (const Target& target : targets()) {
      const auto classes = codegen::element_classes(graph, target);
      for (const std::int64_t step : {std::int64_t{1}, std::max<std::int64_t>(1, segment)}) {
        const std::int64_t most = least + up_to(40);
        const auto found =
            codegen::size_classes_between(graph, target, classes, segment, least, most, step);
        ASSERT_FALSE(found.empty());
        EXPECT_TRUE(std::is_sorted(found.begin(), found.end() - (found.back() == 0 ? 1 : 0)));
        const auto launch = [&](std::int64_t elements) {
          if (elements < least || elements > most) return;
          elements -= (elements - least) % step;
          const std::int64_t is = codegen::size_class_of(graph, target, classes, segment, elements);
          EXPECT_TRUE(is == 0 || is >= elements);
          EXPECT_NE(std::find(found.begin(), found.end(), is), found.end())
              << target.name << ", segments of " << segment << ", " << elements << " of " << most
              << ", seed " << seed;
        };
        for (int i = 0; i < 300; ++i) launch(least + up_to(40));
        for (std::int64_t k = 0; k < 600; ++k) launch(least + k * step);
        for (const std::int64_t limit : found) {
          launch(limit);
          launch(std::min(limit, most - step) + step);
        }
        launch(most);
      }
    }
  }
}

/// None that no launch has, where all launches can be tried.
TEST(SizeClasses, BetweenTwoCountsThereIsNoOther) {
  for (const Case& c : cases()) {
    const codegen::Graph& graph = c.computation.graph();
    const std::int64_t segment = c.segment;
    const std::int64_t least = segment == 0 || has_columns(graph) ? 0 : segment;
    const std::int64_t step = std::max<std::int64_t>(1, segment), most = least + 700 * step;
    for (const Target& target : targets()) {
      const auto classes = codegen::element_classes(graph, target);
      std::set<std::int64_t> seen;
      for (std::int64_t elements = least; elements <= most; elements += step)
        seen.insert(codegen::size_class_of(graph, target, classes, segment, elements));
      const auto found =
          codegen::size_classes_between(graph, target, classes, segment, least, most, step);
      EXPECT_EQ(std::set<std::int64_t>(found.begin(), found.end()), seen)
          << target.name << ", segments of " << segment;
    }
  }
}

TEST(SizeClasses, NoLaunchHasNone) {
  const Computation computation = cf::over(cf::whole(), cf::sum(cf::input<float>("x")));
  EXPECT_TRUE(codegen::size_classes_between(computation.graph(), codegen::gpu_target(90), {1000}, 0,
                                            5, 4, 1)
                  .empty());
}

}  // namespace
}  // namespace chainfold::test
