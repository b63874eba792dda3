// Scans on the CPU through the public interface, held against the reference: all test programs over
// segments, tails and everything at once, by blocks that wait for each other on threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/on_cpu.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/reference.hpp"

namespace chainfold::test {
namespace {

struct ScanCase {
  std::int64_t segment = 0, elements = 0;
  Fill fill = Fill::uniform;
  std::uint64_t seed = 1;
  bool tail = false;
  std::string plan{};
  int offset = 0;                 ///< bytes behind an aligned address
  int output_skip = 0;            ///< elements behind an aligned address
  std::int64_t stream_bytes = 0;  ///< of the target, unless 0
};

class CpuScans : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
  static Computation computation(const TestProgram& tested, const ScanCase& c) {
    return tested.over(c.segment > 0 ? segments(c.segment, c.tail ? Tail::partial : Tail::error)
                                     : whole());
  }
  static Target target_of(const ScanCase& c) {
    Target cpu = target("cpu");
    if (c.stream_bytes > 0) cpu.non_temporal_bytes = c.stream_bytes;
    return cpu;
  }
  static Kernel kernel_of(const Computation& computation, const ScanCase& c) {
    return compile(computation, {.target = target_of(c), .plan = c.plan});
  }
  static std::vector<Column> inputs_of(const codegen::Graph& graph, const ScanCase& c) {
    std::vector<Column> inputs;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const DType type = graph.inputs[i].type;
      inputs.push_back(make_column(type, c.elements, c.fill, c.seed + i,
                                   c.offset / size_of(type) * size_of(type)));
    }
    return inputs;
  }
  static std::vector<Column> outputs_of(const Kernel& kernel, const TestProgram& tested,
                                        const codegen::Graph& graph,
                                        const std::vector<Column>& inputs, const ScanCase& c) {
    const std::vector<Bits> params = param_bits(tested, graph, c.segment);
    Bindings bindings;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      bindings.push_back(input_binding(graph.inputs[i], inputs[i]));
    for (std::size_t i = 0; i < params.size(); ++i)
      bindings.push_back({graph.params[i].name, static_cast<std::int64_t>(params[i])});
    const std::int64_t folds = c.segment > 0 ? (c.elements + c.segment - 1) / c.segment : 1;
    std::vector<Column> actual;
    Outputs outputs;
    for (const codegen::NodeId id : graph.outputs) {
      const codegen::Node& node = graph.node(id);
      const bool element = node.level == codegen::Level::element;
      actual.emplace_back(node.type, element ? c.elements : folds,
                          c.output_skip * size_of(node.type));
      actual.back().fill(std::byte{0x5A});
    }
    for (Column& column : actual)
      outputs.push_back(OutputBinding(column.data(), column.type(), column.count()));
    kernel.run_into(bindings, outputs);
    return actual;
  }
  static codegen::Plan plan_of(const codegen::Graph& graph, std::int64_t segment,
                               const std::string& pinned) {
    const codegen::PlanRequest request{.segment = segment};
    if (pinned.empty()) return codegen::choose_plan(graph, target("cpu"), request);
    return make_plan(graph, target("cpu"), request, codegen::parse_choice(pinned)).value();
  }
  static void check(const TestProgram& tested, const ScanCase& c) {
    SCOPED_TRACE(fmt::format("{}: segment {}{}, {} elements of {}, {} bytes off {}", tested.name,
                             c.segment, c.tail ? " with a tail" : "", c.elements, name_of(c.fill),
                             c.offset, c.plan));
    const Computation computation = CpuScans::computation(tested, c);
    const codegen::Graph& graph = computation.graph();
    const std::vector<Column> inputs = inputs_of(graph, c);
    const std::vector<Column> actual =
        outputs_of(kernel_of(computation, c), tested, graph, inputs, c);
    ReferenceRequest request{.segment = c.segment,
                             .params = param_bits(tested, graph, c.segment),
                             .plan = plan_of(graph, c.segment, c.plan)};
    if (c.tail) {
      codegen::Graph rest = graph;
      rest.partition = {};
      request.tail_plan = plan_of(rest, 0, "");
    }
    if (tested.transcendental) request.transcendental_ulp = kTranscendentalUlps;
    const Verdict verdict = judge(reference(graph, inputs, c.elements, request), actual);
    EXPECT_EQ(verdict.problems, "");
    if (c.fill != Fill::extremes && c.fill != Fill::nonfinite) {
      EXPECT_EQ(verdict.unchecked, 0);
    }
  }
};

class CpuScanPrograms : public CpuScans, public testing::WithParamInterface<std::size_t> {};

