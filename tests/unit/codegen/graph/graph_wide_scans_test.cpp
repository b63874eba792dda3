// Minima and maxima of narrow integers that are scanned as words: which, from what, and where.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/text.hpp"

namespace chainfold::codegen {
namespace {

Graph on_gpu(const Computation& computation) {
  return legalize(computation.graph(), gpu_target(90));
}

template <class T>
void expect_words(const std::string& type) {
  const auto x = input<T>("x");
  const Graph graph = on_gpu(over(segments(100), inclusive(max(x)), exclusive(min(x), backward)));
  ASSERT_EQ(graph.folds.size(), 2U) << type;
  EXPECT_EQ(graph.folds[0].name, "max.i32." + type);
  EXPECT_EQ(graph.folds[1].name, "min.i32." + type);
  // Nothing is the narrow type's end: what comes before the first element is told as that.
  using Limits = std::numeric_limits<T>;
  EXPECT_EQ(static_cast<std::int32_t>(graph.folds[0].init[0]), std::int32_t{Limits::min()});
  EXPECT_EQ(static_cast<std::int32_t>(graph.folds[1].init[0]), std::int32_t{Limits::max()});
  for (const NodeId output : graph.outputs) {
    EXPECT_EQ(graph.node(output).type, kDType<T>);
    EXPECT_EQ(graph.node(output).op, Op::convert);
  }
}

TEST(GraphWideScans, NarrowExtremesAreWords) {
  expect_words<std::int8_t>("i8");
  expect_words<std::uint8_t>("u8");
  expect_words<std::int16_t>("i16");
  expect_words<std::uint16_t>("u16");
}

TEST(GraphWideScans, AFoldBesideSharesTheState) {
  const auto x = input<std::int8_t>("x");
  const Graph graph = on_gpu(over(segments(100), inclusive(max(x)), max(x)));
  ASSERT_EQ(graph.folds.size(), 1U);
  EXPECT_EQ(graph.folds[0].name, "max.i32.i8");
  for (const NodeId output : graph.outputs) EXPECT_EQ(graph.node(output).type, DType::i8);
}

TEST(GraphWideScans, NothingElseChanges) {
  const auto x = input<std::int8_t>("x");
  const auto y = input<std::int32_t>("y");
  for (const Computation& computation : std::vector<Computation>{
           over(segments(100), max(x), min(x)), over(whole(), inclusive_sum(x)),
           over(whole(), inclusive(max(y))), over(segments(9), inclusive(argmax(x))),
           over(whole(), inclusive(any(x > 1)))}) {
    const Graph& written = computation.graph();
    EXPECT_EQ(print(on_gpu(computation)), print(written));
  }
  const Computation scan = over(whole(), inclusive(max(x)));
  EXPECT_EQ(print(legalize(scan.graph(), cpu_target(2))), print(scan.graph())) << "a CPU";
  EXPECT_EQ(print_expression(on_gpu(scan)), print_expression(scan.graph())) << "for people";
}

// Half of the rows in twice the blocks, where segments are whole tiles of those, and of the whole
// input where merges take long.
TEST(GraphWideScans, ExtremesHaveShortTiles) {
  const Target target = gpu_target(90);
  const auto plan_of = [&](const Computation& computation, std::int64_t segment) {
    const Graph graph = legalize(computation.graph(), target);
    return to_text(default_choice(graph, target, {.segment = segment}));
  };
  const auto bytes = input<std::int8_t>("x");
  const auto doubles = input<double>("x");
  const auto floats = input<float>("x");
  const std::string everything =
      "look_back warps=8 depth=16 staged=12 near=3 tile=0 blocks=4 bytes=16 simt";
  const std::string whole_tiles =
      "look_back warps=8 depth=16 staged=12 tile=0 blocks=4 bytes=16 simt";
  EXPECT_EQ(plan_of(over(whole(), inclusive(max(bytes))), 0), everything);
  EXPECT_EQ(plan_of(over(whole(), inclusive(min(doubles))), 0), everything);
  EXPECT_NE(plan_of(over(whole(), inclusive(max(floats))), 0), everything);
  EXPECT_NE(plan_of(over(whole(), inclusive_sum(doubles)), 0), everything);
  EXPECT_EQ(plan_of(over(segments(65536), inclusive(max(floats))), 65536), whole_tiles);
  EXPECT_EQ(plan_of(over(segments(65536), inclusive(max(doubles))), 65536), whole_tiles);
  EXPECT_NE(plan_of(over(segments(65536), inclusive_sum(floats)), 65536), whole_tiles);
  EXPECT_NE(plan_of(over(segments(65540), inclusive(max(floats))), 65540), whole_tiles);
}

}  // namespace
}  // namespace chainfold::codegen
