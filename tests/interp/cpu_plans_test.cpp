// Default plans of the CPU target: the compiled program against the interpreter, bit for bit, with
// inputs and outputs that end at unreadable pages.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdexcept>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/lower/lower.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/on_cpu.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;

/// The size of a run: whole segments, or columns; `gap` elements lie between rows.
struct Shape {
  std::int64_t size = 0;  ///< elements a segment, or columns; 0: one segment of all elements
  std::int64_t segments = 1, elements = 0, rows = 0;
  std::int64_t gap = -1;  ///< < 0: a dense plan
  bool few = false;       ///< by the plan of few elements
  int streams = 1;        ///< of the target
  int ahead = 0;          ///< bytes, of the target
  const char* plan = "";  ///< pinned
};

std::uint64_t slot_of(const Param& param, const Graph& graph, const Shape& shape,
                      const PartCut& cut) {
  const std::int64_t size = shape.size, segments = shape.segments, elements = shape.elements;
  const std::int64_t rows = shape.rows, gap = shape.gap;
  switch (param.role) {
    case ParamRole::segments: return static_cast<std::uint64_t>(segments);
    case ParamRole::elements: return static_cast<std::uint64_t>(elements);
    case ParamRole::rows: return static_cast<std::uint64_t>(rows);
    case ParamRole::stride: return static_cast<std::uint64_t>(size + gap);
    case ParamRole::parts: return static_cast<std::uint64_t>(cut.parts);
    case ParamRole::part_end:
      return static_cast<std::uint64_t>(cut.parts * (rows > 0 ? 1 : segments));
    case ParamRole::part_length: return static_cast<std::uint64_t>(cut.part_length);
    case ParamRole::literal: return graph.literals[static_cast<std::size_t>(param.index)].bits;
    case ParamRole::size: throw std::logic_error("no plan for a CPU has sizes");
    case ParamRole::origin:
    case ParamRole::first_bit:
    case ParamRole::part_begin:
    case ParamRole::user:
    case ParamRole::has_carry_in:
    case ParamRole::has_carry_out:
    case ParamRole::room:
    case ParamRole::has_status: break;
  }
  return 0;
}

/// As many elements as let an array that ends with a page begin as the buffer's does.
std::int64_t aligned(std::int64_t elements, const Buffer& buffer) {
  const std::int64_t unit = std::max(1, buffer.alignment / size_of(buffer.type));
  return (elements + unit - 1) / unit * unit;
}

std::string check(const Graph& written, const Shape& shape) {
  const auto [size, segments, elements, rows, gap, few, streams, ahead, pinned] = shape;
  Target target = cpu_target(ahead > 0 ? 8 : 2, {}, runtime::cpu_plugin().vector_bits);
  target.interleaved_streams = streams;
  target.ahead_bytes = ahead;
  const Graph graph = legalize(written, target);
  const PlanRequest request{.segment = size,
                            .base_alignment = 1,
                            .strided = gap >= 0,
                            .size_limit = few ? size_class_of(graph, target, size, elements) : 0};
  const Plan plan = *pinned == '\0'
                        ? choose_plan(graph, target, request)
                        : make_plan(graph, target, request, parse_choice(pinned)).value();
  if (ahead > 0 && request.is_unlimited() && gap < 0 && plan.strategy != Strategy::elements &&
      plan.hints.read_ahead == 0)
    return "nothing is asked for ahead";
  Program program = lower(graph, plan, target);
  simplify(program);
  const PartCut cut = plan.strategy == Strategy::columns ? cut_parts(plan, rows, 1)
                      : plan.strategy == Strategy::parts
                          ? cut_parts(plan, size == 0 ? elements : size, segments)
                          : PartCut{};
  const std::int64_t gaps = gap > 0 ? (elements / size - 1) * gap : 0;
  std::vector<std::uint64_t> params;
  for (const Param& param : program.params) params.push_back(slot_of(param, graph, shape, cut));
  std::vector<GuardedArray> arrays;
  std::mt19937_64 random(3);
  for (const Buffer& buffer : program.buffers) {
    const std::int64_t count = buffer.role == BufferRole::input ? elements + gaps
                               : buffer.role == BufferRole::output
                                   ? segments
                                   : aligned(buffer.elements.evaluate(params), buffer);
    GuardedArray& array = arrays.emplace_back(buffer.type, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(random() % 20001) / 10000 - 1;
      const Bits bits = is_float(buffer.type) ? bits_of_double(buffer.type, value)
                                              : random_bits(buffer.type, random());
      array.set(i, buffer.role == BufferRole::input ? bits : 0);
    }
  }
  return difference(program, arrays, params);
}

