// Sums that are cast to narrower integers: they are computed in 32 bits, and wrap as the wide ones
// would once cast.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "chainfold/codegen/base/literal.hpp"
#include "chainfold/tests/support/expect_scan.hpp"

namespace chainfold::test {
namespace {

/// The folds of a computation by name.
std::vector<std::string> folds_of(const Computation& computation) {
  std::vector<std::string> names;
  for (const codegen::Fold& fold : computation.graph().folds) names.push_back(fold.name);
  return names;
}
using Names = std::vector<std::string>;

TEST(NarrowSums, AreNoWiderThanWhatReadsThem) {
  const auto x = input<std::int32_t>("x");
  const auto y = input<std::int8_t>("y");
  EXPECT_EQ(folds_of(over(whole(), sum(x))), Names{"sum.i64"});
  EXPECT_EQ(folds_of(over(whole(), cast<std::int32_t>(sum(x)))), Names{"sum.i32"});
  EXPECT_EQ(folds_of(over(whole(), cast<std::uint32_t>(sum(x)))), Names{"sum.i32"});
  EXPECT_EQ(folds_of(over(whole(), cast<std::int8_t>(sum(y)))), Names{"sum.i32"});
  EXPECT_EQ(folds_of(over(whole(), cast<std::uint16_t>(sum(input<std::uint64_t>("z"))))),
            Names{"sum.i32"});
  EXPECT_EQ(folds_of(over(segments(40), cast<std::int32_t>(inclusive_sum(x)))), Names{"sum.i32"});
  EXPECT_EQ(folds_of(over(whole(), cast<std::int32_t>(count(where(x > 0))))), Names{"sum.i32"});
  // What reads all of it, keeps it.
  EXPECT_EQ(folds_of(over(whole(), cast<std::int32_t>(sum(x)), sum(x))), Names{"sum.i64"});
  EXPECT_EQ(folds_of(over(whole(), cast<std::int32_t>(sum(x)), sum(x) > 7)), Names{"sum.i64"});
  EXPECT_EQ(folds_of(over(whole(), cast<float>(sum(x)))), Names{"sum.i64"});
  EXPECT_EQ(folds_of(over(whole(), cast<bool>(sum(x)))), Names{"sum.i64"});
  EXPECT_EQ(folds_of(over(whole(), cast<std::int32_t>(max(input<std::int64_t>("z"))))),
            Names{"max.i64"});
  EXPECT_EQ(folds_of(over(whole(), cast<std::int32_t>(sum(input<float>("f"))))), Names{"sum.f32"});
}

/// Products and sums that were widened by hand need no more than the low bits of their operands.
TEST(NarrowSums, ReadNarrowOperands) {
  const auto x = input<std::int8_t>("x"), y = input<std::int8_t>("y");
  const auto wide = [](const auto& e) { return cast<std::int64_t>(e); };
  const Computation computation = over(segments(1024), cast<std::int32_t>(sum(wide(x) * wide(y))));
  for (const codegen::Node& node : computation.graph().nodes)
    EXPECT_LE(size_of(node.type), 4) << codegen::print(computation.graph());
  const Computation plain = over(segments(1024), cast<std::int32_t>(dot(x, y)));
  EXPECT_EQ(codegen::print(computation.graph()), codegen::print(plain.graph()));
  // What lies in the high bits comes down by shifts and quotients.
  const auto z = input<std::int64_t>("z");
  const Computation shifted = over(segments(64), cast<std::int32_t>(sum((z >> 40) + z / 3)));
  EXPECT_EQ(folds_of(shifted), Names{"sum.i32"});
  bool divides = false;
  for (const codegen::Node& node : shifted.graph().nodes)
    divides = divides || (node.kind == codegen::NodeKind::compute && node.op == codegen::Op::div &&
                          node.type == DType::i64);
  EXPECT_TRUE(divides) << codegen::print(shifted.graph());
}

TEST(NarrowSums, AreOneWhereTheyAreEqual) {
  const auto x = input<std::uint32_t>("x");
  const auto a = -cast<std::int32_t>(sum(x));
  const auto b = -cast<std::int32_t>(sum(cast<std::int64_t>(x)));
  EXPECT_EQ(folds_of(over(whole(), a, b)).size(), 1U);
  const Computation both = over(whole(), a, b);
  EXPECT_EQ(both.graph().outputs[0], both.graph().outputs[1]) << codegen::print(both.graph());
}

TEST(NarrowSums, DoNotDependOnTheOrderOfWriting) {
  const auto x = input<std::int32_t>("x"), y = input<std::int32_t>("y");
  const auto a = cast<std::int32_t>(sum(x)), b = cast<std::int32_t>(sum(y));
  EXPECT_EQ(codegen::print(over(whole(), a + b).graph()),
            codegen::print(over(whole(), b + a).graph()));
}

/// Values of all bits, so that sums wrap, against loops in 64 bits.
TEST(NarrowSums, WrapAsWideOnesOnceCast) {
  constexpr std::int64_t kSegment = 777, kCount = 5;
  const auto x = input<std::int32_t>("x");
  const auto y = input<std::uint8_t>("y");
  const Computation computation = over(
      segments(kSegment), cast<std::int32_t>(sum(x * 3)), cast<std::uint16_t>(sum(y)),
      cast<std::int16_t>(exclusive_sum(x)), cast<std::uint32_t>(inclusive_sum(x, where(y > 99))),
      cast<std::int8_t>(count(where(x > 0))));
  const codegen::Graph& graph = computation.graph();
  for (const codegen::Fold& fold : graph.folds) EXPECT_EQ(fold.name, "sum.i32");
  const std::int64_t elements = kSegment * kCount;
  for (const Fill fill : {Fill::uniform, Fill::extremes}) {
    const std::vector<Column> inputs = make_inputs(graph, elements, fill, 11);
    auto value = [&](const char* name, std::int64_t i) {
      const auto at =
          static_cast<std::size_t>(std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                                [&](const auto& in) { return in.name == name; }) -
                                   graph.inputs.begin());
      return static_cast<std::int64_t>(codegen::evaluate(
          codegen::Op::convert, graph.inputs[at].type, DType::i64, inputs[at].get(i)));
    };
    for (const codegen::Target& target : {codegen::gpu_target(90), codegen::cpu_target(2)}) {
      const codegen::PlanRequest request{.segment = kSegment};
      const InterpCase c{.segment = kSegment, .elements = elements};
      const auto outputs =
          interpret_graph(graph, codegen::compile_graph(graph, target, request), inputs, {}, c);
      for (std::int64_t s = 0; s < kCount; ++s) {
        std::int64_t tripled = 0, bytes = 0, positive = 0, before = 0, large = 0;
        for (std::int64_t i = s * kSegment; i < (s + 1) * kSegment; ++i) {
          const std::int64_t xi = value("x", i), yi = value("y", i);
          tripled += static_cast<std::int32_t>(xi * 3);
          bytes += yi;
          positive += xi > 0 ? 1 : 0;
          if (yi > 99) large += xi;
          ASSERT_EQ(static_cast<std::int16_t>(outputs[2].get(i)),
                    static_cast<std::int16_t>(before));
          ASSERT_EQ(static_cast<std::uint32_t>(outputs[3].get(i)),
                    static_cast<std::uint32_t>(large));
          before += xi;
        }
        EXPECT_EQ(static_cast<std::int32_t>(outputs[0].get(s)), static_cast<std::int32_t>(tripled));
        EXPECT_EQ(static_cast<std::uint16_t>(outputs[1].get(s)), static_cast<std::uint16_t>(bytes));
        EXPECT_EQ(static_cast<std::int8_t>(outputs[4].get(s)), static_cast<std::int8_t>(positive));
      }
    }
  }
}

TEST(NarrowSums, WrapBackward) {
  constexpr std::int64_t kElements = 3001;
  const auto x = input<std::int64_t>("x");
  const Computation computation = over(whole(), cast<std::int32_t>(exclusive_sum(x, backward)));
  const codegen::Graph& graph = computation.graph();
  EXPECT_EQ(folds_of(computation), Names{"sum.i32"});
  const std::vector<Column> inputs = make_inputs(graph, kElements, Fill::uniform, 7);
  for (const codegen::Target& target : {codegen::gpu_target(90), codegen::cpu_target(2)}) {
    const InterpCase c{.elements = kElements};
    const auto outputs =
        interpret_graph(graph, codegen::compile_graph(graph, target, {}), inputs, {}, c);
    std::uint64_t behind = 0;
    for (std::int64_t i = kElements; i-- > 0;) {
      ASSERT_EQ(static_cast<std::int32_t>(outputs[0].get(i)), static_cast<std::int32_t>(behind));
      behind += static_cast<std::uint64_t>(inputs[0].get(i));
    }
  }
}

}  // namespace
}  // namespace chainfold::test
