// The graph: equal things are one node, the text does not depend on how it was written, and what is
// wrong is found.
#include "chainfold/codegen/graph/graph.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/literal.hpp"
#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/verify.hpp"

namespace chainfold::codegen {
namespace {

constexpr DType kF32 = DType::f32;

Bits f32(float value) { return bits_of(value); }

std::string text(GraphBuilder& b, std::vector<NodeId> outputs, Partition partition = {}) {
  return print(b.finish(std::move(outputs), partition));
}

/// The error that `action` throws, or none.
template <class E>
ErrorCode code_of(const std::function<void()>& action, const std::string& part) {
  try {
    action();
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

TEST(Graph, EqualSubexpressionsAreOneNode) {
  GraphBuilder b;
  const NodeId x = b.input("x", kF32), y = b.input("y", kF32);
  EXPECT_EQ(b.input("x", kF32), x);
  const NodeId product = b.compute(Op::mul, {x, y});
  EXPECT_EQ(b.compute(Op::mul, {y, x}), product);
  EXPECT_NE(b.compute(Op::sub, {y, x}), b.compute(Op::sub, {x, y}));
  EXPECT_EQ(b.compute(Op::lt, {x, y}), b.compute(Op::gt, {y, x}));
  EXPECT_EQ(b.compute(Op::ge, {x, y}), b.compute(Op::le, {y, x}));
  EXPECT_NE(b.compute(Op::le, {x, y}), b.compute(Op::le, {y, x}));
  const NodeId three = b.literal(kF32, f32(3));
  EXPECT_EQ(b.compute(Op::fma, {x, y, three}), b.compute(Op::fma, {y, x, three}));
  EXPECT_EQ(b.sum(product), b.sum(product));
  EXPECT_NE(b.sum(product), b.sum(x));
  EXPECT_NE(b.sum(x), b.min(x));
  EXPECT_NE(b.sum(x), b.sum(x, b.compute(Op::lt, {x, y})));
  EXPECT_EQ(b.literal(kF32, f32(3)), three);
  EXPECT_NE(b.literal(kF32, f32(4)), three);
  EXPECT_NE(b.constant(kF32, f32(3)), three);
}

TEST(Graph, MeanSharesItsSumAndCount) {
  GraphBuilder b;
  const NodeId x = b.input("x", DType::f16);
  const NodeId filter = b.compute(Op::gt, {b.convert(x, kF32), b.constant(kF32, f32(0))});
  EXPECT_EQ(text(b, {b.mean(x, filter), b.sum(x, filter), b.count(filter), b.mean(x)}),
            "graph over whole\n"
            "%0 = input \"x\" : f16 element\n"
            "%1 = convert %0 : f32 element\n"
            "%2 = constant 0 : f32 uniform\n"
            "%3 = gt %1, %2 : bool element\n"
            "%4 = convert %3 : i64 element\n"
            "%5 = fold sum.i64 %4 : i64 segment\n"
            "%6 = constant 0 : i64 uniform\n"
            "%7 = eq %5, %6 : bool segment\n"
            "%8 = constant nan : f64 uniform\n"
            "%9 = fold sum.f32 result 1 %1 where %3 : f64 segment\n"
            "%10 = convert %5 : f64 segment\n"
            "%11 = div %9, %10 : f64 segment\n"
            "%12 = select %7, %8, %11 : f64 segment\n"
            "%13 = convert %12 : f32 segment\n"
            "%14 = fold sum.f32 %1 where %3 : f32 segment\n"
            "%15 = extent : i64 segment\n"
            "%16 = eq %15, %6 : bool segment\n"
            "%17 = fold sum.f32 result 1 %1 : f64 segment\n"
            "%18 = convert %15 : f64 segment\n"
            "%19 = div %17, %18 : f64 segment\n"
            "%20 = select %16, %8, %19 : f64 segment\n"
            "%21 = convert %20 : f32 segment\n"
            "output %13\n"
            "output %14\n"
            "output %5\n"
            "output %21\n");
}

TEST(Graph, TypesOfTheFolds) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto type = static_cast<DType>(t);
    GraphBuilder b;
    const NodeId x = b.input("x", type);
    std::vector<NodeId> outputs = {b.sum(x), b.mean(x), b.variance(x), b.count()};
    if (type != DType::boolean) {
      outputs.insert(outputs.end(), {b.min(x), b.max(x)});
      EXPECT_EQ(b.type(outputs[4]), type);
      EXPECT_EQ(b.type(outputs[5]), type);
    }
    EXPECT_EQ(b.type(outputs[0]), sum_type(type));
    EXPECT_EQ(b.type(outputs[1]), mean_type(type));
    EXPECT_EQ(b.type(outputs[2]), mean_type(type));
    EXPECT_EQ(b.type(outputs[3]), DType::i64);
    EXPECT_NO_THROW(verify(b.finish(outputs, {})));
  }
}

TEST(Graph, TextDoesNotDependOnTheOrderOfWriting) {
  auto written = [](bool backwards, float literal) {
    GraphBuilder b;
    NodeId x = kNoNode, y = kNoNode, two = kNoNode;
    if (backwards) {
      b.input("unused", DType::i8);
      two = b.literal(kF32, f32(literal));
      y = b.input("y", kF32);
      x = b.input("x", kF32);
    } else {
      x = b.input("x", kF32);
      y = b.input("y", kF32);
      two = b.literal(kF32, f32(literal));
    }
    const NodeId scaled = backwards ? b.compute(Op::mul, {two, x}) : b.compute(Op::mul, {x, two});
    const NodeId total =
        backwards ? b.compute(Op::add, {y, scaled}) : b.compute(Op::add, {scaled, y});
    return text(b, {b.sum(total)});
  };
  EXPECT_EQ(written(false, 2), written(true, 2));
  EXPECT_EQ(written(false, 2), written(false, 3));  // literals are arguments
  EXPECT_NE(written(false, 2), written(false, 1));  // 0, 1 and -1 are not
  EXPECT_EQ(written(false, 2),
            "graph over whole\n"
            "%0 = input \"x\" : f32 element\n"
            "%1 = literal 0 : f32 uniform\n"
            "%2 = mul %0, %1 : f32 element\n"
            "%3 = input \"y\" : f32 element\n"
            "%4 = add %2, %3 : f32 element\n"
            "%5 = fold sum.f32 %4 : f32 segment\n"
            "output %5\n");
}

TEST(Graph, LiteralsValuesDoNotOrderOperands) {
  auto written = [](float a, float c) {
    GraphBuilder b;
    const NodeId x = b.input("x", kF32);
    const NodeId left = b.compute(Op::add, {x, b.literal(kF32, f32(a))});
    const NodeId right = b.compute(Op::add, {x, b.literal(kF32, f32(c))});
    Graph graph = b.finish({b.sum(b.compute(Op::mul, {left, right}))}, {});
    EXPECT_EQ(graph.literals.size(), 2u);
    return print(graph);
  };
  EXPECT_EQ(written(2, 3), written(3, 2));
  EXPECT_EQ(written(2, 3), written(50, 7));
}

TEST(Graph, ConstantsAreEvaluated) {
  GraphBuilder b;
  const NodeId two = b.constant(kF32, f32(2)), three = b.constant(kF32, f32(3));
  EXPECT_EQ(b.compute(Op::mul, {two, three}), b.constant(kF32, f32(6)));
  EXPECT_EQ(b.compute(Op::lt, {two, three}), b.constant(DType::boolean, 1));
  EXPECT_EQ(b.convert(three, DType::i8), b.constant(DType::i8, 3));
  EXPECT_EQ(b.literal(DType::i32, 0xffffffff), b.constant(DType::i32, 0xffffffff));
  EXPECT_NE(b.literal(DType::u32, 0xffffffff), b.constant(DType::u32, 0xffffffff));
  EXPECT_EQ(b.literal(DType::boolean, 1), b.constant(DType::boolean, 1));
  EXPECT_NE(b.literal(kF32, f32(-0.0f)), b.constant(kF32, f32(0)));
  const NodeId x = b.input("x", kF32);
  EXPECT_EQ(b.sum(x, b.constant(DType::boolean, 1)), b.sum(x));
  EXPECT_EQ(b.count(b.constant(DType::boolean, 1)), b.extent());
}

TEST(Graph, WideningConversionsCollapse) {
  GraphBuilder b;
  const NodeId x = b.input("x", DType::i8), h = b.input("h", DType::f16),
               d = b.input("d", DType::f64);
  EXPECT_EQ(b.convert(x, DType::i8), x);
  EXPECT_EQ(b.convert(b.convert(x, DType::i32), DType::i64), b.convert(x, DType::i64));
  EXPECT_EQ(b.convert(b.convert(h, kF32), DType::f16), h);
  EXPECT_EQ(b.convert(b.convert(x, DType::i32), DType::u64), b.convert(x, DType::u64));
  EXPECT_NE(b.convert(b.convert(d, kF32), DType::f64), d);
  EXPECT_NE(b.convert(b.convert(x, DType::u32), DType::u64), b.convert(x, DType::u64));
}

TEST(Graph, UniformFilters) {
  GraphBuilder b;
  const NodeId x = b.input("x", kF32), on = b.param("on", DType::boolean);
  EXPECT_EQ(text(b, {b.count(on), b.sum(x, on)}),
            "graph over whole\n"
            "%0 = param \"on\" : bool uniform\n"
            "%1 = extent : i64 segment\n"
            "%2 = constant 0 : i64 uniform\n"
            "%3 = select %0, %1, %2 : i64 segment\n"
            "%4 = input \"x\" : f32 element\n"
            "%5 = fold sum.f32 %4 where %0 : f32 segment\n"
            "output %3\n"
            "output %5\n");
}

TEST(Graph, PartitionsArePrinted) {
  auto over = [](Partition partition) {
    GraphBuilder b;
    b.param("unused", DType::i64);
    if (partition.size_param == 0) partition.size_param = b.param_index(b.param("S", DType::i64));
    const Graph graph = b.finish({b.count()}, partition);
    EXPECT_EQ(graph.params.size(), partition.size_param >= 0 ? 1u : 0u);
    const std::string out = print(graph);
    return out.substr(0, out.find('\n'));
  };
  constexpr auto kSegments = Partition::Kind::segments;
  EXPECT_EQ(over({}), "graph over whole");
  EXPECT_EQ(over({.kind = kSegments, .size = 64}), "graph over segments 64");
  EXPECT_EQ(over({.kind = kSegments, .size = 7, .tail = true}), "graph over segments 7 with tail");
  EXPECT_EQ(over({.kind = kSegments, .size_param = 0}), "graph over segments param \"S\"");
  EXPECT_EQ(over({.kind = kSegments, .size_param = 0, .tail = true}),
            "graph over segments param \"S\" with tail");
}

TEST(Graph, NamesArePrintedOnOneLine) {
  GraphBuilder b;
  const std::string out = text(b, {b.sum(b.input("a \"b\"\n\\", kF32))});
  EXPECT_NE(out.find("%0 = input \"a \\\"b\\\"\\x0a\\\\\" : f32 element\n"), std::string::npos)
      << out;
}

TEST(Graph, DeepGraphsNeedNoStack) {
  GraphBuilder b;
  NodeId x = b.input("x", kF32);
  const NodeId c = b.literal(kF32, f32(0.5f));
  for (int i = 0; i < 100000; ++i) x = b.compute(Op::add, {x, c});
  EXPECT_EQ(b.finish({b.sum(x)}, {}).nodes.size(), 100003u);
}

TEST(Graph, UserErrors) {
  using E = UserError;
  GraphBuilder b;
  const NodeId x = b.input("x", kF32), i = b.input("i", DType::i32), s = b.sum(x);
  const NodeId p = b.param("p", kF32);
  EXPECT_EQ(code_of<E>([&] { b.input("x", DType::f64); },
                       "\"x\" is declared twice, as input<float> and as input<double>"),
            ErrorCode::duplicate_input);
  EXPECT_EQ(code_of<E>([&] { b.param("x", kF32); }, "as input<float> and as param<float>"),
            ErrorCode::duplicate_input);
  EXPECT_EQ(code_of<E>([&] { b.input("p", kF32); }, "as param<float> and as input<float>"),
            ErrorCode::duplicate_input);
  EXPECT_EQ(code_of<E>([&] { b.input("", kF32); }, "empty name"), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of<E>([&] { b.compute(Op::add, {x, i}); },
                       "operand 1 of add is float, not std::int32_t"),
            ErrorCode::type_mismatch);
  EXPECT_EQ(code_of<E>([&] { b.compute(Op::sqrt, {i}); }, "sqrt is not defined on std::int32_t"),
            ErrorCode::type_mismatch);
  EXPECT_EQ(code_of<E>([&] { b.compute(Op::sub, {x, s}); }, "broadcast"), ErrorCode::unsupported);
  EXPECT_EQ(code_of<E>([&] { b.sum(s); }, "one value a segment"), ErrorCode::unsupported);
  EXPECT_EQ(code_of<E>([&] { b.sum(p); }, "one value a launch"), ErrorCode::unsupported);
  EXPECT_EQ(code_of<E>([&] { b.sum(x, i); }, "filter of sum.f32"), ErrorCode::type_mismatch);
  EXPECT_EQ(code_of<E>([&] { b.fold(make_any(), {x}); }, "not bool"), ErrorCode::type_mismatch);
}

TEST(Graph, VerifyFindsWhatIsBroken) {
  auto graph = [] {
    GraphBuilder b;
    const NodeId x = b.input("x", kF32);
    const NodeId filter = b.compute(Op::gt, {x, b.param("p", kF32)});
    return b.finish({b.sum(b.compute(Op::mul, {x, b.literal(kF32, f32(2))}), filter)},
                    {.kind = Partition::Kind::segments, .size = 8});
  };
  auto broken = [&](const std::function<void(Graph&)>& change, const std::string& message) {
    Graph g = graph();
    change(g);
    EXPECT_EQ(code_of<InternalError>([&] { verify(g); }, message), ErrorCode::internal);
  };
  const Graph good = graph();
  EXPECT_NO_THROW(verify(good));
  ASSERT_EQ(print(good),
            "graph over segments 8\n"
            "%0 = input \"x\" : f32 element\n"
            "%1 = literal 0 : f32 uniform\n"
            "%2 = mul %0, %1 : f32 element\n"
            "%3 = param \"p\" : f32 uniform\n"
            "%4 = gt %0, %3 : bool element\n"
            "%5 = fold sum.f32 %2 where %4 : f32 segment\n"
            "output %5\n");
  broken([](Graph& g) { g.nodes[2].operands[1] = 2; }, "before it is written");
  broken([](Graph& g) { g.nodes[2].operands[1] = -1; }, "before it is written");
  broken([](Graph& g) { g.nodes[2].operands.pop_back(); }, "1 operands");
  broken([](Graph& g) { g.nodes[2].op = Op::bit_and; }, "not defined on f32");
  broken([](Graph& g) { g.nodes[2].type = DType::f64; }, "wrong type");
  broken([](Graph& g) { g.nodes[2].level = Level::uniform; }, "wrong level");
  broken([](Graph& g) { g.nodes[4].type = kF32; }, "wrong type");
  broken([](Graph& g) { g.nodes[0].index = 7; }, "not in its list");
  broken([](Graph& g) { g.nodes[0].operands = {0}; }, "before it is written");
  broken([](Graph& g) { g.nodes[1].operands = {0}; }, "a leaf with operands");
  broken([](Graph& g) { g.inputs[0].type = DType::f16; }, "another type");
  broken([](Graph& g) { g.nodes[3].level = Level::element; }, "wrong level");
  broken([](Graph& g) { g.nodes[4].filter = 0; }, "no fold but has a filter");
  broken([](Graph& g) { g.nodes[5].index = 1; }, "names no fold");
  broken([](Graph& g) { g.nodes[5].filter = 2; }, "not a condition");
  broken([](Graph& g) { g.nodes[5].operands[0] = 3; }, "no operand of elements");
  broken([](Graph& g) { g.folds.push_back(make_any()); }, "fold 1 has no node");
  broken([](Graph& g) { g.outputs = {2}; }, "neither a value of a segment");
  broken([](Graph& g) { g.outputs = {9}; }, "does not exist");
  broken([](Graph& g) { g.outputs.clear(); }, "no output");
  broken([](Graph& g) { g.partition.size = 0; }, "segment size is 0");
  broken([](Graph& g) { g.partition = {.kind = Partition::Kind::segments, .size_param = 4}; },
         "no parameter");
  broken([](Graph& g) { g.partition = {.kind = Partition::Kind::segments, .size_param = 0}; },
         "not an integer");
  broken([](Graph& g) { g.partition.kind = Partition::Kind::whole; }, "whole");
  broken(
      [](Graph& g) { g.partition = {.kind = Partition::Kind::columns, .size = 4, .tail = true}; },
      "columns or offsets have a tail");
  broken([](Graph& g) { g.partition = {.kind = Partition::Kind::columns}; }, "size is 0");
}

}  // namespace
}  // namespace chainfold::codegen