/// Named, since a test's parameter that prints as an address has another name in each run.
struct MakeGraph {
  const char* name;
  Graph (*of)(std::int64_t size);
  int shift;  ///< which sizes have strides
};

Partition partition_of(std::int64_t size) {
  if (size == 0) return {.kind = Partition::Kind::whole};
  return {.kind = Partition::Kind::segments, .size = size};
}
Graph sum_of_floats(std::int64_t size) {
  GraphBuilder g;
  return g.finish({g.sum(g.input("x", DType::f32))}, partition_of(size));
}
/// Two inputs of a word's halves a lane.
Graph dot_and_sum_of_words(std::int64_t size) {
  GraphBuilder g;
  const NodeId x = g.input("x", DType::bf16), y = g.input("y", DType::bf16);
  const NodeId wide = g.convert(x, DType::f32);
  const NodeId product = g.compute(Op::mul, {wide, g.convert(y, DType::f32)});
  return g.finish({g.sum(product), g.convert(g.sum(wide), DType::bf16)}, partition_of(size));
}
/// Where an element stands counts, and ties go to the first.
Graph argmax_of_words(std::int64_t size) {
  GraphBuilder g;
  const NodeId x = g.input("x", DType::bf16);
  return g.finish({g.argmax(x), g.argmin(g.convert(x, DType::f32))}, partition_of(size));
}
/// The four bytes of words, with and without a sign, in sums of 32 and of 64 bits.
Graph sums_of_signed_bytes(std::int64_t size) {
  GraphBuilder g;
  const NodeId x = g.input("x", DType::i8), y = g.input("y", DType::i8);
  return g.finish(
      {g.convert(g.sum(g.convert(x, DType::i64)), DType::i32), g.sum(g.convert(y, DType::i64))},
      partition_of(size));
}
Graph sum_of_bytes(std::int64_t size) {
  GraphBuilder g;
  return g.finish({g.convert(g.sum(g.convert(g.input("x", DType::u8), DType::u64)), DType::u8)},
                  partition_of(size));
}
Graph mean_and_max_of_halves(std::int64_t size) {
  GraphBuilder g;
  const NodeId x = g.input("x", DType::f16), wide = g.convert(x, DType::f32);
  return g.finish({g.mean(wide), g.fold(make_max(DType::f32), {wide})}, partition_of(size));
}
/// Floats in the order of integers, filtered and of f32 itself.
Graph extremes_of_halves(std::int64_t size) {
  GraphBuilder g;
  const NodeId x = g.input("x", DType::f16), y = g.input("y", DType::f32);
  const NodeId some = g.compute(Op::gt, {y, g.literal(DType::f32, bits_of_double(DType::f32, .5))});
  return g.finish({g.min(x), g.max(x, some), g.min(y), g.max(y)}, partition_of(size));
}
Graph variance_of_doubles(std::int64_t size) {
  GraphBuilder g;
  return g.finish({g.variance(g.input("x", DType::f64))}, partition_of(size));
}
/// Words of which the last may have one element that counts.
Graph moments_of_words(std::int64_t size) {
  GraphBuilder g;
  const NodeId x = g.convert(g.input("x", DType::bf16), DType::f32);
  const NodeId some = g.compute(Op::gt, {x, g.literal(DType::f32, bits_of_double(DType::f32, 0))});
  return g.finish({g.variance(x), g.min(x), g.count(some)}, partition_of(size));
}
/// The shape of TPC-H Q6: a sum of products over columns where a filter of three columns holds.
Graph filtered_sum_of_products(std::int64_t size) {
  GraphBuilder g;
  const NodeId date = g.input("date", DType::i32), discount = g.input("discount", DType::i64);
  const NodeId price = g.input("price", DType::i64);
  const NodeId recent = g.compute(Op::ge, {date, g.literal(DType::i32, 8766)});
  const NodeId high = g.compute(Op::ge, {discount, g.literal(DType::i64, 5)});
  const NodeId hit = g.compute(Op::bit_and, {recent, high});
  return g.finish({g.sum(g.compute(Op::mul, {price, discount}), hit), g.count(hit)},
                  partition_of(size));
}

