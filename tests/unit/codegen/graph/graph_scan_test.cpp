// Scans in the graph: their forms, what becomes one node, what a running value is, what is refused.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/literal.hpp"
#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_sum.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/verify.hpp"
#include "chainfold/tests/support/expect_error.hpp"

namespace chainfold::codegen {
namespace {

constexpr DType kF32 = DType::f32;
constexpr ScanForm kInclusive{}, kExclusive{.exclusive = true}, kReverse{.reverse = true},
    kExclusiveReverse{.exclusive = true, .reverse = true};

void expect_unsupported(const std::function<void()>& call, const std::vector<std::string>& words) {
  test::expect_error<UserError>(call, ErrorCode::unsupported, "", words);
}

TEST(GraphScan, FormsArePrinted) {
  GraphBuilder b;
  const NodeId x = b.input("x", kF32);
  const NodeId filter = b.compute(Op::gt, {x, b.constant(kF32, bits_of(0.0F))});
  const Graph graph =
      b.finish({b.scan(make_sum(kF32), {x}, kInclusive), b.scan(make_sum(kF32), {x}, kExclusive),
                b.scan(make_sum(kF32), {x}, kReverse),
                b.scan(make_sum(kF32), {x}, kExclusiveReverse, filter), b.sum(x)},
               {.kind = Partition::Kind::segments, .size = 8});
  EXPECT_EQ(print(graph),
            "graph over segments 8\n"
            "%0 = input \"x\" : f32 element\n"
            "%1 = scan inclusive sum.f32 %0 : f32 element\n"
            "%2 = scan exclusive sum.f32 %0 : f32 element\n"
            "%3 = scan inclusive reverse sum.f32 %0 : f32 element\n"
            "%4 = constant 0 : f32 uniform\n"
            "%5 = gt %0, %4 : bool element\n"
            "%6 = scan exclusive reverse sum.f32 %0 where %5 : f32 element\n"
            "%7 = fold sum.f32 %0 : f32 segment\n"
            "output %1\n"
            "output %2\n"
            "output %3\n"
            "output %6\n"
            "output %7\n");
  EXPECT_EQ(graph.folds.size(), 4U);
  EXPECT_EQ(graph.node(6).index, 3);
  EXPECT_EQ(graph.node(7).index, graph.node(1).index);
  EXPECT_EQ(print_expression(graph),
            "over(segments(8), inclusive(sum(x)), exclusive(sum(x)), inclusive(sum(x), backward), "
            "exclusive(sum(x, where(x > 0)), backward), sum(x))");
}

TEST(GraphScan, EqualScansAreOneNode) {
  GraphBuilder b;
  const NodeId x = b.input("x", kF32), sum = b.scan(make_sum(kF32), {x}, kInclusive);
  EXPECT_EQ(b.scan(make_sum(kF32), {x}, kInclusive), sum);
  EXPECT_EQ(b.running(b.sum(x), kInclusive), sum);
  EXPECT_NE(b.scan(make_sum(kF32), {x}, kExclusive), sum);
  EXPECT_NE(b.scan(make_sum(kF32), {x}, kReverse), sum);
  EXPECT_NE(b.scan(make_max(kF32), {x}, kInclusive), sum);
  EXPECT_NE(b.sum(x), sum);
  // Parts of one expression share their scans, whatever the order of writing.
  const NodeId twice = b.running(b.compute(Op::add, {b.sum(x), b.sum(x)}), kInclusive);
  const Graph graph = b.finish({twice, sum}, {});
  EXPECT_EQ(graph.folds.size(), 1U);
}

/// The last value of a forward scan is the segment's fold, so the two have one state.
TEST(GraphScan, AFoldIsThatOfItsInclusiveScan) {
  const auto folds = [](auto write) {
    GraphBuilder b;
    const NodeId x = b.input("x", kF32);
    const NodeId some = b.compute(Op::gt, {x, b.constant(kF32, bits_of(0.0F))});
    return b.finish(write(b, x, some), {}).folds.size();
  };
  EXPECT_EQ(folds([](GraphBuilder& b, NodeId x, NodeId) {
              return std::vector{b.sum(x), b.running(b.sum(x), kInclusive)};
            }),
            1U);
  EXPECT_EQ(folds([](GraphBuilder& b, NodeId x, NodeId some) {
              return std::vector{
                  b.compute(Op::div, {b.running(b.sum(x, some), kInclusive), b.sum(x, some)})};
            }),
            1U);
  EXPECT_EQ(folds([](GraphBuilder& b, NodeId x, NodeId some) {
              return std::vector{
                  b.sum(x), b.running(b.sum(x), kExclusive), b.running(b.sum(x), kReverse),
                  b.running(b.sum(x, some), kInclusive), b.running(b.max(x), kInclusive)};
            }),
            5U);
}

TEST(GraphScan, ARunningCountIsThatOfTheElementsSoFar) {
  auto counted = [](ScanForm form) {
    GraphBuilder b;
    const NodeId sum = b.sum(b.input("x", kF32));
    const NodeId share = b.compute(Op::div, {sum, b.convert(b.count(), kF32)});
    return print(b.finish({b.running(share, form)}, {}));
  };
  EXPECT_EQ(counted(kInclusive),
            "graph over whole\n"
            "%0 = input \"x\" : f32 element\n"
            "%1 = scan inclusive sum.f32 %0 : f32 element\n"
            "%2 = index : i64 element\n"
            "%3 = constant 1 : i64 uniform\n"
            "%4 = add %2, %3 : i64 element\n"
            "%5 = convert %4 : f32 element\n"
            "%6 = div %1, %5 : f32 element\n"
            "output %6\n");
  EXPECT_EQ(counted(kExclusive),
            "graph over whole\n"
            "%0 = input \"x\" : f32 element\n"
            "%1 = scan exclusive sum.f32 %0 : f32 element\n"
            "%2 = index : i64 element\n"
            "%3 = convert %2 : f32 element\n"
            "%4 = div %1, %3 : f32 element\n"
            "output %4\n");
  EXPECT_EQ(counted(kReverse),
            "graph over whole\n"
            "%0 = input \"x\" : f32 element\n"
            "%1 = scan inclusive reverse sum.f32 %0 : f32 element\n"
            "%2 = extent : i64 segment\n"
            "%3 = index : i64 element\n"
            "%4 = sub %2, %3 : i64 element\n"
            "%5 = convert %4 : f32 element\n"
            "%6 = div %1, %5 : f32 element\n"
            "output %6\n");
  EXPECT_EQ(counted(kExclusiveReverse),
            "graph over whole\n"
            "%0 = input \"x\" : f32 element\n"
            "%1 = scan exclusive reverse sum.f32 %0 : f32 element\n"
            "%2 = extent : i64 segment\n"
            "%3 = index : i64 element\n"
            "%4 = sub %2, %3 : i64 element\n"
            "%5 = constant 1 : i64 uniform\n"
            "%6 = sub %4, %5 : i64 element\n"
            "%7 = convert %6 : f32 element\n"
            "%8 = div %1, %7 : f32 element\n"
            "output %8\n");
}

TEST(GraphScan, EveryFoldRuns) {
  GraphBuilder b;
  const NodeId x = b.input("x", DType::f16), p = b.param("p", DType::boolean);
  const NodeId positive = b.compute(Op::gt, {b.convert(x, kF32), b.constant(kF32, bits_of(0.0F))});
  const std::vector<NodeId> folds = {
      b.variance(x), b.min(x), b.max(x, positive), b.argmin(x), b.argmax(x, positive), b.product(x),
      b.logsumexp(x), b.count(positive), b.mean(x, positive),
      b.compute(Op::sqrt, {b.compute(Op::mul, {b.sum(x), b.sum(x, p)})}),
      // Of a parameter's filter the count is no fold, but in an expression of folds it counts.
      b.compute(Op::add, {b.count(p), b.argmin(x)})};
  std::vector<NodeId> running;
  for (const NodeId fold : folds) {
    running.push_back(b.running(fold, kExclusive));
    EXPECT_EQ(b.type(running.back()), b.type(fold));
    EXPECT_EQ(b.level(running.back()), Level::element);
  }
  const Graph graph = b.finish(running, {});
  EXPECT_TRUE(has_scans(graph));
  for (const Node& node : graph.nodes) EXPECT_NE(node.kind, NodeKind::fold);
  EXPECT_EQ(graph.folds.size(), 11U);  // the count and argmin are those of others
}

TEST(GraphScan, OutputsOfSegmentsAndElementsSideBySide) {
  GraphBuilder b;
  const NodeId x = b.input("x", kF32);
  const NodeId scaled = b.compute(Op::mul, {b.running(b.sum(x), kInclusive), x});
  const Graph graph = b.finish({b.max(x), scaled}, {});
  EXPECT_EQ(graph.node(graph.outputs[0]).level, Level::segment);
  EXPECT_EQ(graph.node(graph.outputs[1]).level, Level::element);
  EXPECT_EQ(graph.folds.size(), 2U);
  EXPECT_EQ(depending_on(graph, NodeKind::scan), (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(depending_on(graph, NodeKind::input), (std::vector<bool>{true, true, true, true}));
  GraphBuilder other;
  EXPECT_FALSE(has_scans(other.finish({other.sum(other.input("x", kF32))}, {})));
}

TEST(GraphScan, DeepExpressionsNeedNoStack) {
  GraphBuilder b;
  NodeId value = b.sum(b.input("x", kF32));
  for (int i = 0; i < 100000; ++i) value = b.compute(Op::neg, {value});
  const Graph graph = b.finish({b.running(value, kInclusive)}, {});
  EXPECT_EQ(graph.nodes.size(), 100002U);
}

TEST(GraphScan, UserErrors) {
  GraphBuilder b;
  const NodeId x = b.input("x", kF32), p = b.param("p", kF32), s = b.sum(x);
  const NodeId running = b.running(s, kInclusive);
  const NodeId positive = b.compute(Op::gt, {running, p});
  expect_unsupported([&] { b.sum(running); }, {"sum.f32", "a scan of a scan", "kernel of its own"});
  expect_unsupported([&] { b.sum(x, positive); }, {"sum.f32", "depends on a scan"});
  expect_unsupported([&] { b.scan(make_max(kF32), {running}, kExclusive); }, {"max.f32", "a scan"});
  expect_unsupported([&] { b.compute(Op::div, {x, s}); }, {"div", "broadcast"});
  const NodeId part = b.compute(Op::div, {running, s});  // beside a scan
  EXPECT_EQ(b.level(part), Level::element);
  expect_unsupported([&] { b.sum(part); }, {"sum.f32", "a scan of a scan"});
  expect_unsupported([&] { b.running(x, kInclusive); }, {"cf::inclusive", "one value an element"});
  expect_unsupported([&] { b.running(p, kExclusive); }, {"cf::exclusive", "without a fold"});
  expect_unsupported([&] { b.running(b.count(), kInclusive); }, {"cf::index()"});
  const NodeId share = b.compute(Op::div, {b.index(), b.extent()});
  EXPECT_EQ(b.level(share), Level::element);
  expect_unsupported([&] { b.sum(share); }, {"sum.i64", "cf::count()", "parameter"});
  expect_unsupported([&] { b.finish({s, b.compute(Op::mul, {x, x})}, {}); },
                     {"output 1", "cf::sum(x)", "cf::inclusive_sum(x)"});
  expect_unsupported([&] { b.finish({share}, {}); }, {"output 0", "neither folds nor scans"});
}

TEST(GraphScan, VerifyFindsWhatIsBroken) {
  auto broken = [](const std::function<void(Graph&)>& change, const std::string& message) {
    GraphBuilder b;
    const NodeId x = b.input("x", kF32), scan = b.running(b.sum(x), kReverse);
    const NodeId count = b.compute(Op::sub, {b.extent(), b.index()});
    Graph graph = b.finish({b.compute(Op::div, {scan, b.convert(count, kF32)}), b.max(x)}, {});
    ASSERT_EQ(print(graph),
              "graph over whole\n"
              "%0 = input \"x\" : f32 element\n"
              "%1 = scan inclusive reverse sum.f32 %0 : f32 element\n"
              "%2 = extent : i64 segment\n"
              "%3 = index : i64 element\n"
              "%4 = sub %2, %3 : i64 element\n"
              "%5 = convert %4 : f32 element\n"
              "%6 = div %1, %5 : f32 element\n"
              "%7 = fold max.f32 %0 : f32 segment\n"
              "output %6\n"
              "output %7\n");
    change(graph);
    test::expect_error<InternalError>([&] { verify(graph); }, ErrorCode::internal, "", {message});
  };
  broken([](Graph& g) { g.nodes[1].level = Level::segment; }, "wrong type or level");
  broken([](Graph& g) { g.nodes[1].kind = NodeKind::fold; }, "no scan but has the form");
  broken([](Graph& g) { g.nodes[7].exclusive = true; }, "no scan but has the form");
  broken([](Graph& g) { g.nodes[7].operands = {1}; }, "which depends on a scan");
  broken([](Graph& g) { g.nodes[7].operands = {5}; }, "which depends on the extent");
  broken([](Graph& g) { g.nodes[7].index = 0; }, "shares its fold");
  broken([](Graph& g) { g.outputs[0] = 5; }, "depends on a scan");
  broken([](Graph& g) { g.outputs[1] = 0; }, "depends on a scan");
  broken([](Graph& g) { g.nodes[1].filter = 9; }, "before it is written");
  broken(
      [](Graph& g) {
        g.nodes[7] = {.kind = NodeKind::fold,
                      .type = kF32,
                      .level = Level::segment,
                      .index = 1,
                      .operands = {0}};
        g.nodes.push_back({.kind = NodeKind::compute,
                           .type = kF32,
                           .level = Level::element,
                           .op = Op::add,
                           .operands = {0, 7}});
      },
      "mixes elements and folds");
}

}  // namespace
}  // namespace chainfold::codegen
