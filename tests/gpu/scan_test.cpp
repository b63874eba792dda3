// Scans on the GPU: every plan of the space gives what the default one gives, from aligned and odd
// addresses, in the inputs' memory, and the same bits again and again.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <future>

#include <fmt/format.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

Computation computation_of(const TestProgram& tested, std::int64_t segment) {
  return tested.over(segment > 0 ? segments(segment) : whole());
}

std::vector<Column> outputs_of(const Kernel& kernel, const codegen::Graph& graph,
                               const std::vector<Column>& inputs, std::int64_t elements,
                               std::int64_t segment) {
  std::vector<Column> columns;
  Outputs outputs;
  for (const codegen::NodeId output : graph.outputs) {
    const codegen::Node& node = graph.node(output);
    const bool element = node.level == codegen::Level::element;
    columns.emplace_back(node.type, element ? elements : segment > 0 ? elements / segment : 1);
    columns.back().fill(std::byte{0x5A});
  }
  for (Column& column : columns)
    outputs.push_back(OutputBinding(column.data(), column.type(), column.count()));
  kernel.run_into(host_bindings(graph, inputs, {}), outputs);
  return columns;
}

class GpuScan : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
  static Options pinned(const std::string& plan) {
    Options options;
    options.target = target("gpu");
    options.plan = plan;
    return options;
  }
};