class CpuLoops : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

class CpuPlans : public CpuLoops, public ::testing::WithParamInterface<MakeGraph> {};

TEST_P(CpuPlans, Segments) {
  // A dense plan and one with strides are two programs: each size has one of them in turn, shifted
  // from graph to graph, and a stride both with a gap and without.
  int turn = GetParam().shift;
  for (const std::int64_t size : {1, 2, 3, 5, 8, 16, 23, 31, 37, 64, 77, 100, 256, 777, 1000}) {
    const std::int64_t segments = size < 64 ? 1100 / size + 3 : 69;
    if (!is_taken(++turn)) continue;
    const auto gaps =
        turn % 2 == 0 ? std::vector<std::int64_t>{-1} : std::vector<std::int64_t>{0, 3};
    for (const std::int64_t gap : gaps) {
      const Shape shape{.size = size,
                        .segments = segments,
                        .elements = size * segments,
                        .gap = gap,
                        .streams = 2,
                        .ahead = 8192};
      EXPECT_EQ(check(GetParam().of(size), shape), "") << "segments of " << size << ", gap " << gap;
    }
  }
}

TEST_P(CpuPlans, Whole) {
  for (const std::int64_t elements : {1, 31, 4096, 70001})
    EXPECT_EQ(check(GetParam().of(0), {.elements = elements, .ahead = 8192}), "")
        << elements << " elements";
}

TEST_P(CpuPlans, Columns) {
  // One program a number of columns, dense or with strides, for all numbers of rows.
  int turn = GetParam().shift;
  for (const std::int64_t columns : {1, 3, 8, 31, 32, 33, 100, 128, 300}) {
    const bool strided = ++turn % 2 == 0;
    if (!is_taken(turn)) continue;
    for (const std::int64_t rows : {1, 7, 64, 601, 64 + 32 * turn}) {
      const std::int64_t gap = !strided ? -1 : rows % 2 == 0 ? 0 : 5;
      Graph graph = GetParam().of(columns);
      graph.partition.kind = Partition::Kind::columns;
      const Shape shape{.size = columns,
                        .segments = columns,
                        .elements = columns * rows,
                        .rows = rows,
                        .gap = gap,
                        .few = (rows + turn) % 2 == 0,
                        .streams = 1 + turn / 2 % 2,
                        .ahead = 8192};
      EXPECT_EQ(check(graph, shape), "") << columns << " columns, " << rows << " rows, gap " << gap;
    }
  }
}

/// Loops that read two places in turn: odd and even numbers of batches (of 2048 elements, from 17
/// on), with a rest, by parts and by rows, dense and with strides.
TEST_F(CpuLoops, LongRangesOfTwoInputs) {
  for (const std::int64_t elements : {16 * 2048 + 9, 35 * 2048 + 77, 36 * 2048, 36 * 2048 + 2047}) {
    EXPECT_EQ(
        check(dot_and_sum_of_words(0), {.elements = elements,
                                        .streams = 2,
                                        .plan = "parts warps=1 depth=32 parts=1 bytes=4 simt"}),
        "")
        << elements;
    for (const std::int64_t gap : {-1, 3}) {
      EXPECT_EQ(check(dot_and_sum_of_words(elements),
                      {.size = elements,
                       .segments = 2,
                       .elements = 2 * elements,
                       .gap = gap,
                       .streams = 2,
                       .plan = "rows warps=1 depth=32 rows=1 bytes=4 simt"}),
                "")
          << elements << ", gap " << gap;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CpuPlans,
                         ::testing::Values(MakeGraph{"sum_f32", &sum_of_floats, 0},
                                           MakeGraph{"mean_max_f16", &mean_and_max_of_halves, 1},
                                           MakeGraph{"dot_sum_bf16", &dot_and_sum_of_words, 0},
                                           MakeGraph{"argmax_bf16", &argmax_of_words, 1},
                                           MakeGraph{"sums_i8", &sums_of_signed_bytes, 0},
                                           MakeGraph{"sum_u8", &sum_of_bytes, 1},
                                           MakeGraph{"extremes_f16", &extremes_of_halves, 0},
                                           MakeGraph{"variance_f64", &variance_of_doubles, 0},
                                           MakeGraph{"moments_bf16", &moments_of_words, 1},
                                           MakeGraph{"filtered_i64", &filtered_sum_of_products, 1}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace chainfold::test
