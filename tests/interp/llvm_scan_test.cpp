// Scans' programs of the CPU target: the compiled code against the interpreter, bit for bit, with
// inputs and outputs that end at unreadable pages.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/emit/llvm/llvm.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"
#include "chainfold/codegen/interp/machine.hpp"
#include "chainfold/codegen/lower/lower.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/launch/arguments.hpp"
#include "chainfold/runtime/launch/slots.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/on_cpu.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

struct Shape {
  std::int64_t segment, elements;
  const char* choice = "";  ///< the default's where empty
  int threads = 2;
};

bool passes_caches(const codegen::Program& program, const std::vector<GuardedArray>& arrays,
                   const std::vector<std::uint64_t>& params) {
  std::vector<codegen::GlobalArray> buffers;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    buffers.emplace_back(program.buffers[i],
                         codegen::InterpBuffer{arrays[i].data(), arrays[i].elements()}, false);
  bool any = false;
  for (std::size_t l = 0; l < program.launches.size(); ++l)
    any |= codegen::LaunchContext(program, static_cast<int>(l), buffers, params, {}).streams;
  return any;
}

std::string check(const TestProgram& tested, const Shape& shape, std::int64_t stream_bytes = 0) {
  const Computation computation =
      tested.over(shape.segment > 0 ? segments(shape.segment) : whole());
  const codegen::Graph& graph = computation.graph();
  codegen::Target target = codegen::cpu_target(shape.threads);
  target.ahead_bytes = 1024;
  if (stream_bytes > 0) target.non_temporal_bytes = stream_bytes;
  const codegen::PlanRequest request{.segment = shape.segment, .base_alignment = 1};
  const codegen::Plan plan =
      *shape.choice == '\0'
          ? codegen::choose_plan(graph, target, request)
          : make_plan(graph, target, request, codegen::parse_choice(shape.choice)).value();
  codegen::Program program = codegen::lower(graph, plan, target);
  codegen::simplify(program);
  if (stream_bytes > 0 &&
      codegen::emit_llvm(program).text.find("!nontemporal") == std::string::npos)
    return "nothing passes the caches by";
  if (stream_bytes > 0 && shape.elements % 32 != 0 && !plan.hints.to_lines)
    return "rows stay off lines";
  runtime::Arguments arguments = runtime::dense_arguments(graph, shape.elements, shape.segment);
  const std::vector<Bits> bits = param_bits(tested, graph, shape.segment);
  std::copy(bits.begin(), bits.end(), arguments.params.begin());
  const runtime::Slots slots(graph, program, arguments, runtime::range_of(plan, arguments));
  const std::vector<std::uint64_t> params(slots.data() + program.buffers.size(),
                                          slots.data() + slots.size());
  std::vector<GuardedArray> arrays;
  for (const codegen::Buffer& buffer : program.buffers) {
    const auto index = static_cast<std::size_t>(buffer.index);
    const std::int64_t count = buffer.role == codegen::BufferRole::input ? shape.elements
                               : buffer.role == codegen::BufferRole::output
                                   ? runtime::output_values(graph, arguments, index)
                                   : buffer.elements.evaluate(params);
    const GuardedArray& array = arrays.emplace_back(buffer.type, count);
    const bool input = buffer.role == codegen::BufferRole::input;
    const Column data = make_column(buffer.type, count, Fill::uniform, 17 + index);
    for (std::int64_t i = 0; i < count; ++i) array.set(i, input ? data.get(i) : 0);
  }
  if (stream_bytes > 0 && !passes_caches(program, arrays, params))
    return "no launch passes the caches by";
  if (!tested.transcendental) return difference(program, arrays, params);
  // A log of a sum, beside the largest element (up to 1): each merge takes one exponential.
  const std::int64_t merged = shape.segment > 0 ? shape.segment : shape.elements;
  return difference(program, arrays, params, kTranscendentalUlps * (1 + codegen::ceil_log2(merged)),
                    1.0);
}

class LlvmScan : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(LlvmScan, AgreesWithTheInterpreter) {
  const TestProgram& tested = scan_programs()[GetParam()];
  const bool both_ways = tested.name.find("both_ways") != std::string::npos;
  constexpr Shape kSegments[] = {{1, 300}, {3, 402}, {8, 1000}, {31, 31 * 40}, {24, 24 * 33}};
  constexpr Shape kLong[] = {{37, 37 * 41},
                             {1000, 3000},
                             {4000, 8000, "look_back warps=1 depth=2 tile=1 bytes=16 simt"},
                             {1025, 3075, "propagate warps=1 depth=4 tile=1 bytes=16 simt"},
                             {0, 1},
                             {0, 5001, "scan_run warps=1 depth=8 blocks=0 bytes=0 simt"},
                             {0, 5001, "look_back warps=1 depth=4 tile=1 bytes=16 simt"},
                             {0, 5001, "look_ahead warps=1 depth=8 tile=1 stages=2 blocks=1 simt"},
                             {2500, 7500,
                              "look_ahead warps=1 depth=4 near=1 tile=1 stages=3 "
                              "blocks=1 simt"},
                             {0, 5001, "propagate warps=1 depth=1 tile=1 bytes=16 simt"}};
  constexpr Shape kBothWays[] = {{1000, 3000}, {0, 5001}};
  const Shape shapes[] = {kSegments[GetParam() % std::size(kSegments)],
                          both_ways ? kBothWays[GetParam() % std::size(kBothWays)]
                                    : kLong[GetParam() % std::size(kLong)]};
  for (const Shape& shape : shapes) {
    // A value that waits for a segment's end is not there when look_back stores its elements.
    if (tested.name.starts_with("scan_share") && *shape.choice == 'l') continue;
    EXPECT_EQ(check(tested, shape), "")
        << "segments of " << shape.segment << ", " << shape.elements << " elements";
  }
}