struct SpaceCase {
  const char* program;
  std::int64_t segment;
};
const SpaceCase kSpaces[] = {
    {"scan_sum_i32", 0},         {"scan_sum_i32", 37},         {"scan_sum_i8", 256},
    {"scan_sum_f32", 0},         {"scan_sum_f32", 777},        {"scan_sum_f16", 4096},
    {"scan_backward_i64", 0},    {"scan_backward_i64", 1000},  {"scan_horner_back_u8", 5000},
    {"scan_longest_run_f32", 0}, {"scan_longest_run_f32", 33}, {"scan_both_ways_i32", 500},
    {"scan_sum_i32", 33'001},    {"scan_back_out_f32", 0},     {"running_sum_to_f16", 0},
};

/// What an element's float scan can be off by is in proportion to this: the sum of the absolute
/// values of the elements that it is of.
std::vector<double> scan_of_absolute_values(const Column& input, std::int64_t length,
                                            codegen::ScanForm form) {
  std::vector<double> sums(static_cast<std::size_t>(input.count()));
  double sum = 0;
  for (std::int64_t k = 0; k < input.count(); ++k) {
    const std::int64_t i = form.reverse ? input.count() - 1 - k : k;
    if (k % length == 0) sum = 0;
    const double before = sum;
    sum += std::fabs(codegen::double_of_bits(input.type(), input.get(i)));
    sums[static_cast<std::size_t>(i)] = form.exclusive ? before : sum;
  }
  return sums;
}

/// The form of the graph's first scan.
codegen::ScanForm form_of(const codegen::Graph& graph) {
  for (const codegen::Node& node : graph.nodes)
    if (node.kind == codegen::NodeKind::scan) return {node.exclusive, node.reverse};
  return {};
}

/// What rounding to the output's type adds where that is narrower than a state.
double rounding_of(DType type, double value) {
  switch (type) {
    case DType::f16: return 0x1p-11 * std::fabs(value) + 0x1p-25;
    case DType::bf16: return 0x1p-8 * std::fabs(value) + 0x1p-134;
    default: return 0;
  }
}

class GpuScanSpace : public GpuScan, public testing::WithParamInterface<std::size_t> {};

/// Integers, folds of a user's own and comparisons have the same bits under every plan; float sums
/// (of f32, all of one form) differ by what the plans' bounds allow.
TEST_P(GpuScanSpace, AgreesWithTheDefault) {
  const std::int64_t segment = kSpaces[GetParam()].segment;
  const TestProgram& tested = program(kSpaces[GetParam()].program);
  const Computation computation = computation_of(tested, segment);
  const codegen::Graph& graph = computation.graph();
  const codegen::PlanRequest request{.segment = segment};
  const codegen::Target gpu = target("gpu");
  const std::int64_t elements = segment > 0 ? segment * (300'000 / segment) : 1'000'003;
  const std::vector<Column> inputs = make_inputs(graph, elements, Fill::uniform, 7);
  const std::vector<Column> expected =
      outputs_of(compile(computation, pinned("")), graph, inputs, elements, segment);
  const std::int64_t length = segment > 0 ? segment : elements;
  const std::vector<double> absolute = scan_of_absolute_values(inputs[0], length, form_of(graph));
  const double default_bound = codegen::choose_plan(graph, gpu, request).folds[0].error_bound_u;
  std::vector<std::future<std::string>> verdicts;
  // Kernels of long merges take a second and more to compile: of large spaces every second or
  // third.
  constexpr std::size_t kMostPlans = 32;
  const std::vector<codegen::PlanChoice> space = plan_space(graph, gpu, request);
  const std::size_t step = (space.size() + kMostPlans - 1) / kMostPlans;
  for (std::size_t p = GetParam() % step; p < space.size(); p += step) {
    const codegen::PlanChoice& choice = space[p];
    const auto plan = make_plan(graph, gpu, request, choice);
    ASSERT_TRUE(plan) << to_text(choice);
    const double bound = plan->folds[0].error_bound_u + default_bound;
    verdicts.push_back(std::async(std::launch::async, [&, choice, bound]() -> std::string {
      const Kernel kernel = compile(computation, pinned(to_text(choice)));
      const std::vector<Column> actual = outputs_of(kernel, graph, inputs, elements, segment);
      for (std::size_t o = 0; o < actual.size(); ++o) {
        const DType type = actual[o].type();
        for (std::int64_t i = 0; i < actual[o].count(); ++i) {
          const Bits a = actual[o].get(i), b = expected[o].get(i);
          if (is_float(type)) {
            const double is = codegen::double_of_bits(type, a);
            const double off = is - codegen::double_of_bits(type, b);
            const double allowed = bound * 0x1p-24 * absolute[static_cast<std::size_t>(i)];
            if (std::fabs(off) <=
                allowed * (1 + 0x1p-10) + rounding_of(type, is) + rounding_of(type, is - off))
              continue;
          } else if (a == b) {
            continue;
          }
          return fmt::format("{}: output {}, value {}: {} instead of {}", to_text(choice), o, i,
                             codegen::text_of_bits(type, a), codegen::text_of_bits(type, b));
        }
      }
      return {};
    }));
  }
  for (std::future<std::string>& verdict : verdicts) EXPECT_EQ(verdict.get(), "");
}

INSTANTIATE_TEST_SUITE_P(All, GpuScanSpace, testing::Range(std::size_t{0}, std::size(kSpaces)),
                         [](const auto& info) {
                           return fmt::format("{}_S{}", kSpaces[info.param].program,
                                              kSpaces[info.param].segment);
                         });

class GpuScanPrograms : public GpuScan, public testing::WithParamInterface<std::size_t> {};

TEST_P(GpuScanPrograms, AgreeWithTheReference) {
  constexpr std::int64_t kSegments[] = {1, 3, 8, 31, 37, 100, 777, 1000, 4096, 33'000, 33'001};
  const TestProgram& tested = scan_programs()[GetParam()];
  std::vector<DeviceCase> cases;
  std::size_t turn = GetParam();
  for (int i = 0; i < 3; ++i, turn += 7) {
    std::int64_t segment = kSegments[turn % std::size(kSegments)];
    const bool tail = turn % 3 == 0;
    const int shift = turn % 2 == 0 ? 0 : static_cast<int>(1 + turn % 3);
    cases.push_back({.segment = segment,
                     .elements = segment * std::max<std::int64_t>(2, 20'001 / segment) +
                                 (tail ? segment / 2 : 0),
                     .fill = tested.fills[turn % tested.fills.size()],
                     .seed = turn,
                     .shift = shift,
                     .tail = tail});
  }
  for (const std::int64_t elements : {0, 1, 20'011}) {
    cases.push_back({.elements = elements,
                     .fill = tested.fills[turn % tested.fills.size()],
                     .seed = turn,
                     .shift = static_cast<int>(turn++ % 3)});
  }
  // What waits for ends of segments, or for the other direction, in a block of several segments and
  // in tiles that begin within loads.
  const codegen::Graph graph = computation_of(tested, 3).graph();
  for (const std::int64_t segment : {129, 333, 1501, 9001}) {
    if (!broadcasts(graph) && !scans_both_ways(graph)) continue;
    cases.push_back({.segment = segment,
                     .elements = segment * (20'001 / segment),
                     .fill = tested.fills[turn % tested.fills.size()],
                     .seed = turn++});
  }
  std::vector<std::future<Verdict>> verdicts;
  for (const DeviceCase& what : cases) {
    verdicts.push_back(
        std::async(std::launch::async, [&tested, what] { return check_on_device(tested, what); }));
  }
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(verdicts[i].get().problems, "") << tested.name << ": " << words(cases[i]);
}

INSTANTIATE_TEST_SUITE_P(All, GpuScanPrograms,
                         testing::Range(std::size_t{0}, scan_programs().size()),
                         [](const auto& info) { return scan_programs()[info.param].name; });

TEST_F(GpuScan, OfEveryLengthFromEveryAddress) {
  for (const char* name : {"scan_sum_i32", "scan_back_out_i8", "scan_exclusive_f16"}) {
    for (const std::int64_t elements : {0, 1, 31, 4097, 1'048'579}) {
      for (const int shift : {0, 1, 3}) {
        // The reference of many float prefixes takes its time.
        if (elements > 1'000'000 && (shift == 3 || std::string_view(name).ends_with("f16")))
          continue;
        const DeviceCase what{.elements = elements, .seed = 3, .shift = shift};
        EXPECT_EQ(check_on_device(program(name), what).problems, "") << name << words(what);
      }
    }
  }
}

/// Tiles of a few warps that are all there at once (tiles of twelve rows among them), and those
/// just above, which wait for room.
TEST_F(GpuScan, FewWideElements) {
  for (const char* name : {"scan_back_out_i64", "scan_sum_f64"}) {
    for (const std::int64_t elements : {300'007, 1'100'003, 1'500'001, 1'700'003}) {
      // The reference of many float prefixes takes its time.
      if (std::string_view(name).ends_with("f64") && elements != 1'500'001) continue;
      const DeviceCase what{.elements = elements, .seed = 5};
      EXPECT_EQ(check_on_device(program(name), what).problems, "") << name << words(what);
    }
  }
}

/// More tiles than are resident, results in the inputs' memory, off every alignment.
TEST_F(GpuScan, InTheInputsMemory) {
  const runtime::Context& context = runtime::Context::of(0);
  const runtime::ContextScope scope(context);
  for (const std::int64_t segment : {0, 37, 5000}) {
    for (const int shift : {0, 1}) {
      const TestProgram& tested = program("scan_sum_f32");
      const Computation computation = computation_of(tested, segment);
      const Kernel kernel = compile(computation, pinned(""));
      const std::int64_t elements = segment > 0 ? 2'000 * segment : 4'000'037;
      const std::vector<Column> inputs =
          make_inputs(computation.graph(), elements, Fill::whole, 11);  // sums are exact
      const DeviceArray memory(context, inputs[0].bytes(), 4 * shift);
      memory.upload(inputs[0].data());
      LaunchArgs args{.elements = elements,
                      .inputs = {{"x", static_cast<const float*>(memory.data()), elements}},
                      .outputs = {OutputBinding(static_cast<float*>(memory.data()), elements)}};
      const std::int64_t bytes = kernel.scratch_bytes(args);
      const DeviceArray scratch(context, static_cast<std::size_t>(bytes));
      if (bytes > 0) args.scratch = {scratch.data(), bytes};
      const runtime::Stream stream(context);
      args.stream = stream.handle();
      kernel.launch(args);
      runtime::synchronize(context, stream.handle());
      std::vector<float> sums(static_cast<std::size_t>(elements));
      memory.download(sums.data());
      double sum = 0;
      for (std::int64_t i = 0; i < elements; ++i) {
        if (segment > 0 && i % segment == 0) sum = 0;
        sum += codegen::double_of_bits(DType::f32, inputs[0].get(i));
        ASSERT_EQ(sums[static_cast<std::size_t>(i)], sum) << "segment " << segment << ", " << i;
      }
      EXPECT_EQ(memory.damage(), "");
      EXPECT_EQ(scratch.damage(), "");
    }
  }
}

/// Blocks take their tiles in another order every time, and see each other's folds at other times.
TEST_F(GpuScan, HasTheSameBitsEveryTime) {
  const runtime::Context& context = runtime::Context::of(0);
  const runtime::ContextScope scope(context);
  const std::vector<const char*> in_turn = {
      "look_back warps=4 depth=2 across=8 tile=0 blocks=4 bytes=8 simt",
      "look_back warps=8 depth=2 staged=1 near=3 across=16 tile=0 blocks=4 bytes=8 simt"};
  const std::vector<const char*> by_segment = {
      "look_back warps=4 depth=2 tile=0 blocks=4 bytes=8 simt",
      "look_back warps=8 depth=2 staged=1 near=3 tile=0 blocks=4 bytes=8 simt",
      "look_ahead warps=4 depth=2 stages=4 blocks=2 bytes=8 simt",
      "look_ahead warps=4 depth=2 stages=3 blocks=4 bytes=8 simt"};
  const std::vector<const char*> of_all = {
      "look_back warps=4 depth=2 heads=1 tile=0 blocks=4 bytes=8 simt",
      "look_back warps=4 depth=2 staged=2 heads=1 tile=0 blocks=4 bytes=8 simt",
      "look_back warps=4 depth=2 staged=1 heads=1 tile=0 blocks=2 bytes=8 simt"};
  const std::vector<const char*> by_lanes = {
      "look_back warps=16 depth=9 staged=5 near=1 blocked=1 tile=0 blocks=1 bytes=16 simt",
      "look_back warps=4 depth=3 staged=3 blocked=1 tile=0 blocks=4 bytes=16 simt"};
  struct Repeated {
    const char* program;
    std::int64_t segment;
    const std::vector<const char*>& plans;
  };
  for (const auto& [name, segment, plans] :
       {Repeated{"scan_sum_f16", 0, by_segment}, Repeated{"scan_sum_f16", 70'000, by_segment},
        Repeated{"scan_sum_f16", 70'001, of_all}, Repeated{"scan_sum_f16", 70'008, in_turn},
        Repeated{"running_sum_to_f16", 0, by_lanes}}) {
    const Computation computation = computation_of(program(name), segment);
    const codegen::Graph& graph = computation.graph();
    const std::int64_t elements = segment > 0 ? 50 * segment : 3'000'001;
    const std::vector<Column> inputs = make_inputs(graph, elements, Fill::normal, 5);
    for (const char* plan : plans) {
      SCOPED_TRACE(plan);
      std::vector<std::byte> first, again;
      const Kernel kernel = compile(computation, pinned(plan));
      DeviceLaunch launch(kernel, graph, inputs, {}, elements, elements);
      const runtime::Stream stream(context);
      launch.args().stream = stream.handle();
      for (int repeat = 0; repeat < 500; ++repeat) {
        kernel.launch(launch.args());
        runtime::synchronize(context, stream.handle());
        again.resize(launch.outputs()[0].bytes());
        launch.outputs()[0].download(again.data());
        if (first.empty()) first = again;
        ASSERT_EQ(std::memcmp(again.data(), first.data(), first.size()), 0) << "repeat " << repeat;
      }
      for (const DeviceArray& output : launch.outputs()) EXPECT_EQ(output.damage(), "");
    }
  }
}

}  // namespace
}  // namespace chainfold::test
