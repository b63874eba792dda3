// Minima of floats by the order of integers: which folds become what, and that nothing else does.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/verify.hpp"
#include "chainfold/codegen/legalize.hpp"

namespace chainfold::codegen {
namespace {

using Names = std::vector<std::string>;

Names folds_of(const Graph& graph) {
  Names names;
  for (const Fold& fold : graph.folds) names.push_back(fold.name);
  return names;
}
Graph on_cpu(const Computation& computation) {
  return legalize(computation.graph(), cpu_target(2));
}
bool has(const Graph& graph, Op op, DType type) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.kind == NodeKind::compute && node.op == op && node.type == type;
  });
}

const Names kThree{"min.u16", "max.u16", "max.i16"};

TEST(GraphMinima, OfHalvesAreThreeFoldsOfIntegers) {
  const auto x = input<f16>("x");
  const auto y = input<bf16>("y");
  for (const Computation& computation : std::vector<Computation>{
           over(segments(64), min(x)), over(whole(), max(x)), over(columns(9), min(x), max(x)),
           over(segments(3), cast<f16>(max(y)))}) {
    const Graph graph = on_cpu(computation);
    EXPECT_EQ(folds_of(graph), kThree) << print(graph);
    ASSERT_EQ(graph.outputs.size(), computation.graph().outputs.size());
    for (std::size_t o = 0; o < graph.outputs.size(); ++o)
      EXPECT_EQ(graph.node(graph.outputs[o]).type,
                computation.graph().node(computation.graph().outputs[o]).type);
  }
  // Neither elements nor results of the same type are converted.
  EXPECT_FALSE(has(on_cpu(over(segments(64), min(x))), Op::convert, DType::f32));
  EXPECT_TRUE(has(on_cpu(over(segments(64), max(x) * 2.0F)), Op::convert, DType::f32));
}

TEST(GraphMinima, ThatRunAreOneScanOfKeys) {
  const auto x = input<f16>("x");
  const Computation computation = over(segments(100), inclusive(max(x)), exclusive(min(x)), max(x));
  const Graph graph = on_cpu(computation);
  Names scans;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::scan) continue;
    scans.push_back(graph.folds[static_cast<std::size_t>(node.index)].name);
    EXPECT_EQ(node.exclusive, scans.back() == "min.i16");
  }
  EXPECT_EQ(scans, (Names{"max.i16", "min.i16"})) << print(graph);
  EXPECT_EQ(folds_of(graph).size(), 2U) << "the segment's is the last one so far";
  EXPECT_FALSE(has(graph, Op::convert, DType::f32));
}

TEST(GraphMinima, OfFloatsWhereBothAreFolded) {
  const auto x = input<float>("x"), y = input<float>("y");
  EXPECT_EQ(folds_of(on_cpu(over(whole(), max(x)))), Names{"max.f32"});
  EXPECT_EQ(folds_of(on_cpu(over(whole(), max(x), min(y)))), (Names{"max.f32", "min.f32"}));
  EXPECT_EQ(folds_of(on_cpu(over(whole(), max(x), min(x, where(x > y))))),
            (Names{"max.f32", "min.f32"}));
  EXPECT_EQ(folds_of(on_cpu(over(whole(), max(x) - min(x)))),
            (Names{"min.u32", "max.u32", "max.i32"}));
  const auto z = input<double>("z");
  EXPECT_EQ(folds_of(on_cpu(over(whole(), max(z) - min(z)))).size(), 2U);
}

/// What is bound by position, and who folds what else, stay as they are.
TEST(GraphMinima, LeaveTheRest) {
  const auto x = input<f16>("x"), y = input<f16>("y");
  const auto a = param<float>("a"), b = param<float>("b");
  const Computation computation =
      over(segments(64), sum(y) * b + 3.5F, min(x, where(y > a)) * 7.5F, argmin(x), variance(y));
  const Graph& written = computation.graph();
  const Graph graph = on_cpu(computation);
  ASSERT_EQ(graph.inputs.size(), written.inputs.size());
  for (std::size_t i = 0; i < written.inputs.size(); ++i)
    EXPECT_EQ(graph.inputs[i].name, written.inputs[i].name);
  ASSERT_EQ(graph.params.size(), written.params.size());
  for (std::size_t i = 0; i < written.params.size(); ++i)
    EXPECT_EQ(graph.params[i].name, written.params[i].name);
  ASSERT_EQ(graph.literals.size(), written.literals.size());
  for (std::size_t i = 0; i < written.literals.size(); ++i)
    EXPECT_EQ(graph.literals[i].bits, written.literals[i].bits);
  Names rest;
  for (const std::string& name : folds_of(written))
    if (name != "min.f32") rest.push_back(name);
  Names kept;
  for (const std::string& name : folds_of(graph))
    if (std::find(kThree.begin(), kThree.end(), name) == kThree.end()) kept.push_back(name);
  EXPECT_EQ(kept, rest);
  EXPECT_EQ(folds_of(graph).size(), rest.size() + 3);

  const auto z = input<float>("z");
  const Computation none = over(segments(8), sum(x), inclusive(max(z)), exclusive(min(z)));
  EXPECT_EQ(print(on_cpu(none)), print(none.graph())) << "scans of f32";
  EXPECT_EQ(print(legalize(written, gpu_target(90))), print(written)) << "a GPU";
}

TEST(GraphMinima, CastsOfOtherSizesAreNoGraphs) {
  Graph graph = on_cpu(over(segments(64), min(input<f16>("x"))));
  for (Node& node : graph.nodes)
    if (node.op == Op::reinterpret && node.type == DType::u16) node.type = DType::u32;
  try {
    verify(graph);
    ADD_FAILURE() << print(graph);
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("is no reinterpret of f16"), std::string::npos)
        << error.what();
  }
}

/// Of a tuning, of what is in the cache and of explanations.
TEST(GraphMinima, ArePeoplesExpressionAsTheyWereWritten) {
  const auto x = input<f16>("x");
  const Graph graph = on_cpu(over(segments(64), min(x), sum(x)));
  EXPECT_EQ(print_expression(graph), "over(segments(64), f16(min(f32(x))), sum(f32(x)))");
  EXPECT_EQ(print_expression(legalize(graph, cpu_target(2))), print_expression(graph));
  const std::string text = explain(over(segments(64), min(x)), target("cpu"));
  EXPECT_NE(text.find("over(segments(64), f16(min(f32(x))))"), std::string::npos) << text;
  EXPECT_NE(text.find("min.u16"), std::string::npos) << text;
}

/// A segment's largest value is the last one of its running maximum, of which there is one state.
TEST(GraphMinima, FoldsBesideTheirScansStayOne) {
  const auto folds = [](const Computation& computation) {
    return legalize(computation.graph(), cpu_target(2)).folds.size();
  };
  auto half = input<f16>("x");
  auto x = input<float>("x");
  EXPECT_EQ(folds(over(whole(), inclusive(max(half)) - max(half))), 1U);
  EXPECT_EQ(folds(over(whole(), inclusive(max(x)) - max(x), inclusive(min(x)) - min(x))), 2U);
  EXPECT_EQ(folds(over(whole(), inclusive(max(x)) - min(x))), 2U);
}

}  // namespace
}  // namespace chainfold::codegen