TEST_P(CpuScanPrograms, AgreeWithTheReference) {
  constexpr std::int64_t kSegments[] = {1, 2, 7, 16, 31, 32, 33, 100, 255, 1000, 4096, 70'001};
  const TestProgram& tested = scan_programs()[GetParam()];
  const std::size_t turn = GetParam();
  ScanCase c{.segment = kSegments[turn * 5 % std::size(kSegments)], .seed = turn};
  c.fill = tested.fills[turn % tested.fills.size()];
  c.tail = turn % 2 == 0;
  c.elements = c.segment * std::max<std::int64_t>(1, 2500 / c.segment);
  if (c.tail) c.elements += c.segment / 2;
  c.offset = turn % 3 == 0 ? 8 : 0;
  check(tested, c);
  constexpr std::int64_t kLengths[] = {0, 1, 31, 1000, 9'001};
  check(tested, {.elements = kLengths[GetParam() % std::size(kLengths)],
                 .fill = tested.fills[GetParam() % tested.fills.size()],
                 .seed = GetParam()});
}

INSTANTIATE_TEST_SUITE_P(All, CpuScanPrograms,
                         testing::Range(std::size_t{0}, scan_programs().size()),
                         [](const auto& info) { return scan_programs()[info.param].name; });

/// Many more tiles than threads, so that some wait: more than 1024 of them, for all levels.
TEST_F(CpuScans, ThatWaitAreRightAndHaveTheSameBitsAgain) {
  for (const char* name : {"scan_sum_f32", "scan_sum_i32", "scan_back_out_f32"}) {
    const TestProgram& tested = program(name);
    const ScanCase c{.elements = 1'500'007,
                     .fill = Fill::normal,
                     .plan = "look_back warps=1 depth=4 tile=1 bytes=16 simt"};
    if (tested.name != "scan_sum_f32") check(tested, {.elements = 300'007, .plan = c.plan});
    const Computation computation = CpuScans::computation(tested, c);
    const codegen::Graph& graph = computation.graph();
    const Kernel kernel = kernel_of(computation, c);
    const std::vector<Column> inputs = inputs_of(graph, c);
    const std::vector<Column> first = outputs_of(kernel, tested, graph, inputs, c);
    // The fold of the whole input, to which the last prefix must come close.
    double sum = 0, absolute = 0;
    for (std::int64_t i = 0; i < c.elements; ++i) {
      const double x = codegen::double_of_bits(inputs[0].type(), inputs[0].get(i));
      if (is_float(inputs[0].type())) {
        sum += x;
        absolute += std::abs(x);
      }
    }
    if (tested.name == "scan_sum_f32") {
      EXPECT_NEAR(codegen::double_of_bits(DType::f32, first[0].get(c.elements - 1)), sum,
                  absolute * 0x1p-20);
    }
    for (int repeat = 0; repeat < 20; ++repeat) {
      const std::vector<Column> again = outputs_of(kernel, tested, graph, inputs, c);
      ASSERT_EQ(std::memcmp(again[0].data(), first[0].data(), first[0].bytes()), 0) << name;
    }
  }
}

/// Segments that end within rows which pass the caches by: the next one's part of a row is stored
/// with theirs, but for a block's first and last ones. Outputs begin anywhere in a line, and
/// results of segments, elements that ask for them, and outputs of other widths stand beside.
TEST_F(CpuScans, OfSegmentsThatShareLines) {
  std::uint64_t seed = 0;
  for (const char* name : {"scan_sum_i32", "scan_sum_f32", "scan_back_out_f32", "scan_share_f32",
                           "scan_share_left_i32", "scan_widths", "scan_max_f32", "scan_sum_f64"}) {
    const TestProgram& tested = program(name);
    int with_seams = 0;
    for (const std::int64_t segment : {65, 70, 96, 127, 255, 289, 300, 777, 1000, 1024, 4097}) {
      ScanCase c{.segment = segment, .seed = ++seed, .stream_bytes = 64};
      c.fill = tested.fills[seed % tested.fills.size()];
      c.elements = segment * (20'000 / segment + 1);  // of two blocks or more
      c.output_skip = static_cast<int>(seed % 17);
      c.plan = "scan_run warps=1 depth=3 blocks=0 bytes=0 simt";
      check(tested, c);
      const Kernel kernel = kernel_of(computation(tested, c), c);
      with_seams += static_cast<int>(kernel.explain().find("lines of memory") != std::string::npos);
    }
    EXPECT_GE(with_seams, 7) << name;
  }
}

/// Segments of several tiles each, whose blocks share one counter of tickets.
TEST_F(CpuScans, OfLongSegmentsWait) {
  for (const char* plan : {"look_back warps=1 depth=4 tile=1 bytes=16 simt",
                           "propagate warps=1 depth=2 tile=2 bytes=16 simt"}) {
    for (const char* name : {"scan_sum_f16", "scan_horner_back_u8", "scan_beside_fold_f32"}) {
      for (const std::int64_t segment : {1024, 7000}) {
        check(program(name), {.segment = segment,
                              .elements = 40'000 / segment * segment,
                              .fill = program(name).fills.front(),
                              .plan = plan});
      }
    }
  }
}

}  // namespace
}  // namespace chainfold::test
