// Scans on tensor cores as machine code for sm_90: they compile, spill nothing, and have as many
// matrix instructions and exchanges as the layout promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/scan_guess.hpp"
#include "chainfold/codegen/choose/scan_heads.hpp"
#include "chainfold/codegen/choose/scan_staged.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/tests/support/cubin_reader.hpp"
#include "chainfold/tests/support/tensor_scans.hpp"

namespace chainfold::test {
namespace {

struct Code {
  std::size_t mma = 0, shuffles = 0, instructions = 0, wide_loads = 0;
  int registers = 0, spills = 0;
};

Code compiled(const char* name, std::int64_t segment, const char* plan_text,
              NonFinite nonfinite = NonFinite::ieee, Accuracy accuracy = Accuracy::accurate) {
  const Computation computation = program(name).over(segment > 0 ? segments(segment) : whole());
  const codegen::Target target = codegen::gpu_target(90);
  const auto plan = make_plan(computation.graph(), target,
                              {.accuracy = accuracy, .nonfinite = nonfinite, .segment = segment},
                              codegen::parse_choice(plan_text));
  if (!plan) throw std::invalid_argument(plan_text);
  const codegen::Compiled made = codegen::compile_plan(computation.graph(), target, *plan);
  const runtime::Cubin cubin = runtime::compile_cubin(codegen::emit(made.program, target).text,
                                                      {.arch = 90, .resource_report = true});
  Code code;
  for (const runtime::KernelResources& kernel : cubin.resources) {
    code.registers = std::max(code.registers, kernel.registers);
    code.spills += kernel.spill_store + kernel.spill_load + kernel.stack;
  }
  for (const KernelCode& kernel : read_cubin(cubin.image)) {
    code.mma += kernel.count("HMMA") + kernel.count("IMMA");
    code.shuffles += kernel.count("SHFL");
    code.wide_loads += kernel.count_wide("LDG", 16);
    code.instructions += kernel.instructions;
  }
  return code;
}

/// A kernel of scan_tile has besides its rows the code of a last tile that is not whole, which is
/// the same for all of these sizes and exchanges by itself.
TEST(TensorScanCode, HasTheInstructionsThatTheLayoutPromises) {
  if (!runtime::nvrtc_available()) GTEST_SKIP() << "NVRTC was not found";
  const char* const plan = "scan_tile warps=8 depth=1 bytes=16 mma";
  const Code lanes = compiled("running_sum_f16", 8, plan, NonFinite::assume_finite);
  EXPECT_EQ(lanes.mma, 2U) << "no half is crossed by other lanes";
  EXPECT_EQ(compiled("running_sum_f16", 4, plan, NonFinite::assume_finite).mma, 2U);
  const Code quads = compiled("running_sum_f16", 32, plan, NonFinite::assume_finite);
  EXPECT_EQ(quads.mma, 3U);
  EXPECT_EQ(quads.shuffles, lanes.shuffles) << "a quad's segment needs no exchange";
  const Code row = compiled("running_sum_f16", 256, plan, NonFinite::assume_finite);
  EXPECT_EQ(row.mma, 3U);
  EXPECT_LE(row.shuffles, lanes.shuffles + 5);
  EXPECT_GT(row.shuffles, lanes.shuffles);
  const Code guarded = compiled("running_sum_f16", 256, plan);
  EXPECT_EQ(guarded.mma, 3U);
  EXPECT_GT(guarded.shuffles, row.shuffles) << "what is not finite is redone by lanes";
  for (const Code& code : {lanes, quads, row, guarded}) EXPECT_EQ(code.spills, 0);
}

TEST(TensorScanCode, SpillsNothing) {
  if (!runtime::nvrtc_available()) GTEST_SKIP() << "NVRTC was not found";
  const Code tiles =
      compiled("running_sum_f16", 0, "look_back warps=16 depth=4 blocks=1 bytes=16 mma");
  EXPECT_EQ(tiles.mma, 2 * 4U * (1 + 3))
      << "a row's fold takes one, its scan three, and once more where everything ends";
  EXPECT_EQ(tiles.spills, 0);
  const Code staying =
      compiled("running_sum_f16", 0, "look_ahead warps=8 depth=4 stages=4 blocks=2 bytes=16 mma");
  EXPECT_GE(staying.mma, 4U + 2 * 3U) << "rows are scanned two at a time";
  EXPECT_EQ(staying.spills, 0);
  const Code bytes = compiled("running_sum_i8", 64, "scan_tile warps=8 depth=1 bytes=16 mma");
  EXPECT_EQ(bytes.mma, 5U);
  EXPECT_EQ(bytes.spills, 0);
}

/// Blocks that stay keep their elements in shared memory.
TEST(StayingScanCode, LeavesRegistersForItsBlocks) {
  if (!runtime::nvrtc_available()) GTEST_SKIP() << "NVRTC was not found";
  for (const char* name : {"scan_sum_f32", "scan_sum_f16", "scan_sum_i8"}) {
    const Computation computation = program(name).over(whole());
    const auto choice = codegen::scan_choice_of(codegen::Strategy::look_ahead, computation.graph(),
                                                codegen::gpu_target(90), {});
    ASSERT_TRUE(choice) << name;
    const Code code = compiled(name, 0, to_text(*choice).c_str());
    EXPECT_EQ(code.spills, 0) << name;
    EXPECT_LE(code.registers * choice->warps * codegen::kWarpWidth * choice->occupancy, 64 * 1024)
        << name << ", " << to_text(*choice) << ", " << code.instructions;
  }
}

/// Tiles in shared memory are scanned out of it in rounds: none of their rows is kept.
TEST(StagedScanCode, LeavesRegistersForItsBlocks) {
  if (!runtime::nvrtc_available()) GTEST_SKIP() << "NVRTC was not found";
  for (const char* name : {"running_sum_to_f16", "scan_sum_f32"}) {
    const Computation computation = program(name).over(whole());
    const auto choice =
        codegen::staged_scan_choice(computation.graph(), codegen::gpu_target(90), {});
    ASSERT_TRUE(choice) << name;
    const Code code = compiled(name, 0, to_text(*choice).c_str());
    EXPECT_EQ(code.spills, 0) << name;
    EXPECT_LE(code.registers * choice->warps * codegen::kWarpWidth * choice->occupancy, 64 * 1024)
        << name << ", " << to_text(*choice) << ", " << code.instructions;
  }
}

/// Tiles of all segments as well, though their rows have two codes, with heads and without; and
/// rows of all but the last tile come by wide loads.
TEST(HeadsScanCode, LeavesRegistersForItsBlocks) {
  if (!runtime::nvrtc_available()) GTEST_SKIP() << "NVRTC was not found";
  const Computation computation = program("scan_sum_f64").over(segments(33'001));
  const auto choice =
      codegen::heads_scan_choice(computation.graph(), codegen::gpu_target(90), {.segment = 33'001});
  ASSERT_TRUE(choice);
  const Code code = compiled("scan_sum_f64", 33'001, to_text(*choice).c_str());
  EXPECT_EQ(code.spills, 0);
  EXPECT_GE(code.wide_loads, static_cast<std::size_t>(choice->depth - choice->staged));
  EXPECT_LE(code.registers * choice->warps * codegen::kWarpWidth * choice->occupancy, 64 * 1024)
      << to_text(*choice) << ", " << code.instructions;
}

/// The defaults of long segments as well, whose last tiles have code of their own where they are
/// not whole.
TEST(AcrossScanCode, LeavesRegistersForItsBlocks) {
  if (!runtime::nvrtc_available()) GTEST_SKIP() << "NVRTC was not found";
  for (const char* name :
       {"running_sum_to_f16", "scan_sum_f32", "scan_sum_f64", "scan_variance_f32"}) {
    for (const std::int64_t segment : {1 << 24, 10'000'000}) {
      const Computation computation = program(name).over(segments(segment));
      const codegen::PlanChoice choice = codegen::default_choice(
          computation.graph(), codegen::gpu_target(90), {.segment = segment});
      const Code code = compiled(name, segment, to_text(choice).c_str());
      EXPECT_EQ(code.spills, 0) << name << " " << segment;
      EXPECT_LE(code.registers * choice.warps * codegen::kWarpWidth * choice.occupancy, 64 * 1024)
          << name << ", " << to_text(choice) << ", " << code.instructions;
    }
  }
}

TEST(TensorScanCode, PublishedScansCompile) {
  if (!runtime::nvrtc_available()) GTEST_SKIP() << "NVRTC was not found";
  struct Row {
    const char* plan;
    std::int64_t segment;
    std::size_t mma;
  };
  for (const Row& row :
       {Row{"scan16 warps=8 rows=4", 16, 8}, Row{"scan16n warps=8 chain=1", 64, 2},
        Row{"scan256 warps=8 rows=2", 256, 8}, Row{"scan256n warps=8 chain=1", 2048, 4},
        Row{"scan_block256n warps=8", 4096, 4}, Row{"scan_grid256n warps=8", 0, 4}}) {
    // The sums of the grid's three launches err by more than `accurate` has.
    const Code code = compiled("running_sum_f16", row.segment, row.plan, NonFinite::assume_finite,
                               row.segment == 0 ? Accuracy::fast : Accuracy::accurate);
    EXPECT_EQ(code.spills, 0) << row.plan;
    EXPECT_EQ(code.mma % row.mma, 0U) << row.plan << ": " << code.mma;  // loops may be unrolled
    EXPECT_GT(code.mma, 0U) << row.plan;
  }
}

}  // namespace
}  // namespace chainfold::test
