// Every golden kernel as machine code for every architecture: it compiles, spills nothing and has
// the matrix instructions that its plan promises.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/staged.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/mma_table.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/tests/golden/golden_cases.hpp"
#include "chainfold/tests/support/cubin_reader.hpp"

namespace chainfold::test {
namespace {

using codegen::Compiled;
using codegen::FoldPlan;
using codegen::Unit;

const codegen::MmaRow& row_of(const FoldPlan& fold) {
  return codegen::mma_table()[static_cast<std::size_t>(fold.mma_row)];
}

std::size_t count(const std::vector<KernelCode>& kernels, std::string_view mnemonic) {
  std::size_t sum = 0;
  for (const KernelCode& kernel : kernels) sum += kernel.count(mnemonic);
  return sum;
}

/// Bytes of a lane that may leave its registers: 32 rows of tiles that quick folds scan are
/// measured to be worth a few.
int most_spilled(const codegen::Graph& graph, const Compiled& compiled, int arch) {
  constexpr int kRows = 32, kBytes = 256;
  const codegen::Plan& plan = compiled.plan;
  const bool scans_tiles = plan.strategy == codegen::Strategy::scan_tile && plan.depth == kRows;
  if (scans_tiles && has_quick_folds(graph)) return kBytes;
  constexpr int kFewBytes = 32;
  // Plans of other architectures hold more blocks than this one has registers for.
  if (takes_stretches(plan.strategy) &&
      plan.occupancy > codegen::default_choice(graph, codegen::gpu_target(arch), {}).occupancy)
    return kFewBytes;
  // Parts of relative sums are all at work at once, which leaves a lane 128 registers.
  const bool terms =
      std::any_of(graph.folds.begin(), graph.folds.end(),
                  [](const codegen::Fold& fold) { return fold.relative.has_value(); });
  return terms && plan.strategy == codegen::Strategy::parts ? kFewBytes : 0;
}

/// Compiles for `arch` and holds the machine code against the plan.
void expect_as_planned(const Compiled& compiled, int arch, int spilled = 0) {
  const codegen::Target target = codegen::gpu_target(arch);
  const codegen::Source source = codegen::emit(compiled.program, target);
  const runtime::Cubin cubin =
      runtime::compile_cubin(source.text, {.arch = arch, .resource_report = true});
  EXPECT_EQ(cubin_architecture(cubin.image), arch);
  ASSERT_EQ(cubin.resources.size(), compiled.program.launches.size());
  for (const runtime::KernelResources& kernel : cubin.resources) {
    EXPECT_LE(kernel.spill_store + kernel.spill_load, spilled) << kernel.name << " spills";
    EXPECT_LE(kernel.stack, spilled) << kernel.name << " uses local memory";
    EXPECT_LE(kernel.registers, 255);
  }
  const std::vector<KernelCode> kernels = read_cubin(cubin.image);
  for (const codegen::Launch& launch : compiled.program.launches) {
    const auto kernel = std::ranges::find(kernels, launch.name, &KernelCode::name);
    ASSERT_NE(kernel, kernels.end());
    EXPECT_EQ(kernel->count("ACQBULK"), launch.overlaps ? 1U : 0U) << launch.name;
    if (compiled.program.launches[0].overlaps) {
      EXPECT_EQ(kernel->global_before_wait, 0U) << "the compiler moved accesses before the wait";
    }
  }
  for (std::string_view sass : {"HMMA", "IMMA", "DMMA"}) {
    const bool promised = std::any_of(
        compiled.plan.folds.begin(), compiled.plan.folds.end(),
        [&](const FoldPlan& fold) { return fold.unit != Unit::simt && row_of(fold).sass == sass; });
    if (promised) {
      EXPECT_GT(count(kernels, sass), 0u) << "the plan promises " << sass;
    } else {
      EXPECT_EQ(count(kernels, sass), 0u) << "no fold of the plan uses " << sass;
    }
  }
}

class NvrtcGolden : public testing::TestWithParam<std::tuple<GoldenCase, int>> {};

TEST_P(NvrtcGolden, CompilesAsPlanned) {
  if (!runtime::nvrtc_available())
    GTEST_SKIP() << "NVRTC was not found, so nothing can be compiled for a GPU";
  const GoldenCase& golden = std::get<0>(GetParam());
  const int arch = std::get<1>(GetParam());
  const std::vector<int>& known = runtime::nvrtc_architectures();
  if (std::find(known.begin(), known.end(), arch) == known.end()) {
    GTEST_SKIP() << "this NVRTC does not compile for sm_" << arch;
  }
  const Computation computation = golden.computation();
  const codegen::Graph& graph = computation.graph();
  const codegen::Target target = codegen::gpu_target(arch);
  const std::optional<codegen::Plan> here = golden.plan_on(target);
  if (!here) {  // a pinned plan that needs more than this architecture has
    const codegen::Target home = golden.home();
    EXPECT_TRUE(golden.on_cpu() || !target.async_copies ||
                target.processor_shared_bytes < home.processor_shared_bytes);
    return;
  }
  const Compiled chosen = codegen::compile_plan(graph, target, *here);
  expect_as_planned(chosen, arch, most_spilled(graph, chosen, arch));
  if (golden.on_cpu()) return;

  // The golden's own plan, where this architecture has what it needs; else another was chosen.
  const codegen::Plan own = golden.plan_on(golden.home()).value();
  const bool instructions =
      std::all_of(own.folds.begin(), own.folds.end(), [&](const FoldPlan& fold) {
        return fold.unit == Unit::simt || row_of(fold).first_arch <= arch;
      });
  const bool memory = own.strategy != codegen::Strategy::staged ||
                      (target.async_copies && codegen::stages_fit(own, graph, target));
  if (instructions && memory) {
    const Compiled as_at_home = codegen::compile_plan(graph, target, own);
    const auto text = [&](const Compiled& compiled) {
      return codegen::emit(compiled.program, target).text;
    };
    if (text(as_at_home) != text(chosen))
      expect_as_planned(as_at_home, arch, most_spilled(graph, as_at_home, arch));
    return;
  }
  EXPECT_THROW(codegen::compile_plan(graph, target, own), InternalError);
  if (!memory) {
    EXPECT_NE(print(chosen.plan, graph), print(own, graph));
    return;
  }
  for (std::size_t f = 0; f < own.folds.size(); ++f) {
    if (own.folds[f].unit == Unit::simt || row_of(own.folds[f]).first_arch <= arch) continue;
    EXPECT_NE(chosen.plan.folds[f].mma_row, own.folds[f].mma_row);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, NvrtcGolden,
                         testing::Combine(testing::ValuesIn(kGoldenCases),
                                          testing::Values(75, 80, 86, 89, 90, 100, 120)),
                         [](const auto& info) {
                           return fmt::format("{}_for_sm_{}", std::get<0>(info.param).name(),
                                              std::get<1>(info.param));
                         });

/// Default plans of scans, which keep a run's rows in registers and promise blocks a processor: of
/// several folds, long states, both directions and wide elements, with text too long for a golden.
class NvrtcScans : public testing::TestWithParam<std::tuple<const char*, std::int64_t>> {};

TEST_P(NvrtcScans, SpillNothing) {
  if (!runtime::nvrtc_available())
    GTEST_SKIP() << "NVRTC was not found, so nothing can be compiled for a GPU";
  const auto [name, segment] = GetParam();
  const Computation computation = program(name).over(segment > 0 ? segments(segment) : whole());
  constexpr int kArchitectures[] = {75, 80, 86, 90, 100, 120};
  const std::vector<int>& known = runtime::nvrtc_architectures();
  // One architecture a case: their registers are alike.
  const int arch = kArchitectures[(name[std::strlen(name) - 1] + segment) % 6];
  if (std::find(known.begin(), known.end(), arch) == known.end())
    GTEST_SKIP() << "this NVRTC does not compile for sm_" << arch;
  const codegen::Graph& graph = computation.graph();
  const Compiled compiled =
      codegen::compile_graph(graph, codegen::gpu_target(arch), {.segment = segment});
  expect_as_planned(compiled, arch, most_spilled(graph, compiled, arch));
}

INSTANTIATE_TEST_SUITE_P(
    Programs, NvrtcScans,
    testing::Combine(testing::Values("scan_sum_f16", "scan_several_f16", "scan_widths",
                                     "scan_longest_run_f32", "scan_backward_i64", "scan_decay_f32",
                                     "scan_recurrence_f32", "scan_recurrence_back_f32",
                                     "scan_recurrence_f64"),
                     testing::Values(std::int64_t{0}, std::int64_t{37}, std::int64_t{1001},
                                     std::int64_t{4096}, std::int64_t{33'001})),
    [](const auto& info) {
      return fmt::format("{}_S{}", std::get<0>(info.param), std::get<1>(info.param));
    });

/// The same of the whole input, of each class of few elements: tiles of scans wait in registers for
/// the states before them, clusters that fold have many loads on their way.
class NvrtcClasses : public testing::TestWithParam<const char*> {};

TEST_P(NvrtcClasses, SpillNothing) {
  if (!runtime::nvrtc_available())
    GTEST_SKIP() << "NVRTC was not found, so nothing can be compiled for a GPU";
  const Computation computation = program(GetParam()).over(whole());
  const std::vector<int>& known = runtime::nvrtc_architectures();
  for (const int arch : {80, 90}) {
    if (std::find(known.begin(), known.end(), arch) == known.end()) continue;
    const codegen::Target target = codegen::gpu_target(arch);
    const auto classes = codegen::element_classes(computation.graph(), target);
    EXPECT_GE(classes.size(), has_scans(computation.graph()) ? 2U : arch < 90 ? 0U : 1U);
    for (const std::int64_t most : classes) {
      SCOPED_TRACE(fmt::format("sm_{}, up to {} elements", arch, most));
      expect_as_planned(
          codegen::compile_graph(computation.graph(), target, {.segment = 0, .size_limit = most}),
          arch);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, NvrtcClasses,
                         testing::Values("scan_sum_f16", "scan_sum_f32", "scan_sum_i32",
                                         "scan_sum_f64", "scan_back_out_i64", "scan_several_f16",
                                         "sum_f16", "sum_f64", "variance_f16", "basics_f32",
                                         "dot_f16", "longest_run_f32", "argmax_f32",
                                         "scan_recurrence_f32"),
                         [](const auto& info) { return std::string(info.param); });

/// Segments of one element: accesses are wide, whatever is computed of them.
class NvrtcElements : public testing::TestWithParam<const char*> {};

TEST_P(NvrtcElements, AreReadAndWrittenByWideAccesses) {
  if (!runtime::nvrtc_available())
    GTEST_SKIP() << "NVRTC was not found, so nothing can be compiled for a GPU";
  const Computation computation = program(GetParam()).over(segments(1));
  const codegen::Graph& graph = computation.graph();
  const std::vector<int>& known = runtime::nvrtc_architectures();
  for (const int arch : {75, 80, 90, 100}) {
    if (std::find(known.begin(), known.end(), arch) == known.end()) continue;
    SCOPED_TRACE(fmt::format("sm_{}", arch));
    const codegen::Target target = codegen::gpu_target(arch);
    const Compiled compiled = codegen::compile_graph(graph, target, {.segment = 1});
    ASSERT_EQ(compiled.plan.strategy, codegen::Strategy::elements);
    expect_as_planned(compiled, arch);
    int widest = 0;
    std::map<int, std::size_t> stores;
    for (const codegen::NodeId output : graph.outputs) {
      const int size = size_of(graph.node(output).type);
      ++stores[compiled.plan.load_width * size];
      widest = std::max(widest, size);
    }
    const runtime::Cubin cubin = runtime::compile_cubin(
        codegen::emit(compiled.program, target).text, {.arch = arch, .resource_report = false});
    const KernelCode code = read_cubin(cubin.image).at(0);
    const auto depth = static_cast<std::size_t>(compiled.plan.depth);
    for (const codegen::GraphInput& input : graph.inputs) {
      const int bytes = compiled.plan.load_width * size_of(input.type);
      widest = std::max(widest, size_of(input.type));
      EXPECT_GE(code.count_wide("LDG", bytes), depth) << bytes;
    }
    EXPECT_EQ(compiled.plan.load_width * widest, 16);
    for (const auto& [bytes, outputs] : stores)
      EXPECT_GE(code.count_wide("STG", bytes), outputs * depth) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, NvrtcElements,
                         testing::Values("sum_f16", "sum_bf16", "sum_f32", "sum_i8", "sum_f64",
                                         "basics_f16", "dot_f16", "variance_f16", "two_sums_f16",
                                         "filter_f16", "longest_run_f32"),
                         [](const auto& info) { return std::string(info.param); });

/// Default plans of columns: rows that are read in phases hold a window's states and loads in
/// registers, others batches, of which those of moments are the largest.
class NvrtcColumns : public testing::TestWithParam<std::tuple<const char*, std::int64_t>> {};

TEST_P(NvrtcColumns, SpillNothing) {
  if (!runtime::nvrtc_available())
    GTEST_SKIP() << "NVRTC was not found, so nothing can be compiled for a GPU";
  const auto [name, count] = GetParam();
  const Computation computation = program(name).over(columns(count));
  const std::vector<int>& known = runtime::nvrtc_architectures();
  for (const int arch : {80, 90}) {
    if (std::find(known.begin(), known.end(), arch) == known.end()) continue;
    const Compiled compiled =
        codegen::compile_graph(computation.graph(), codegen::gpu_target(arch), {.segment = count});
    EXPECT_EQ(compiled.plan.columns.phases > 1, count % 2 != 0);
    EXPECT_EQ(print(compiled.program).find(", once") != std::string::npos,
              compiled.plan.hints.evict_first);
    expect_as_planned(compiled, arch);
  }
}

constexpr auto kNameOfColumns = [](const auto& info) {
  return fmt::format("{}_C{}", std::get<0>(info.param), std::get<1>(info.param));
};
INSTANTIATE_TEST_SUITE_P(InPhases, NvrtcColumns,
                         testing::Combine(testing::Values("sum_f16", "sum_bf16", "sum_f32",
                                                          "sum_i8", "sum_f64", "variance_f16",
                                                          "variance_f32", "basics_f16",
                                                          "argmax_f32", "magnitudes_i8"),
                                          testing::Values(std::int64_t{1001}, std::int64_t{4099})),
                         kNameOfColumns);
INSTANTIATE_TEST_SUITE_P(OnLoads, NvrtcColumns,
                         testing::Combine(testing::Values("variance_f16", "variance_f32",
                                                          "basics_f16", "sum_i8", "dot_f16"),
                                          testing::Values(std::int64_t{1008}, std::int64_t{4096},
                                                          std::int64_t{100'000})),
                         kNameOfColumns);

/// The same of moments of bytes and beside other folds, whose elements and states are many.
TEST(NvrtcPhasedMoments, SpillNothing) {
  if (!runtime::nvrtc_available())
    GTEST_SKIP() << "NVRTC was not found, so nothing can be compiled for a GPU";
  const auto bytes = input<std::int8_t>("x");
  const auto halves = input<f16>("x");
  const auto check = [](const Computation& computation, const char* what) {
    const std::vector<int>& known = runtime::nvrtc_architectures();
    for (const int arch : {80, 90}) {
      if (std::find(known.begin(), known.end(), arch) == known.end()) continue;
      SCOPED_TRACE(fmt::format("{} for sm_{}", what, arch));
      const Compiled compiled =
          codegen::compile_graph(computation.graph(), codegen::gpu_target(arch), {.segment = 1003});
      EXPECT_GT(compiled.plan.columns.phases, 1);
      expect_as_planned(compiled, arch);
    }
  };
  check(over(columns(1003), variance(bytes)), "bytes");
  check(over(columns(1003), mean(halves), variance(halves), min(halves), max(halves)), "several");
  check(over(columns(1003), variance(cast<double>(halves)), mean(cast<double>(halves))), "doubles");
}

/// A lane's loads of a batch are under way together, and what lies beside the aligned ones of a
/// segment with them: a compiler that waits for one before it asks for the next costs a sixth.
TEST(NvrtcEdges, ArriveWithABatch) {
  if (!runtime::nvrtc_available())
    GTEST_SKIP() << "NVRTC was not found, so nothing can be compiled for a GPU";
  constexpr int kArch = 90;
  const auto check = [&](const Computation& computation, std::int64_t segment, const char* what) {
    const codegen::Target target = codegen::gpu_target(kArch);
    const codegen::Plan plan =
        codegen::choose_plan(computation.graph(), target, {.segment = segment});
    ASSERT_TRUE(plan.edges) << what;
    const Compiled compiled = codegen::compile_plan(computation.graph(), target, plan);
    const runtime::Cubin cubin =
        runtime::compile_cubin(codegen::emit(compiled.program, target).text, {.arch = kArch});
    const std::vector<KernelCode> kernels = read_cubin(cubin.image);
    ASSERT_EQ(kernels.size(), 1U);
    // Whole blocks and the last one have a loop and a rest each, one of them with the edges.
    // Where sums might leave the range, elements are folded once more one by one.
    std::vector<int> together = kernels[0].loads_together;
    std::erase(together, 1);
    std::string counts;
    for (const int loads : together) counts += fmt::format(" {}", loads);
    SCOPED_TRACE(fmt::format("{}, depth {}, loads{}", what, plan.depth, counts));
    ASSERT_EQ(together.size(), 4U) << what;
    for (const int loads : together) EXPECT_GE(loads, plan.depth) << what;
    EXPECT_EQ(std::accumulate(together.begin(), together.end(), 0), 2 * (2 * plan.depth + 2))
        << what;
  };
  for (const std::int64_t segment : {4099, 8195}) {
    const auto s = segments(segment);
    check(over(s, sum(input<std::int8_t>("x"))), segment, "i8");
    check(over(s, sum(input<std::uint8_t>("x"))), segment, "u8");
    check(over(s, sum(input<std::int16_t>("x"))), segment, "i16");
    check(over(s, sum(input<f16>("x"))), segment, "f16");
    check(over(s, sum(input<bf16>("x"))), segment, "bf16");
    check(over(s, sum(input<float>("x"))), segment, "f32");
  }
  check(over(segments(8195), variance(input<f16>("x"))), 8195, "moments");
}

/// Tensor cores where they are promised: a choice of SIMT everywhere would pass the tests above.
TEST(ChoosePlan, PutsSumsOnTensorCores) {
  struct Row {
    const char* program;
    std::int64_t segment;
    int arch;
    const char* sass;  // nullptr: none
  };
  const Row rows[] = {
      {"sum_f16", 64, 75, "HMMA"},   {"sum_f16", 64, 90, "HMMA"},  {"sum_f16", 8, 90, "HMMA"},
      {"sum_f16", 0, 90, nullptr},   {"sum_i8", 0, 90, "IMMA"},    {"basics_f16", 256, 80, "HMMA"},
      {"sum_bf16", 64, 75, nullptr}, {"sum_bf16", 64, 80, "HMMA"}, {"dot_f16", 64, 90, "HMMA"},
      {"norm_f16", 64, 90, "HMMA"},  {"sum_i8", 64, 75, "IMMA"},   {"sum_u8", 64, 90, "IMMA"},
      {"dot_i8", 64, 90, "IMMA"},    {"sum_f64", 64, 75, nullptr}, {"sum_f64", 64, 80, "DMMA"},
      {"dot_f64", 64, 90, "DMMA"},   {"sum_f32", 64, 90, nullptr}, {"sum_i32", 64, 90, nullptr},
      {"sum_f16", 7, 90, nullptr},
  };
  for (const Row& row : rows) {
    const Computation computation =
        program(row.program).over(row.segment > 0 ? segments(row.segment) : whole());
    const codegen::Plan plan = codegen::choose_plan(
        computation.graph(), codegen::gpu_target(row.arch), {.segment = row.segment});
    std::string_view sass;
    for (const FoldPlan& fold : plan.folds) {
      if (fold.unit != Unit::simt) sass = row_of(fold).sass;
    }
    EXPECT_EQ(sass, row.sass ? row.sass : "")
        << row.program << ", S = " << row.segment << " on sm_" << row.arch;
  }
}

}  // namespace
}  // namespace chainfold::test
