// Every test program on the GPU against the reference, through run() and launch(); and every
// operation on every type against its definition, bit for bit.
//
// All programs at all segment sizes would be two thousand kernels. The sums of the commonest types
// see every size, those of the others every second one and the whole; each other program sees a
// size, and half of them the whole or a tail, in rotation, so that all sizes, data and alignments
// meet many programs.
#include <algorithm>
#include <future>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/op_table.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/runtime/launch/executable.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/on_device.hpp"
#include "chainfold/tests/support/operation_program.hpp"

namespace chainfold::test {
namespace {

constexpr std::int64_t kSegments[] = {1,  2,   7,   8,   16,  24,   31,   32,   33,
                                      64, 100, 255, 256, 257, 1000, 4096, 65537};
constexpr int kShifts[] = {0, 1, 3, 2};

/// Enough rows for more than a block where they are short, and a last warp that is not full.
std::int64_t elements_for(std::int64_t segment, bool plain) {
  if (segment > 10'000) return plain ? 2 * segment : segment;
  return segment * std::max<std::int64_t>(5, std::min<std::int64_t>(2085, 12'000 / segment) | 1);
}

/// The cases of program `index`.
std::vector<DeviceCase> cases_of(std::size_t index) {
  const TestProgram& tested = programs()[index];
  const bool plain = tested.name.rfind("sum_", 0) == 0;
  const bool every_size = tested.name == "sum_f16" || tested.name == "sum_bf16" ||
                          tested.name == "sum_f32" || tested.name == "sum_i8" ||
                          tested.name == "sum_i64" || tested.name == "frames";
  std::vector<DeviceCase> cases;
  const auto add = [&](std::int64_t segment, std::int64_t elements, bool tail = false) {
    const std::size_t turn = index + cases.size();
    // A shifted launch is a kernel of its own; run() knows no shift.
    const int shift = turn % 3 == 0 ? kShifts[turn / 3 % std::size(kShifts)] : 0;
    cases.push_back({.segment = segment,
                     .elements = elements,
                     .fill = tested.fills[turn % tested.fills.size()],
                     .seed = turn,
                     .shift = shift,
                     .output_shift = turn % 2 == 0 ? 0 : 1,
                     .tail = tail,
                     .through_run = shift == 0});
  };
  const std::size_t sizes = std::size(kSegments);
  for (std::size_t s = 0; s < sizes; ++s) {
    if (every_size || (plain && s % 2 == index % 2) || s == index * 5 % sizes) {
      add(kSegments[s], elements_for(kSegments[s], plain));
    }
  }
  if (plain || index % 4 == 0) {
    for (const std::int64_t length : {0, 1, 31, 1000, 20'011, 100'003}) {
      if (plain || length == 31 || length == 20'011) add(0, length);
    }
  } else if (index % 4 == 2) {
    add(kSegments[index % 12], kSegments[index % 12] * 41 + 1, true);
  }
  return cases;
}

using Verdicts = std::vector<std::future<Verdict>>;

/// Starts the cases side by side: most of their time goes to the compiler and the reference.
Verdicts start(const TestProgram& program, const std::vector<DeviceCase>& cases) {
  Verdicts verdicts;
  for (const DeviceCase& what : cases) {
    verdicts.push_back(std::async(std::launch::async,
                                  [&program, what] { return check_on_device(program, what); }));
  }
  return verdicts;
}

void expect_right(const TestProgram& program, const std::vector<DeviceCase>& cases,
                  Verdicts verdicts) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(program.name + ": " + words(cases[i]));
    try {
      const Verdict verdict = verdicts[i].get();
      EXPECT_EQ(verdict.problems, "");
      EXPECT_GT(verdict.values, 0);
      if (cases[i].fill != Fill::extremes && cases[i].fill != Fill::nonfinite) {
        EXPECT_EQ(verdict.unchecked, 0);
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

class GpuPrograms : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  }
  /// The verdicts on a program. Where all programs are tested, the next ones are started as well.
  static Verdicts verdicts_of(std::size_t index) {
    static std::map<std::size_t, Verdicts> started;
    const bool all =
        testing::UnitTest::GetInstance()->test_to_run_count() > static_cast<int>(programs().size());
    const std::size_t end = std::min(programs().size(), index + (all ? 6 : 1));
    for (std::size_t i = index; i < end; ++i) {
      if (!started.contains(i)) started[i] = start(programs()[i], cases_of(i));
    }
    return std::move(started[index]);
  }
};

TEST_P(GpuPrograms, AgreeWithTheReference) {
  expect_right(programs()[GetParam()], cases_of(GetParam()), verdicts_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, GpuPrograms, testing::Range(std::size_t{0}, programs().size()),
                         [](const auto& test) { return programs()[test.param].name; });

/// Whether the bits are a NaN whose first fraction bit is clear.
bool is_signalling(DType type, codegen::Bits bits) {
  if (type == DType::f32) return (bits & 0x7fc00000u) == 0x7f800000u && (bits & 0x3fffffu) != 0;
  return type == DType::f64 && (bits & 0x7ff8000000000000u) == 0x7ff0000000000000u &&
         (bits & 0x7ffffffffffffu) != 0;
}

class GpuOperations : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

/// Pairs of difficult values, then random ones, for each operation that is defined on the type.
TEST_P(GpuOperations, AgreeWithTheirDefinition) {
  using namespace codegen;
  const DType type = GetParam();
  const std::vector<Bits> difficult = difficult_values(type);
  const auto pairs = static_cast<std::int64_t>(difficult.size() * difficult.size());
  const std::vector<OperationCase> cases = operation_cases(type);
  const runtime::Context& context = runtime::Context::of(0);
  const runtime::ContextScope scope(context);
  for (const int width : {1, size_of(type) > 4 ? 2 : 4}) {
    constexpr int kWarps = 2;
    const Program program = operation_program(type, width, kWarps);
    verify(program);
    const std::int64_t tile = std::int64_t{kWarpWidth} * width * kWarps;
    const std::int64_t elements = (pairs + 4096 + tile - 1) / tile * tile;
    std::vector<Column> columns;
    for (const Buffer& buffer : program.buffers) columns.emplace_back(buffer.type, elements);
    std::mt19937_64 random(width);
    const auto some = [&] { return difficult[random() % difficult.size()]; };
    for (std::int64_t i = 0; i < elements; ++i) {
      const auto at = static_cast<std::size_t>(i);
      columns[0].set(i, i < pairs ? difficult[at / difficult.size()] : random_bits(type, random()));
      columns[1].set(i, i < pairs           ? difficult[at % difficult.size()]
                        : random() % 4 == 0 ? some()
                                            : random_bits(type, random()));
      columns[2].set(i, random() % 4 == 0 ? random_bits(type, random()) : some());
      columns[3].set(i, random() & 1);
    }

    std::vector<DeviceArray> arrays;
    std::vector<std::uint64_t> slots;
    for (std::size_t b = 0; b < columns.size(); ++b) {
      arrays.emplace_back(context, columns[b].bytes());
      if (b < 4) arrays.back().upload(columns[b].data());
      slots.push_back(reinterpret_cast<std::uintptr_t>(arrays.back().data()));
    }
    slots.push_back(static_cast<std::uint64_t>(elements));
    bool reused = false;
    const auto executable = runtime::load_executable(program, chainfold::target("gpu"), 0, reused);
    const runtime::Stream stream(context);
    executable->launch(0, elements / tile, slots.data(), slots.size(), stream.handle(), false);
    stream.synchronize();

    for (std::size_t k = 0; k < cases.size(); ++k) {
      const auto [op, result] = cases[k];
      Column& actual = columns[4 + k];
      arrays[4 + k].download(actual.data());
      EXPECT_EQ(arrays[4 + k].damage(), "") << name_of(op);
      const int ulps = codegen::row_of(op).ulps;
      int shown = 0;
      for (std::int64_t i = 0; i < elements && shown < 3; ++i) {
        const Bits a = columns[0].get(i), b = columns[1].get(i), c = columns[2].get(i);
        const Bits expected = op == Op::select ? evaluate(op, type, result, columns[3].get(i), a, b)
                                               : evaluate(op, type, result, a, b, c);
        if (agree(result, actual.get(i), expected, ulps)) continue;
        if (op == Op::pow && (is_signalling(type, a) || is_signalling(type, b)))
          continue;  // left open
        ++shown;
        ADD_FAILURE() << fmt::format(
            "{} {} of {}, {}, {} (width {}): {} instead of {}", name_of(op), name_of(result),
            text_of_bits(type, a), text_of_bits(type, b), text_of_bits(type, c), width,
            text_of_bits(result, actual.get(i)), text_of_bits(result, expected));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuOperations, testing::ValuesIn(all_types()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

/// Segments that are long for a warp: of one more than fill the device, of a few, and of as many as
/// have plans of their own.
TEST(GpuLongSegments, OfAnyNumber) {
  if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  const int processors = target("gpu").processors;
  for (const char* name : {"sum_f16", "sum_bf16", "sum_f32", "sum_f64", "sum_i32"}) {
    const TestProgram& tested = program(name);
    const int size = size_of(tested.over(whole()).graph().inputs[0].type);
    std::vector<DeviceCase> cases;
    for (const std::int64_t kilobytes : {4, 12, 32, 64, 192, 1024}) {
      for (const std::int64_t more : {0, 3}) {
        const std::int64_t segment = kilobytes * 1024 / size + more;
        const std::int64_t many = kilobytes > 192    ? 20
                                  : kilobytes == 192 ? processors
                                                     : 2 * processors + 1;
        for (const std::int64_t count : {std::int64_t{1}, std::int64_t{5}, many}) {
          if (count == many && (more > 0) != (kilobytes == 32)) continue;
          const std::size_t turn = cases.size();
          cases.push_back({.segment = segment,
                           .elements = segment * count,
                           .fill = tested.fills[turn % tested.fills.size()],
                           .seed = turn,
                           .shift = turn % 4 == 3 ? 1 : 0});
        }
      }
    }
    expect_right(tested, cases, start(tested, cases));
  }
}

/// Few launches of every kind of kernel, for the sanitizers: each says which kind it means.
struct SmallCase {
  const char* program;
  DeviceCase what;
  codegen::Strategy strategy;
  codegen::Unit unit;
  bool edges, guard;
};
using codegen::Strategy;
using codegen::Unit;
const SmallCase kSmall[] = {
    {"sum_f32", {.segment = 33, .elements = 33 * 3070}, Strategy::staged, Unit::simt, false, false},
    {"basics_i32",
     {.segment = 256, .elements = 256 * 1037},
     Strategy::rows,
     Unit::simt,
     false,
     false},
    {"basics_f16",
     {.segment = 1, .elements = 7013, .output_shift = 0},
     Strategy::elements,
     Unit::simt,
     false,
     false},
    {"sum_f32", {.segment = 16, .elements = 16 * 301}, Strategy::rows, Unit::simt, false, false},
    {"sum_f16",
     {.segment = 64, .elements = 64 * 2069},
     Strategy::rows,
     Unit::mma_ones,
     false,
     false},
    {"sum_bf16", {.segment = 1200, .elements = 3600}, Strategy::rows, Unit::mma_ones, false, false},
    {"sum_f16",
     {.segment = 500, .elements = 500 * 33},
     Strategy::rows,
     Unit::mma_ones,
     false,
     false},
    {"dot_f16",
     {.segment = 256, .elements = 256 * 309},
     Strategy::rows,
     Unit::mma_diagonal,
     false,
     false},
    {"sum_f16",
     {.segment = 8, .elements = 8 * 301, .fill = Fill::nonfinite},
     Strategy::rows,
     Unit::mma_ones,
     false,
     true},
    {"sum_bf16",
     {.segment = 16, .elements = 16 * 77, .fill = Fill::nonfinite},
     Strategy::rows,
     Unit::mma_ones,
     false,
     true},
    {"sum_f16", {.segment = 4097, .elements = 4097 * 3}, Strategy::rows, Unit::simt, true, false},
    {"sum_i8",
     {.segment = 8195, .elements = 8195 * 3},
     Strategy::rows,
     Unit::mma_ones,
     true,
     false},
    {"sum_f32",  // a part a segment, with a rest and edges
     {.segment = 20'011, .elements = 20'011 * 5},
     Strategy::parts,
     Unit::simt,
     true,
     false},
    {"sum_f16",  // few long segments: a block each, with and without edges
     {.segment = 16'384, .elements = 16'384 * 3},
     Strategy::parts,
     Unit::simt,
     false,
     false},
    {"sum_bf16",
     {.segment = 32'001, .elements = 32'001 * 2, .shift = 1},
     Strategy::parts,
     Unit::simt,
     true,
     false},
    {"sum_f32",  // a cluster each
     {.segment = 40'003, .elements = 40'003 * 3, .shift = 1},
     Strategy::parts,
     Unit::simt,
     true,
     false},
    {"sum_f32", {.segment = 3000, .elements = 3000 * 5}, Strategy::rows, Unit::simt, false, false},
    {"sum_f64", {.segment = 3001, .elements = 3001 * 3}, Strategy::rows, Unit::simt, true, false},
    {"sum_f64",
     {.segment = 777, .elements = 777 * 7, .output_shift = 0},
     Strategy::rows,
     Unit::mma_ones,
     false,
     false},
    {"variance_f16",
     {.segment = 4099, .elements = 4099 * 3},
     Strategy::staged,
     Unit::simt,
     false,
     false},
    {"frames",
     {.segment = 100, .elements = 100 * 1700, .shift = 1},
     Strategy::staged,
     Unit::simt,
     false,
     false},
    {"sum_f16", {.segment = 0, .elements = 9001}, Strategy::parts, Unit::mma_ones, true, false},
    {"variance_f32",
     {.segment = 0, .elements = 5003, .shift = 1},
     Strategy::parts,
     Unit::simt,
     true,
     false},
    {"sum_i64",
     {.segment = 7, .elements = 7 * 4000 + 3, .tail = true},
     Strategy::rows,
     Unit::simt,
     false,
     false},
    {"filter_f16",
     {.segment = 31, .elements = 31 * 3033, .shift = 3},
     Strategy::staged,
     Unit::simt,
     false,
     false},
    {"sum_i8",
     {.segment = 77, .elements = 77 * 3001, .shift = 5},
     Strategy::staged,
     Unit::simt,
     false,
     false},
    {"two_sums_f16",
     {.segment = 64, .elements = 64 * 5},
     Strategy::rows,
     Unit::mma_ones,
     false,
     false},
};

class GpuSmallSet : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_P(GpuSmallSet, IsRight) {
  const SmallCase& small = kSmall[GetParam()];
  const TestProgram& tested = program(small.program);
  const Computation computation =
      tested.over(small.what.segment > 0
                      ? segments(small.what.segment, small.what.tail ? Tail::partial : Tail::error)
                      : whole());
  int alignment = 16;
  for (const auto& input : computation.graph().inputs) {
    if (small.what.shift % 2 != 0) alignment = std::min(alignment, size_of(input.type));
  }
  const codegen::Plan plan = codegen::choose_plan(
      computation.graph(), target("gpu"),
      {.segment = small.what.segment,
       .base_alignment = alignment,
       .size_limit = codegen::size_class_of(computation.graph(), target("gpu"), small.what.segment,
                                            small.what.elements)});
  EXPECT_EQ(plan.strategy, small.strategy);
  bool has_unit = false;
  for (const codegen::FoldPlan& fold : plan.folds) has_unit = has_unit || fold.unit == small.unit;
  EXPECT_TRUE(has_unit) << codegen::print(plan, computation.graph());
  EXPECT_EQ(plan.edges, small.edges);
  EXPECT_EQ(plan.promises.guard, small.guard);
  expect_right(tested, {small.what}, start(tested, {small.what}));
}

INSTANTIATE_TEST_SUITE_P(All, GpuSmallSet, testing::Range(std::size_t{0}, std::size(kSmall)),
                         [](const auto& test) {
                           const SmallCase& small = kSmall[test.param];
                           return fmt::format("{}_{}_{}", test.param, small.program,
                                              small.what.segment);
                         });

}  // namespace
}  // namespace chainfold::test
