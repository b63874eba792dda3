// Scans on tensor cores: every strategy, type and direction against the reference, and what an
// element that is not finite leaves alone.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/target/mma_table.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/tensor_scans.hpp"

namespace chainfold::test {
namespace {

using codegen::Unit;

struct Row {
  const char* program;
  const char* plan;
  std::int64_t segment;  ///< 0: the whole
  std::int64_t count;    ///< segments, or elements of the whole
  int arch = 90;
};

codegen::Plan plan_of(const Row& row, const codegen::Graph& graph) {
  const auto plan = make_plan(graph, codegen::gpu_target(row.arch),
                              {.accuracy = Accuracy::accurate, .segment = row.segment},
                              codegen::parse_choice(row.plan));
  if (!plan) throw std::invalid_argument(row.plan);
  return *plan;
}

codegen::Plan plan_of(const Row& row) {
  return plan_of(
      row, program(row.program).over(row.segment > 0 ? segments(row.segment) : whole()).graph());
}

void check(const Row& row, Fill fill, std::uint64_t seed, int alignment = 16) {
  InterpCase what{.segment = row.segment,
                  .elements = row.segment > 0 ? row.segment * row.count : row.count,
                  .fill = fill,
                  .seed = seed,
                  .base_alignment = alignment,
                  .choice = codegen::parse_choice(row.plan)};
  const Verdict verdict =
      check_interpreted(program(row.program), codegen::gpu_target(row.arch), what);
  EXPECT_EQ(verdict.problems, "") << row.program << ", " << row.plan << ", S = " << row.segment
                                  << ", n = " << row.count << ", aligned to " << alignment;
}

const Row kRows[] = {
    // Segments within lanes, within quads, of quads, of several rows.
    {"running_sum_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 2, 700},
    {"running_sum_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 4, 300},
    {"running_sum_f16", "scan_tile warps=2 depth=1 bytes=16 mma", 8, 100},
    {"running_sum_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 16, 67},
    {"running_sum_f16", "scan_tile warps=2 depth=1 bytes=16 mma", 32, 33},
    {"running_sum_f16", "scan_tile warps=2 depth=1 bytes=16 mma", 64, 9},
    {"running_sum_f16", "scan_tile warps=2 depth=3 bytes=16 mma", 96, 9},
    {"running_sum_f16", "scan_tile warps=1 depth=1 bytes=16 mma", 256, 3},
    {"running_sum_f16", "scan_tile warps=1 depth=4 bytes=16 mma", 512, 3},
    {"running_sum_f16", "scan_tile warps=2 depth=2 bytes=8 mma", 8, 100},
    {"running_sum_f16", "scan_tile warps=2 depth=2 bytes=8 mma", 16, 67},
    {"running_sum_f16", "scan_tile warps=2 depth=3 bytes=8 mma", 48, 17},
    {"running_sum_f16", "scan_tile warps=2 depth=2 bytes=8 mma", 128, 5},
    {"running_sum_f16", "scan_tile warps=1 depth=4 bytes=8 mma", 16, 67, 75},
    {"sum_before_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 8, 67},
    {"sum_before_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 16, 67},
    {"sum_before_f16", "scan_tile warps=2 depth=3 bytes=16 mma", 96, 9},
    {"sum_behind_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 4, 67},
    {"sum_behind_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 16, 67},
    {"sum_behind_f16", "scan_tile warps=2 depth=3 bytes=8 mma", 96, 9},
    {"running_sum_back_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 32, 33},
    {"running_sum_back_f16", "scan_tile warps=2 depth=3 bytes=16 mma", 160, 9},
    {"running_sum_back_bf16", "scan_tile warps=2 depth=2 bytes=8 mma", 64, 9},
    {"running_sum_bf16", "scan_tile warps=2 depth=2 bytes=16 mma", 64, 9, 80},
    {"running_sum_to_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 64, 9},
    {"running_sum_i8", "scan_tile warps=2 depth=1 bytes=16 mma", 64, 20},
    {"running_sum_i8", "scan_tile warps=2 depth=2 bytes=16 mma", 192, 9},
    {"running_sum_back_u8", "scan_tile warps=2 depth=2 bytes=16 mma", 32, 40},
    {"sum_before_u8", "scan_tile warps=2 depth=2 bytes=4 mma", 8, 40},
    {"sum_behind_i8", "scan_tile warps=2 depth=3 bytes=4 mma", 48, 40, 75},
    {"scans_and_folds_f16", "scan_tile warps=2 depth=2 bytes=16 mma", 64, 9},
    // A block a segment, tiles that wait for each other, three launches.
    {"running_sum_f16", "scan_block warps=2 depth=2 bytes=16 mma", 1000, 3},
    {"running_sum_f16", "scan_block warps=2 depth=4 bytes=8 mma", 1000, 3, 80},
    {"running_sum_back_bf16", "scan_block warps=2 depth=2 bytes=16 mma", 1000, 2},
    {"sum_before_i8", "scan_block warps=2 depth=1 bytes=16 mma", 1008, 2},
    {"scans_and_folds_f16", "scan_block warps=2 depth=2 bytes=16 mma", 1000, 2},
    {"running_sum_f16", "look_back warps=2 depth=2 bytes=16 mma", 0, 9001},
    {"running_sum_f16", "look_back warps=1 depth=3 bytes=8 mma", 1280, 4},
    {"running_sum_f16", "look_ahead warps=2 depth=2 stages=3 blocks=1 bytes=16 mma", 0, 9001},
    {"sum_behind_bf16", "look_back warps=2 depth=2 bytes=16 mma", 0, 5003},
    {"running_sum_u8", "look_back warps=1 depth=2 bytes=16 mma", 0, 5003},
    {"sum_before_f16", "propagate warps=2 depth=2 bytes=16 mma", 0, 9001},
    {"running_sum_back_f16", "propagate warps=2 depth=1 bytes=16 mma", 0, 5003, 80},
};

TEST(TensorScan, AgreesWithTheReference) {
  std::uint64_t seed = 1;
  for (const Row& row : kRows) {
    const codegen::Plan plan = plan_of(row);
    ASSERT_EQ(plan.folds[0].unit, Unit::mma_scan) << row.program << ", " << row.plan;
    EXPECT_EQ(plan.promises.guard, plan.folds[0].error_bound_u > 0) << "integers need none";
    check(row, Fill::uniform, seed++);
    check(row, Fill::whole, seed++);
  }
}

/// What is stored is often wider than what is loaded: its accesses also follow memory's alignment.
TEST(TensorScan, AgreesWithTheReferenceInMemoryOfAnyAlignment) {
  std::uint64_t seed = 100;
  int rows = 0;
  for (const Row& row : kRows) {
    const Computation computation =
        program(row.program).over(row.segment > 0 ? segments(row.segment) : whole());
    for (const int alignment : {8, 4, 2}) {
      const auto plan = make_plan(computation.graph(), codegen::gpu_target(row.arch),
                                  {.segment = row.segment, .base_alignment = alignment},
                                  codegen::parse_choice(row.plan));
      if (!plan || plan->folds[0].unit != Unit::mma_scan) continue;
      check(row, Fill::uniform, seed++, alignment);
      ++rows;
    }
  }
  EXPECT_GT(rows, 40);
}

TEST(TensorScan, StaysWithinItsBoundOnAdversarialData) {
  for (const Row& row : kRows) {
    if (plan_of(row).folds[0].error_bound_u == 0) continue;
    check(row, Fill::adversarial, 3);
    check(row, Fill::nonfinite, 4);
  }
}

TEST(TensorScan, Nothing) {
  for (const Row& row : kRows) {
    if (row.segment != 0) continue;
    Row nothing = row;
    nothing.count = 0;
    check(nothing, Fill::whole, 6);
  }
}

/// Everything before a NaN or an infinity has the bits that it has without.
void expect_contained(const Row& row, std::int64_t elements) {
  const Computation computation =
      program(row.program).over(row.segment > 0 ? segments(row.segment) : whole());
  const codegen::Graph& graph = computation.graph();
  const codegen::Compiled compiled =
      codegen::compile_plan(graph, codegen::gpu_target(row.arch), plan_of(row, graph));
  ASSERT_EQ(compiled.plan.folds[0].unit, Unit::mma_scan);
  bool reverse = false;
  for (const codegen::Node& node : graph.nodes) reverse = reverse || node.reverse;
  const InterpCase what{.segment = row.segment, .elements = elements};
  const std::vector<Column> clean = make_inputs(graph, elements, Fill::whole, 7);
  const std::vector<Column> expected = interpret_graph(graph, compiled, clean, {}, what);
  const DType in = clean[0].type(), out = expected[0].type();
  const std::int64_t size = row.segment > 0 ? row.segment : elements;
  for (const double bad : {std::nan(""), -HUGE_VAL}) {
    for (std::int64_t at = 0; at < elements; ++at) {
      std::vector<Column> inputs = make_inputs(graph, elements, Fill::whole, 7);
      inputs[0].set(at, codegen::bits_of_double(in, bad));
      const std::vector<Column> outputs = interpret_graph(graph, compiled, inputs, {}, what);
      for (std::int64_t i = 0; i < elements; ++i) {
        const bool reached = i / size == at / size && (reverse ? i <= at : i >= at);
        if (!reached) {
          ASSERT_EQ(outputs[0].get(i), expected[0].get(i))
              << row.plan << ": " << bad << " at " << at << " changes " << i;
        } else {
          const double value = codegen::double_of_bits(out, outputs[0].get(i));
          ASSERT_TRUE(std::isnan(bad) ? std::isnan(value) : value == bad)
              << row.plan << ": " << bad << " at " << at << " gives " << value << " at " << i;
        }
      }
    }
  }
}

TEST(TensorScan, NothingBeforeANonFiniteElementAndNoOtherSegmentChanges) {
  expect_contained({"running_sum_f16", "scan_tile warps=1 depth=1 bytes=16 mma", 8, 0}, 256);
  expect_contained({"running_sum_bf16", "scan_tile warps=1 depth=1 bytes=8 mma", 16, 0}, 128);
  expect_contained({"running_sum_back_f16", "scan_tile warps=1 depth=1 bytes=16 mma", 64, 0}, 256);
  expect_contained({"running_sum_f16", "scan_tile warps=1 depth=2 bytes=8 mma", 256, 0}, 256);
  expect_contained({"running_sum_f16", "scan_block warps=2 depth=1 bytes=16 mma", 512, 0}, 512);
}

TEST(TensorScan, BoundsAreThoseOfTheInstructionsAndTheTree) {
  auto bound = [](const char* name, const char* plan, std::int64_t segment, int arch) {
    return plan_of({name, plan, segment, 0, arch}).folds[0].error_bound_u;
  };
  // One m16n8k16 errs by 15 / 2 + 2 units on sm_90, by (7 + 2) + (8 + 2) on sm_80.
  EXPECT_DOUBLE_EQ(bound("running_sum_f16", "scan_tile depth=1 bytes=16 mma", 32, 90), 9.5 + 1);
  EXPECT_DOUBLE_EQ(bound("running_sum_f16", "scan_tile depth=1 bytes=16 mma", 256, 90),
                   9.5 + 1 + 3 + 1);
  EXPECT_DOUBLE_EQ(bound("running_sum_f16", "look_back depth=2 bytes=16 mma", 0, 90),
                   9.5 + 1 + 3 + 1 + 1 + 0.25);
  EXPECT_DOUBLE_EQ(bound("running_sum_bf16", "look_back depth=2 bytes=16 mma", 0, 80),
                   19 + 1 + 4 + 2 + 0.25);
  EXPECT_EQ(bound("running_sum_i8", "look_back depth=2 bytes=16 mma", 0, 90), 0);
}

TEST(TensorScan, LanesScanWhatDoesNotFitQuads) {
  for (const auto& [name, segment] :
       {std::pair{"running_sum_f16", 100}, std::pair{"running_sum_f16", 1},
        std::pair{"running_sum_bf16", 24}}) {
    const codegen::Plan plan =
        plan_of({name, "scan_tile warps=2 depth=4 bytes=16 mma", segment, 0});
    EXPECT_EQ(plan.folds[0].unit, Unit::simt) << name << " " << segment;
  }
}

}  // namespace
}  // namespace chainfold::test