// Segments of every short size, whose heads give each row masks of its own: states of several
// fields take more of them than a processor has registers for.
TEST(LlvmScanHeads, AgreesWithTheInterpreter) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  std::int64_t turn = 0;
  for (const TestProgram& tested : scan_programs()) {
    if (tested.name != "scan_recurrence_back_f32" && tested.name != "scan_recurrence_f64" &&
        tested.name != "scan_argmax_back_i16" && tested.name != "scan_both_ways_i32" &&
        tested.name != "scan_variance_f32")
      continue;
    for (std::int64_t segment = 2; segment < 33; ++segment) {
      if (++turn % (5 * kThin) != 0 && segment != 7) continue;
      EXPECT_EQ(check(tested, {segment, segment * 32}), "") << tested.name << " of " << segment;
    }
  }
  EXPECT_EQ(turn, 5 * 31);
}

// Outputs end at a page and are whole lines, so they begin with one. That every store past the
// caches begins with one, too, the interpreter checks in all of these tests.
TEST(LlvmScanStreams, AgreesWithTheInterpreter) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  constexpr Shape kShapes[] = {{64, 64 * 21},
                               {0, 5056, "look_back warps=1 depth=8 tile=1 bytes=16 simt"},
                               {0, 50560,
                                "look_ahead warps=1 depth=8 near=1 tile=1 stages=2 "
                                "blocks=1 simt"},
                               {1056, 1056 * 3, "propagate warps=1 depth=4 tile=1 bytes=16 simt"}};
  std::size_t shape = 0;
  for (const TestProgram& tested : scan_programs()) {
    if (tested.name != "scan_sum_f16" && tested.name != "scan_back_out_f32" &&
        tested.name != "scan_sum_i32")
      continue;
    EXPECT_EQ(check(tested, kShapes[shape % std::size(kShapes)], 64), "") << tested.name;
    EXPECT_EQ(check(tested, kShapes[++shape % std::size(kShapes)], 64), "") << tested.name;
  }
  EXPECT_EQ(shape, 3u);
}

// Ranges that begin and end anywhere in lines, of segments (scan_run) and of others, in outputs
// that begin anywhere, too; the first rows hold what lies before the range, and the last ones what
// lies behind it. Folds with states of several fields stay where they are.
TEST(LlvmScanLines, AgreesWithTheInterpreter) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  constexpr const char* kRun = "scan_run warps=1 depth=8 blocks=0 bytes=0 simt";
  constexpr const char* kShortRun = "scan_run warps=1 depth=3 blocks=0 bytes=0 simt";
  constexpr const char* kTiles = "propagate warps=1 depth=4 tile=1 bytes=16 simt";
  constexpr const char* kLookBack = "look_back warps=1 depth=4 tile=1 bytes=16 simt";
  constexpr Shape kShapes[] = {
      {385, 385 * 7, kRun},   {1001, 1001 * 7, kRun}, {776, 776 * 9, kShortRun},
      {1055, 1055 * 5, kRun}, {799, 799 * 7, kTiles}, {2049, 2049 * 3, kLookBack},
      {0, 5001, kRun},        {0, 5003, kTiles},      {0, 7177, kLookBack}};
  constexpr Shape kSeams[] = {{65, 65 * 300, kShortRun}, {97, 97 * 23, kRun}, {289, 289 * 7, kRun}};
  int programs = 0;
  std::int64_t turn = 0;
  for (const TestProgram& tested : scan_programs()) {
    const bool share = tested.name == "scan_share_f32";
    const bool plain = share || tested.name == "scan_sum_f32" ||
                       tested.name == "scan_back_out_f32" || tested.name == "scan_sum_f16" ||
                       tested.name == "scan_index_back_u8";
    if (!plain && tested.name != "scan_variance_f32") continue;
    ++programs;
    for (const Shape& shape : kShapes) {
      if (!is_taken(++turn + programs)) continue;   // of each program others
      if (share && *shape.choice == 'l') continue;  // as above
      EXPECT_EQ(check(tested, shape, plain ? 64 : 0), "")
          << tested.name << " of " << shape.segment << " by " << shape.choice;
    }
    if (!plain || tested.name.find("32") == std::string::npos) continue;
    for (const Shape& shape : kSeams)
      EXPECT_EQ(check(tested, shape, 64), "") << tested.name << " of " << shape.segment;
  }
  EXPECT_EQ(programs, 6);
  // What is converted before it is stored is on lines where threads are many.
  const TestProgram halves{.name = "halves",
                           .over =
                               [](const dsl::Partition& p) {
                                 return over(p, cast<f16>(inclusive_sum(input<f16>("x"))));
                               },
                           .fills = {Fill::uniform}};
  for (Shape shape : kSeams) {
    EXPECT_EQ(check(halves, shape, 64), "nothing passes the caches by") << shape.segment;
    shape.threads = 8;
    EXPECT_EQ(check(halves, shape, 64), "") << shape.segment;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LlvmScan,
                         testing::Range(std::size_t{0}, scan_programs().size(), kThin),
                         [](const auto& info) { return scan_programs()[info.param].name; });

}  // namespace
}  // namespace chainfold::test
