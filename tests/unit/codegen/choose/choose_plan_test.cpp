// choose_plan over the whole space of test programs, segment sizes, architectures and alignments: a
// plan always exists, is legal and keeps its promises.
#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/machine.hpp"
#include "chainfold/codegen/choose/alignment.hpp"
#include "chainfold/codegen/choose/columns.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/rows.hpp"
#include "chainfold/codegen/choose/scan_guess.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/choose/staged.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/graph/verify.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/hints.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/plan/verify.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/codegen/program/visit.hpp"
#include "chainfold/codegen/target/mma_table.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::Plan;
using codegen::PlanChoice;
using codegen::PlanRequest;
using codegen::Strategy;
using codegen::Target;
using codegen::Unit;

constexpr std::int64_t kSegments[] = {0,   1,    2,    3,     5,     6,       7,        8,   12,
                                      16,  24,   31,   32,    33,    64,      100,      255, 256,
                                      257, 1000, 4096, 65536, 65537, 1000000, 1LL << 40};

std::vector<Target> targets() {
  std::vector<Target> all{codegen::cpu_target(1), codegen::cpu_target(64),
                          codegen::cpu_target(4, "znver4"),
                          codegen::cpu_target(16, "sapphirerapids")};
  for (int arch : {75, 80, 86, 87, 89, 90, 100, 103, 120, 121})
    all.push_back(codegen::gpu_target(arch));
  return all;
}

/// What `accurate` promises for a fold, in units of 2^-24 (f64: 2^-53).
double promised(const Target& target, DType type) {
  if (type == DType::f64) return 160;
  return target.arch == 0 || target.arch >= 90 ? 16 : 32;
}

void expect_legal_plans_within_the_bound(std::span<const TestProgram> programs) {
  std::int64_t turn = 0;
  for (const TestProgram& tested : programs) {
    const Computation computation = tested.over(whole());
    const codegen::Graph& graph = computation.graph();
    for (const Target& target : targets()) {
      for (std::int64_t segment : kSegments) {
        ++turn;  // other alignments for each
        for (int alignment : {16, 8, 4, 2, 1}) {
          if (!is_taken(++turn)) continue;
          SCOPED_TRACE(fmt::format("{} on {}, segment {}, alignment {}", tested.name, target.name,
                                   segment, alignment));
          const PlanRequest request{.segment = segment, .base_alignment = alignment};
          const Plan plan = codegen::choose_plan(graph, target, request);
          ASSERT_NO_THROW(verify(plan, graph, target));
          for (std::size_t f = 0; f < plan.folds.size(); ++f) {
            ASSERT_LE(plan.folds[f].error_bound_u, promised(target, graph.folds[f].result()));
          }
          ASSERT_EQ(print(plan, graph), print(codegen::choose_plan(graph, target, request), graph));
        }
      }
    }
  }
}

TEST(ChoosePlan, FindsALegalPlanWithinTheBoundForFolds) {
  expect_legal_plans_within_the_bound(programs());
}

// Two bf16 of a lane are one word on a CPU, wherever it lies and wherever the segment ends; other
// types come one by one.
TEST(ChoosePlan, LanesOfACpuTakeTwoHalvesOfAWord) {
  const auto x = input<bf16>("x"), y = input<bf16>("y");
  const auto w = input<float>("w");
  const auto width = [](const Computation& computation, std::int64_t segment) {
    return codegen::choose_plan(computation.graph(), codegen::cpu_target(4),
                                {.segment = segment, .base_alignment = 2})
        .load_width;
  };
  const auto one = over(whole(), sum(x)), two = over(whole(), sum(x * y));
  const auto mixed = over(whole(), sum(cast<float>(x) * w));
  for (const std::int64_t segment : {0, 2, 3, 6, 37, 64, 257, 1000, 4099, 1000000}) {
    EXPECT_EQ(width(one, segment), 2) << segment;
    EXPECT_EQ(width(two, segment), 2) << segment;
    EXPECT_EQ(width(mixed, segment), 1) << segment;
  }
  EXPECT_EQ(width(one, 1), 1);
  EXPECT_EQ(width(over(whole(), sum(input<f16>("h"))), 64), 1);
  // Bytes that are summed up and no others.
  const auto b = input<std::int8_t>("b"), c = input<std::int8_t>("c");
  EXPECT_EQ(width(over(whole(), sum(b)), 64), 4);
  EXPECT_EQ(width(over(whole(), sum(b), cast<std::int8_t>(sum(c))), 1000), 4);
  EXPECT_EQ(width(over(whole(), cast<std::uint8_t>(sum(input<std::uint8_t>("u")))), 12), 4);
  EXPECT_EQ(width(over(whole(), sum(b)), 66), 4);
  EXPECT_EQ(width(over(whole(), sum(b)), 3), 1);
  EXPECT_EQ(width(over(whole(), sum(b), max(b)), 64), 1);
  EXPECT_EQ(width(over(whole(), sum(b * c)), 64), 1);
  EXPECT_EQ(width(over(whole(), sum(b, where(b > std::int8_t{3}))), 64), 1);
}

/// Lanes of a CPU that share a segment: as few empty ones and as few merges as can be, and no
/// registers that are pieced together for little.
TEST(ChoosePlan, LanesOfACpuShareSegmentsThatTakeSeveralLoads) {
  const auto plan_of = [](const Computation& computation, std::int64_t segment) {
    return codegen::choose_plan(computation.graph(), codegen::cpu_target(4), {.segment = segment});
  };
  const auto halves = over(whole(), sum(input<f16>("x")));
  struct Case {
    std::int64_t segment;
    int lanes, depth, rows;
  };
  for (const Case& c : {Case{1, 1, 1, 1}, Case{3, 4, 1, 4}, Case{8, 8, 1, 8}, Case{12, 4, 3, 4},
                        Case{24, 8, 3, 8}, Case{37, 8, 5, 8}, Case{64, 16, 4, 16},
                        Case{100, 16, 7, 8}, Case{1000, 32, 32, 1}, Case{4099, 32, 64, 1}}) {
    const Plan plan = plan_of(halves, c.segment);
    EXPECT_EQ(plan.lanes_per_segment, c.lanes) << c.segment;
    EXPECT_EQ(plan.depth, c.depth) << c.segment;
    EXPECT_EQ(plan.rows, c.rows) << c.segment;
  }
  const auto doubles = over(whole(), sum(input<double>("x")));
  EXPECT_EQ(plan_of(doubles, 24).lanes_per_segment, 8) << "a register has eight";
  const auto ordered = program("continuant_u32").over(whole());
  for (const std::int64_t segment : {12, 24, 37, 64})
    EXPECT_EQ(plan_of(ordered, segment).lanes_per_segment,
              std::min<std::int64_t>(32, std::bit_ceil(static_cast<std::uint64_t>(segment))))
        << "elements in order, segment " << segment;
}

/// Code grows with loads times what is done to an element, and compilation faster than code.
TEST(ChoosePlan, ACpusTilesAreNotTooMuchCode) {
  for (const int bits : {256, 512}) {
    const Target target = codegen::cpu_target(4, "", bits);
    for (const TestProgram& tested : programs()) {
      const codegen::Graph graph = codegen::legalize(tested.over(whole()).graph(), target);
      const std::int64_t instructions = codegen::instructions_of(graph);
      for (const std::int64_t segment : {1, 8, 31, 37, 64, 100, 255, 777, 4099, 0}) {
        SCOPED_TRACE(fmt::format("{}, segment {}, {} bits", tested.name, segment, bits));
        const Plan plan = codegen::choose_plan(graph, target, {.segment = segment});
        EXPECT_LE(std::int64_t{plan.rows} * plan.depth,
                  std::max(1, codegen::tile_loads(graph, plan.load_width)));
        if (codegen::computes_slowly(graph)) {
          EXPECT_EQ(plan.hints.non_temporal_from, 0);
        }
      }
      EXPECT_LE(instructions * codegen::tile_loads(graph, 1),
                std::max<std::int64_t>(instructions, 4096));
    }
  }
  const auto x = input<double>("x");
  const Target target = codegen::cpu_target(4);
  const auto loads_of = [&](const Computation& computation) {
    const codegen::Graph graph = codegen::legalize(computation.graph(), target);
    const Plan plan = codegen::choose_plan(graph, target, {.segment = 32});
    return plan.rows * plan.depth;
  };
  EXPECT_EQ(loads_of(over(whole(), sum(x))), 32) << "little code";
  EXPECT_LE(loads_of(over(whole(), argmax(x), argmin(x), max(x), min(x))), 8) << "much";
  EXPECT_LE(loads_of(over(whole(), logsumexp(x))), 8) << "calls";
}

/// More code than any tile may have is a tile of one load.
TEST(ChoosePlan, ExpressionsOfAnyLengthHaveAPlanOnACpu) {
  const Target target = codegen::cpu_target(4);
  const auto x = input<double>("x");
  const auto y = exp(log(exp(log(exp(log(exp(log(exp(log(x))))))))));
  const auto z = exp(log(exp(log(exp(log(exp(log(exp(log(y * y))))))))));
  for (const Computation& computation :
       std::vector<Computation>{over(whole(), sum(exp(log(exp(log(exp(log(z * z)))))))),
                                over(whole(), logsumexp(z), logsumexp(-z), argmax(z), argmin(z))}) {
    const codegen::Graph graph = codegen::legalize(computation.graph(), target);
    EXPECT_GT(codegen::instructions_of(graph), 2048);
    for (const std::int64_t segment : kSegments)
      EXPECT_NO_THROW(
          verify(codegen::choose_plan(graph, target, {.segment = segment}), graph, target))
          << segment;
  }
}

TEST(ChoosePlan, FindsALegalPlanWithinTheBoundForScans) {
  expect_legal_plans_within_the_bound(scan_programs());
}

/// Positions and counts alone need no input, and no memory is read for them.
TEST(ChoosePlan, FindsPlansForGraphsWithoutInputs) {
  constexpr Computation (*kPrograms[])(const dsl::Partition&) = {
      +[](const dsl::Partition& p) -> Computation { return over(p, cast<bf16>(count())); },
      +[](const dsl::Partition& p) -> Computation {
        return over(p, sum(index() * index()), max(index()));
      },
      +[](const dsl::Partition& p) -> Computation { return over(p, exclusive(min(index()))); },
      +[](const dsl::Partition& p) -> Computation {
        return over(p, inclusive(sum(index()), backward), count());
      },
  };
  for (const auto& program : kPrograms)
    for (const Target& target : targets())
      for (const std::int64_t segment : {0, 1, 3, 8, 37, 100, 256, 1000, 4099})
        for (const bool strided : {false, true}) {
          const Computation computation = program(segment > 0 ? segments(segment) : whole());
          const codegen::Graph& graph = computation.graph();
          if (strided && (segment == 0 || has_scans(graph))) continue;
          SCOPED_TRACE(print_expression(graph) + " on " + target.name);
          const PlanRequest request{.segment = segment, .strided = strided};
          ASSERT_NO_THROW(verify(codegen::compile_graph(graph, target, request).program));
          for (const PlanChoice& choice : codegen::plan_space(graph, target, request))
            ASSERT_TRUE(make_plan(graph, target, request, choice)) << to_text(choice);
        }
  for (const std::int64_t number : {1, 32, 100, 300}) {  // the first has no fold
    for (const auto& program : {kPrograms[0], kPrograms[1]}) {
      const Computation computation = program(columns(number));
      for (const Target& target : targets())
        for (const std::int64_t most :
             {std::int64_t{0}, codegen::size_class_of(computation.graph(), target, number, 1)})
          ASSERT_NO_THROW(verify(codegen::compile_graph(computation.graph(), target,
                                                        {.segment = number, .size_limit = most})
                                     .program))
              << number << " columns on " << target.name;
    }
  }
}

TEST(ChoosePlan, PartsAndScratchDoNotDependOnAlignment) {
  for (const char* name : {"sum_f16", "frames", "q6", "mixed_types", "sum_u8"}) {
    const Computation computation = program(name).over(whole());
    for (const Target& target : targets()) {
      for (std::int64_t segment : {0, 1000000}) {
        const Plan aligned =
            codegen::choose_plan(computation.graph(), target, {.segment = segment});
        const Plan shifted = codegen::choose_plan(computation.graph(), target,
                                                  {.segment = segment, .base_alignment = 1});
        ASSERT_EQ(aligned.strategy, Strategy::parts);
        for (std::int64_t length : {1, 1000, 999999, 123456789}) {
          EXPECT_EQ(cut_parts(aligned, length, 3).parts, cut_parts(shifted, length, 3).parts);
          EXPECT_EQ(cut_parts(aligned, length, 3).part_length,
                    cut_parts(shifted, length, 3).part_length);
        }
      }
    }
  }
}

TEST(ChoosePlan, PartsCoverASegmentWithoutAGap) {
  const Computation computation = program("sum_f16").over(whole());
  for (const Target& target : targets()) {
    const Plan plan = codegen::choose_plan(computation.graph(), target, {});
    for (std::int64_t length : {std::int64_t{0}, std::int64_t{1}, std::int64_t{4095},
                                std::int64_t{1} << 20, (std::int64_t{1} << 33) + 12345}) {
      for (std::int64_t segments : {1, 7, 100000}) {
        const codegen::PartCut cut = cut_parts(plan, length, segments);
        EXPECT_GE(cut.parts * cut.part_length, length);
        if (length > 0) {
          EXPECT_LT((cut.parts - 1) * cut.part_length, length);
        }
        EXPECT_EQ(cut.part_length % plan.parts.quantum, 0);
        if (segments == 1) {
          EXPECT_LE(cut.parts, plan.parts.wanted);
        }
      }
    }
  }
}

/// Blocks of parts come in waves, the last of which is rarely full: segments that a target cannot
/// share out evenly have a few parts more, until nine tenths of it are busy.
TEST(ChoosePlan, PartsFillTheLastWave) {
  for (const bool long_states : {false, true}) {
    const auto x = input<f16>("x");
    const Computation computation =
        long_states ? over(segments(1 << 20), variance(x)) : over(segments(1 << 20), sum(x));
    const Target gpu = codegen::gpu_target(90, 132);
    const Plan plan = codegen::choose_plan(computation.graph(), gpu, {.segment = 1 << 20});
    ASSERT_EQ(plan.strategy, Strategy::parts);
    ASSERT_EQ(plan.parts.wave * plan.warps, 16 * gpu.processors);
    Plan without = plan;
    without.parts.wave = 0;
    constexpr std::int64_t kLength = std::int64_t{1} << 24;
    int more = 0;
    for (std::int64_t segments = 1; segments < 12'000; segments += 1 + segments / 30) {
      const codegen::PartCut cut = cut_parts(plan, kLength, segments);
      const std::int64_t least = cut_parts(without, kLength, segments).parts;
      const std::int64_t waves = (cut.parts * segments + plan.parts.wave - 1) / plan.parts.wave;
      const double busy = static_cast<double>(kLength * segments) /
                          static_cast<double>(waves * plan.parts.wave * cut.part_length);
      EXPECT_GE(busy, 0.88) << segments;
      EXPECT_GE(cut.parts, least);
      if (cut.parts == least) continue;
      EXPECT_LE(cut.parts, 16);
      ++more;
    }
    // Many parts are many waves anyway.
    EXPECT_GE(more, long_states ? 6 : 0);
    EXPECT_EQ(cut_parts(plan, kLength, 1).parts, cut_parts(without, kLength, 1).parts);
    EXPECT_EQ(cut_parts(plan, kLength, 100'000).parts, 1);
    Plan pinned = plan;  // one segment has what its plan says
    pinned.parts.wanted = 3;
    EXPECT_EQ(cut_parts(pinned, kLength, 1).parts, 3);
    // Just above one wave, which would leave all but a few processors idle for as long again.
    EXPECT_GE(cut_parts(plan, kLength, plan.parts.wave + 9).parts, 4);
  }
}

TEST(ChoosePlan, ACpusPartsGrowBeforeTheyAreMany) {
  const Computation computation = program("sum_f32").over(whole());
  const Plan plan = codegen::choose_plan(computation.graph(), codegen::cpu_target(2), {});
  const std::int64_t quantum = plan.parts.quantum;
  auto parts = [&](std::int64_t quanta, std::int64_t segments) {
    return cut_parts(plan, quanta * quantum, segments).parts;
  };
  EXPECT_EQ(parts(1, 1), 1);
  EXPECT_EQ(parts(16, 1), 16);
  EXPECT_EQ(parts(31, 1), 31);  // parts of two would be as many as sixteen at the most
  EXPECT_EQ(parts(32, 1), 16);
  EXPECT_EQ(parts(64, 1), 16);
  EXPECT_EQ(parts(640, 1), 160);
  EXPECT_EQ(parts(1 << 20, 1), plan.parts.wanted);
  EXPECT_EQ(parts(64, 16), 16);  // segments share what there is to do
  EXPECT_EQ(parts(2, 16), 1);
}

TEST(ChoosePlan, ColumnsOfEveryNumberHaveAPlan) {
  for (const TestProgram& tested : programs()) {
    const Computation computation = tested.over(columns(2));
    const codegen::Graph& graph = computation.graph();
    for (const Target& target : targets()) {
      for (const std::int64_t count : {1, 3, 8, 31, 32, 33, 1000, 1024, 4099, 1 << 20}) {
        for (const bool strided : {false, true}) {
          const Plan best =
              codegen::choose_plan(graph, target, {.segment = count, .strided = strided});
          for (const int alignment : {16, 8, 4, 2, 1}) {
            SCOPED_TRACE(fmt::format("{} on {}, {} columns, alignment {}", tested.name, target.name,
                                     count, alignment));
            const PlanRequest request{
                .segment = count, .base_alignment = alignment, .strided = strided};
            const Plan plan = codegen::choose_plan(graph, target, request);
            ASSERT_EQ(plan.strategy, Strategy::columns);
            ASSERT_NO_THROW(verify(plan, graph, target));
            for (std::size_t f = 0; f < plan.folds.size(); ++f) {
              ASSERT_EQ(plan.folds[f].unit, Unit::simt);
              ASSERT_LE(plan.folds[f].error_bound_u, promised(target, graph.folds[f].result()));
            }
            // Scratch must not change with the alignment.
            for (const std::int64_t rows : {1, 1000, 123456789}) {
              const codegen::PartCut cut = cut_parts(plan, rows, 1);
              EXPECT_EQ(cut.parts, cut_parts(best, rows, 1).parts);
              EXPECT_EQ(cut.part_length, cut_parts(best, rows, 1).part_length);
              EXPECT_GE(cut.parts * cut.part_length, rows);
            }
          }
        }
      }
    }
  }
}

/// Of the GPU that the others were measured on: about 16 warps a multiprocessor, each with eight
/// loads of sixteen bytes in flight a lane, and all of them there at once; up to half as many again
/// where they have few registers. Else far more of them take their turns.
TEST(ChoosePlan, ColumnsFillTheTarget) {
  const Target target = codegen::gpu_target(90);
  constexpr std::int64_t kWarps = 16 * 132;
  for (const char* name : {"sum_f16", "sum_f32", "basics_f16"}) {
    const Computation two = program(name).over(columns(2));
    const bool light = two.graph().folds.size() == 1;
    for (std::int64_t count = 32; count < std::int64_t{1} << 23;
         count = count * 5 / 4 / 32 * 32 + 32) {
      SCOPED_TRACE(fmt::format("{} of {} columns", name, count));
      const Computation computation = program(name).over(columns(count));
      const Plan plan = codegen::choose_plan(computation.graph(), target, {.segment = count});
      EXPECT_EQ(plan.load_width * size_of(computation.graph().inputs[0].type), 16);
      EXPECT_GE(plan.depth, 8);
      const std::int64_t bands = (count + plan.columns_per_block() - 1) / plan.columns_per_block();
      const std::int64_t parts = plan.launches == 1 ? 1 : plan.parts.wanted;
      const std::int64_t warps = bands * parts * plan.warps;
      EXPECT_TRUE(warps <= (light && parts == 1 ? kWarps * 3 / 2 : kWarps) ||
                  (plan.warps >= 4 && warps > kWarps * 5 / 2))
          << warps;
      EXPECT_GE(warps, kWarps * 74 / 100);
      const bool enough = bands * 8 >= kWarps * 9 / 10;
      EXPECT_TRUE(!light || !enough || parts == 1);
    }
  }
}

/// Few rows of many columns: a block of several warps would have batches for one or two of them.
TEST(ChoosePlan, FewRowsHaveSmallBlocks) {
  const Target target = codegen::gpu_target(90);
  constexpr std::int64_t kMany = 1 << 20, kFew = 1 << 15;
  for (const char* name : {"sum_f32", "sum_f16", "variance_f32", "argmax_f32"}) {
    SCOPED_TRACE(name);
    const Computation computation = program(name).over(columns(kMany));
    const codegen::Graph& graph = computation.graph();
    const auto warps = [&](std::int64_t rows) {
      const std::int64_t most = codegen::size_class_of(graph, target, kMany, kMany * rows);
      EXPECT_TRUE(most == 0 || most >= kMany * rows) << rows;
      const Plan plan = codegen::choose_plan(graph, target, {.segment = kMany, .size_limit = most});
      EXPECT_TRUE(most == 0 || plan.launches == 1) << rows;
      return plan.warps;
    };
    EXPECT_EQ(warps(1), 1);
    EXPECT_EQ(warps(8), 1);
    EXPECT_EQ(warps(9), 2);
    EXPECT_EQ(warps(32), 2);
    EXPECT_GT(warps(33), 2);
    EXPECT_EQ(codegen::size_class_of(graph, target, kFew, kFew), 0);
    EXPECT_EQ(codegen::size_class_of(graph, codegen::cpu_target(4), kMany, kMany * 8), 0);
  }
}

/// One input has wide loads wherever it begins, between edges; several, which rarely begin alike,
/// and rows with gaps have what all pointers allow, and so have short segments.
TEST(ChoosePlan, EdgesMakeRoomForWideLoads) {
  const auto plan_of = [](const char* name, std::int64_t segment, int alignment, int arch = 90,
                          bool strided = false) {
    const Computation computation = program(name).over(segment > 0 ? segments(segment) : whole());
    const codegen::Graph& graph = computation.graph();
    const Target gpu = codegen::gpu_target(arch);
    const Plan plan = choose_plan(
        graph, gpu, {.segment = segment, .base_alignment = alignment, .strided = strided});
    EXPECT_NO_THROW(verify(plan, graph, gpu));
    return plan;
  };
  for (const int arch : {75, 90}) {
    for (const auto& [name, alignment, width] :
         {std::tuple{"sum_i8", 1, 16}, {"sum_f16", 2, 8}, {"sum_f32", 4, 4}, {"sum_f64", 8, 2}}) {
      for (const std::int64_t segment : {0, 16'384, 20'011, 1 << 20}) {
        const Plan plan = plan_of(name, segment, alignment, arch);
        const bool single = plan.strategy == Strategy::rows && segment % 2 == 1 && width == 2;
        EXPECT_EQ(plan.load_width, single ? 1 : width) << name << ", " << segment;
        EXPECT_EQ(plan.edges, !single) << name << ", " << segment;
      }
      EXPECT_FALSE(plan_of(name, 16'384, 16, arch).edges);
    }
  }
  EXPECT_EQ(plan_of("dot_f16", 16'384, 2).load_width, 1);
  EXPECT_EQ(plan_of("sum_f16", 16'384, 2, 90, true).load_width, 1);
  EXPECT_FALSE(plan_of("sum_f16", 64, 2).edges);
  // What a choice for aligned pointers holds serves no edges, nor where stages have no room.
  const Computation moments = program("variance_f16").over(segments(7136));
  const PlanRequest odd{.segment = 7136, .base_alignment = 2};
  EXPECT_EQ(choice_for_alignment(
                moments.graph(), codegen::gpu_target(90), odd,
                default_choice(moments.graph(), codegen::gpu_target(90), {.segment = 7136})),
            default_choice(moments.graph(), codegen::gpu_target(90), odd));
  const Computation computation = program("sum_i8").over(segments(16'384));
  const PlanRequest anywhere{.segment = 16'384, .base_alignment = 1};
  const Target gpu = codegen::gpu_target(90);
  const auto aligned = default_choice(computation.graph(), gpu, {.segment = 16'384});
  EXPECT_EQ(choice_for_alignment(computation.graph(), gpu, anywhere, aligned),
            default_choice(computation.graph(), gpu, anywhere));
}

/// Loads that share lines with others need them in the first-level cache; whole lines need not
/// stay.
TEST(ChoosePlan, WholeLinesAreTakenOnce) {
  struct Row {
    const char* program;
    std::int64_t segment;  ///< 0: everything
    bool takes_lines;
    int alignment = 16;
  };
  const Target gpu = codegen::gpu_target(90), cpu = codegen::cpu_target(4);
  auto expect = [&](const Row& row, const Computation& computation) {
    const codegen::Graph& graph = computation.graph();
    const PlanRequest request{.segment = row.segment, .base_alignment = row.alignment};
    EXPECT_EQ(choose_plan(graph, gpu, request).hints.evict_first, row.takes_lines)
        << row.program << ", " << row.segment << ", " << row.alignment;
    EXPECT_FALSE(choose_plan(graph, cpu, request).hints.evict_first) << row.program;
  };
  for (const Row& row : std::initializer_list<Row>{{"sum_f16", 4096, true},
                                                   {"sum_f16", 4096, true, 2},
                                                   {"dot_f16", 4096, true},
                                                   {"dot_f16", 4096, false, 2},
                                                   {"sum_f32", 0, true, 4},
                                                   {"sum_f16", 16, false},
                                                   {"sum_f16", 1, false},
                                                   {"sum_f16", 100, false},
                                                   {"sum_f16", 0, true},
                                                   {"longest_run_f32", 0, false},
                                                   {"scan_sum_f32", 0, false}})
    expect(row, program(row.program).over(row.segment > 0 ? segments(row.segment) : whole()));
  for (const Row& row : std::initializer_list<Row>{{"sum_f32", 1024, true},
                                                   {"sum_f32", 32, true},
                                                   {"sum_f32", 1000, false},
                                                   {"sum_f16", 1001, false},
                                                   {"sum_i8", 1088, false}})
    expect(row, program(row.program).over(columns(row.segment)));
  const Computation computation = program("sum_f32").over(columns(1024));
  const codegen::Graph& graph = computation.graph();
  EXPECT_FALSE(choose_plan(graph, gpu, {.segment = 1024, .strided = true}).hints.evict_first);
  for (const std::int64_t segment : {100, 128}) {  // by whole warps: strides are not staged
    const Computation rows = program("sum_f32").over(segments(segment));
    const Plan plan = choose_plan(rows.graph(), gpu, {.segment = segment, .strided = true});
    EXPECT_EQ(plan.strategy, Strategy::rows);
    EXPECT_EQ(plan.lanes_per_segment, codegen::kWarpWidth) << segment;
    EXPECT_EQ(plan.hints.evict_first, segment == 128) << segment;
  }
  // A hint may be left out, but not be given to what cannot follow it.
  Plan plan = choose_plan(graph, gpu, {.segment = 1024});
  Target without_lines = gpu;
  without_lines.evict_first_bytes = 0;
  EXPECT_NO_THROW(verify(plan, graph, gpu));
  EXPECT_THROW(verify(plan, graph, without_lines), InternalError);
  plan.hints.evict_first = false;
  EXPECT_NO_THROW(verify(plan, graph, gpu));
  EXPECT_NO_THROW(verify(plan, graph, without_lines));
}

/// Rows that begin within a sector: a warp's window of 512 bytes brings at most one sector more.
TEST(ChoosePlan, ColumnsOffASectorAreReadInWideWindows) {
  const Target target = codegen::gpu_target(90);
  for (const char* name : {"sum_f16", "sum_f32", "sum_i8", "sum_f64"}) {
    for (const std::int64_t count : {1001, 4099, 65537}) {
      const Computation computation = program(name).over(columns(count));
      const codegen::Graph& graph = computation.graph();
      const PlanRequest request{.segment = count};
      const codegen::PlanChoice narrow = narrow_columns_choice(graph, target, request);
      const Plan plan = make_plan(graph, target, request, narrow).value();
      EXPECT_EQ(plan.columns.phases, 1);
      const int bytes =
          codegen::kWarpWidth * plan.load_width * plan.rows * size_of(graph.inputs[0].type);
      EXPECT_EQ(bytes, 512) << name << ", " << count;
      EXPECT_GE(plan.depth * bytes, 2048) << name << ", " << count;
    }
  }
}

/// Rows that begin off wide loads are read by these all the same, in phases; and only those.
TEST(ChoosePlan, ColumnsOffALoadAreReadInPhases) {
  struct Row {
    const char* program;
    std::int64_t columns;
    int phases, width;
  };
  const Target target = codegen::gpu_target(90);
  for (const Row& row : std::initializer_list<Row>{{"sum_f16", 4099, 8, 8},
                                                   {"sum_f16", 1002, 4, 8},
                                                   {"sum_f16", 1004, 2, 8},
                                                   {"sum_f16", 1000, 1, 8},
                                                   {"sum_f32", 100'003, 4, 4},
                                                   {"sum_f32", 12'346, 2, 4},
                                                   {"sum_f64", 1001, 2, 2},
                                                   {"sum_i8", 4099, 8, 8},
                                                   {"sum_i8", 4098, 8, 16},
                                                   {"sum_f16", 101, 2, 2},
                                                   {"sum_f16", 37, 1, 1},
                                                   {"dot_f16", 4099, 1, 1},
                                                   {"longest_run_f32", 4099, 1, 1}}) {
    SCOPED_TRACE(fmt::format("{} of {} columns", row.program, row.columns));
    const Computation computation = program(row.program).over(columns(row.columns));
    const codegen::Graph& graph = computation.graph();
    for (const int alignment : {16, 8}) {
      const PlanRequest request{.segment = row.columns, .base_alignment = alignment};
      const Plan plan = codegen::choose_plan(graph, target, request);
      EXPECT_EQ(plan.columns.phases, row.phases);
      if (alignment == 16 || row.phases > 1) {
        EXPECT_EQ(plan.load_width, row.width);
      }
      const int bytes = plan.load_width * size_of(graph.inputs[0].type);
      if (row.phases > 1 && bytes == 16) {
        EXPECT_EQ(plan.depth * plan.rows * bytes, 128) << "a lane's bytes in flight";
        EXPECT_EQ(plan.occupancy * plan.warps, 16) << "warps a processor";
      }
      EXPECT_EQ(plan.warps % plan.columns.phases, 0);
    }
    const codegen::PlanRequest strided{.segment = row.columns, .strided = true};
    const Plan plan = codegen::choose_plan(graph, target, strided);
    if (plan.columns.phases > 1) {
      EXPECT_EQ(plan.columns.phases % plan.load_width, 0) << "strides are any";
    }
    EXPECT_FALSE(phased_columns_choice(graph, codegen::cpu_target(4), {.segment = row.columns}));
  }
}

/// A kernel keeps one choice for a segment size, made for the best alignment; pointers of any other
/// must have a plan all the same.
TEST(ChoosePlan, WhatIsChosenForTheBestAlignmentHasAPlanForEveryOther) {
  const Target target = codegen::gpu_target(90);
  int others = 0;
  for (const std::span<const TestProgram> all : {programs(), scan_programs()}) {
    for (const TestProgram& tested : all) {
      const Computation computation = tested.over(whole());
      const codegen::Graph& graph = computation.graph();
      for (const std::int64_t segment : {0, 1, 37, 100, 777, 1000, 4096, 5000, 33'000}) {
        const PlanRequest best{.segment = segment};
        std::vector<codegen::PlanChoice> choices{default_choice(graph, target, best)};
        if (has_scans(graph)) {
          for (const Strategy strategy :
               {Strategy::scan_tile, Strategy::scan_block, Strategy::look_ahead}) {
            for (const bool mma : {false, true}) {
              const auto choice = scan_choice_of(strategy, graph, target, best, mma);
              if (choice && make_plan(graph, target, best, *choice)) choices.push_back(*choice);
            }
          }
        }
        for (const codegen::PlanChoice& choice : choices) {
          for (const int alignment : {8, 4, 2, 1}) {
            const PlanRequest request{.segment = segment, .base_alignment = alignment};
            const codegen::PlanChoice now = choice_for_alignment(graph, target, request, choice);
            const auto plan = make_plan(graph, target, request, now);
            ASSERT_TRUE(plan) << fmt::format("{}, segment {}, alignment {}: {}", tested.name,
                                             segment, alignment, to_text(choice));
            ASSERT_NO_THROW(verify(*plan, graph, target));
            others += now != choice ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_GT(others, 100) << "wide loads alone serve some";
}

TEST(ChoosePlan, SegmentsNearTheEndOfTheirType) {
  for (const char* name : {"sum_f16", "scan_sum_f16", "scan_sum_f32"}) {
    const Computation computation = program(name).over(whole());
    for (const Target& target : {codegen::gpu_target(90), codegen::cpu_target(2)}) {
      for (const std::int64_t less : {0, 1, 7}) {
        const std::int64_t segment = std::numeric_limits<std::int64_t>::max() - less;
        const Plan plan = choose_plan(computation.graph(), target, {.segment = segment});
        EXPECT_NO_THROW(verify(plan, computation.graph(), target)) << name << " " << target.name;
        EXPECT_NO_THROW(compile_plan(computation.graph(), target, plan))
            << name << " " << target.name;
      }
    }
  }
}

/// Loads and stores of the same width.
Computation running_halves() { return over(whole(), cast<f16>(inclusive_sum(input<f16>("x")))); }

TEST(ChoosePlan, ScansOfFewElementsHaveTilesOfTheirOwn) {
  const Computation scan = running_halves();
  const Computation fold = program("sum_f16").over(whole());
  const Target gpu = codegen::gpu_target(90);
  auto class_of = [&](std::int64_t elements) {
    return codegen::size_class_of(scan.graph(), gpu, 0, elements);
  };
  std::vector<std::int64_t> classes;
  for (std::int64_t most = class_of(1); most > 0; most = class_of(most + 1)) {
    EXPECT_EQ(class_of(most), most);
    classes.push_back(most);
  }
  ASSERT_EQ(classes.size(), 3U);
  EXPECT_GT(classes.front(), 1 << 16);
  EXPECT_GT(classes[1], 1 << 22);
  EXPECT_GE(classes[2], 1 << 28);
  EXPECT_EQ(codegen::size_class_of(scan.graph(), gpu, 5000, 1), 0);
  EXPECT_EQ(codegen::size_class_of(fold.graph(), gpu, 5000, 1), 0);

  const Plan many = choose_plan(scan.graph(), gpu, {.segment = 0});
  EXPECT_GT(many.scan.staged_rows, 0);
  const Plan some = choose_plan(scan.graph(), gpu, {.segment = 0, .size_limit = classes[2]});
  EXPECT_FALSE(some.scan.direct);
  EXPECT_GT(some.scan.staged_rows, 0);
  EXPECT_LT(some.scan.tile, many.scan.tile);
  classes.pop_back();  // the others' tiles wait for nobody
  std::int64_t tile = some.scan.tile;
  for (std::size_t i = classes.size(); i-- > 0;) {
    const Plan small = choose_plan(scan.graph(), gpu, {.segment = 0, .size_limit = classes[i]});
    EXPECT_TRUE(small.scan.direct);
    EXPECT_EQ(small.launches, 2);
    EXPECT_LT(small.scan.tile, tile) << classes[i];
    EXPECT_LE(classes[i], 4 * small.scan.tile * gpu.processors);
    tile = small.scan.tile;
  }
  const Computation both = program("scan_both_ways_i32").over(whole());
  const Plan twice = choose_plan(both.graph(), gpu, {.segment = 0, .size_limit = classes[0]});
  EXPECT_FALSE(twice.scan.direct) << "what lies behind is not known in time";
  EXPECT_EQ(codegen::size_class_of(both.graph(), gpu, 0, classes.back() + 1), 0);
}

/// Of elements of 8 bytes a processor has its tiles all at once, in larger and larger ones.
TEST(ChoosePlan, ScansOfFewWideElementsHaveTilesThatAreThereAtOnce) {
  const Target gpu = codegen::gpu_target(90);
  for (const char* name : {"scan_sum_f64", "scan_back_out_i64"}) {
    const Computation scan = program(name).over(whole());
    const std::vector<std::int64_t> classes = codegen::element_classes(scan.graph(), gpu);
    ASSERT_GE(classes.size(), 4U);
    const std::pair<int, int> shapes[] = {{4, 8}, {8, 8}, {8, 12}, {4, 16}};
    for (std::size_t i = 0; i < std::size(shapes); ++i) {
      const Plan plan = choose_plan(scan.graph(), gpu, {.segment = 0, .size_limit = classes[i]});
      EXPECT_TRUE(plan.scan.direct) << name;
      EXPECT_EQ(std::pair(plan.warps, plan.depth), shapes[i]) << name << ", " << classes[i];
      EXPECT_LE(classes[i], plan.occupancy * gpu.processors * plan.scan.tile) << name;
    }
  }
}

/// Rows of several folds leave no registers for sixteen.
TEST(ChoosePlan, SeveralScansOfWideElementsHaveNoTilesOfManyRows) {
  const Target gpu = codegen::gpu_target(90);
  auto x = input<double>("x");
  for (const Computation& scan : {over(whole(), inclusive(variance(x))),
                                  over(whole(), inclusive_sum(x) - inclusive(max(x)))}) {
    const std::int64_t most = codegen::size_class_of(scan.graph(), gpu, 0, 2'100'000);
    const Plan plan = choose_plan(scan.graph(), gpu, {.segment = 0, .size_limit = most});
    EXPECT_FALSE(plan.scan.direct) << print(plan, scan.graph());
  }
}

TEST(ChoosePlan, ElementsThatAskForTheirSegmentsFoldHaveWideLoads) {
  auto x = input<float>("x");
  for (const std::int64_t segment : {2, 6, 24, 37, 100}) {
    const Computation share = over(segments(segment), inclusive_sum(x) / sum(x));
    const Plan plan = choose_plan(share.graph(), codegen::gpu_target(90), {.segment = segment});
    EXPECT_EQ(plan.strategy, Strategy::scan_tile) << segment;
    EXPECT_EQ(plan.load_width, segment == 2 || segment > 4 ? 4 : 2) << segment;
  }
}

/// The plan of scans of f32 on an H100, which has the widest loads.
template <class E>
Plan plan_of_wide_loads(const E& expression, std::int64_t segment) {
  const Computation scan = over(segments(segment), expression);
  const Plan plan = choose_plan(scan.graph(), codegen::gpu_target(90), {.segment = segment});
  EXPECT_EQ(plan.load_width, 4) << segment;
  return plan;
}

/// Beyond a warp's rows a block holds several segments.
TEST(ChoosePlan, BlocksOfOddSegmentsHaveWideLoadsWhateverElementsAsk) {
  auto x = input<float>("x");
  const auto expect_wide = [](const auto& expression, std::int64_t segment) {
    const Plan plan = plan_of_wide_loads(expression, segment);
    EXPECT_EQ(plan.strategy, Strategy::scan_block) << segment;
    EXPECT_EQ(plan.scan.tile_segments % 4, 0) << segment;
  };
  for (const std::int64_t segment : {333, 777, 1001, 1501}) {
    expect_wide(inclusive_sum(x) / sum(x), segment);
    expect_wide(inclusive_sum(x) + exclusive_sum(x, backward), segment);
  }
}

/// What blocks of several segments tell each other lies in shared memory.
TEST(ChoosePlan, BlocksOfManySegmentsFitSharedMemory) {
  auto x = input<std::int32_t>("x");
  const Target turing = codegen::gpu_target(75);
  codegen::PlanChoice choice{.strategy = Strategy::scan_block, .bytes = 16};
  const auto legal = [&](std::int64_t segment, int warps, int depth) {
    const Computation scan =
        over(segments(segment), inclusive_sum(x) - sum(x), exclusive_sum(x, backward) - sum(x * x));
    choice.warps = warps;
    choice.depth = depth;
    return make_plan(scan.graph(), turing, {.segment = segment}, choice).has_value();
  };
  EXPECT_TRUE(legal(333, 8, 4));
  EXPECT_TRUE(legal(5, 8, 4));
  EXPECT_FALSE(legal(5, 32, 12)) << "as sums alone they take 80 KiB of 64";
}

/// Of narrower pointers, too, a block of one segment has the loads that divide it.
TEST(ChoosePlan, BlocksOfOneSegmentHaveItsLoadsFromEveryAddress) {
  auto x = input<float>("x");
  const Computation both = over(segments(6001), inclusive_sum(x) + exclusive_sum(x, backward));
  const Plan plan =
      choose_plan(both.graph(), codegen::gpu_target(90), {.segment = 6001, .base_alignment = 8});
  EXPECT_EQ(plan.strategy, Strategy::scan_block);
  EXPECT_EQ(plan.load_width, 1);
  EXPECT_EQ(plan.scan.tile_segments, 0);
}

/// Longer ones have tiles that lie on loads, whatever positions they ask for.
TEST(ChoosePlan, LongOddSegmentsOfWhichElementsAskAreReadByWideLoads) {
  auto x = input<float>("x");
  const auto expect_wide = [](const auto& expression, std::int64_t segment) {
    EXPECT_EQ(plan_of_wide_loads(expression, segment).strategy, Strategy::propagate) << segment;
  };
  for (const std::int64_t segment : {7001, 20'001, 1'000'001}) {
    expect_wide(inclusive_sum(x) / sum(x), segment);
    expect_wide(inclusive_sum(x) / sum(x) * cast<float>(index()), segment);
    expect_wide(inclusive_sum(x) + exclusive_sum(x, backward), segment);
  }
}

/// In a block as long as registers hold what waits for the other pass.
TEST(ChoosePlan, ScansInBothDirections) {
  auto x = input<float>("x");
  const auto plan_of = [&](std::int64_t segment) {
    const auto sums = inclusive_sum(x) + exclusive_sum(x, backward);
    const Computation both = segment > 0 ? over(segments(segment), sums) : over(whole(), sums);
    return choose_plan(both.graph(), codegen::gpu_target(90), {.segment = segment});
  };
  for (const std::int64_t segment : {37, 41}) EXPECT_EQ(plan_of(segment).load_width, 4) << segment;
  for (const std::int64_t segment : {1000, 3001, 32768})
    EXPECT_EQ(plan_of(segment).strategy, Strategy::scan_block) << segment;
  for (const std::int64_t segment : {10001, 65536, 0}) {
    EXPECT_EQ(plan_of(segment).strategy, Strategy::propagate) << segment;
    EXPECT_EQ(plan_of(segment).load_width, 4) << segment;
  }
}

TEST(ChoosePlan, StatesOfManyTilesAreManyWarps) {
  auto x = input<float>("x");
  const auto plan_of = [&](std::int64_t segment, const Target& target) {
    const auto share = inclusive_sum(x) / sum(x);
    const Computation scan = segment > 0 ? over(segments(segment), share) : over(whole(), share);
    const Plan plan = choose_plan(scan.graph(), target, {.segment = segment});
    EXPECT_EQ(plan.strategy, Strategy::propagate) << segment;
    return plan;
  };
  const Target gpu = codegen::gpu_target(90);
  EXPECT_EQ(plan_of(0, gpu).scan.state_warps, 16);
  EXPECT_EQ(plan_of(0, gpu).scan.states_a_lane, 4);
  int before = 1;
  for (const std::int64_t segment : {1 << 17, 1 << 20, 1 << 23, 1 << 26}) {
    const int warps = plan_of(segment, gpu).scan.state_warps;
    EXPECT_GE(warps, before) << segment;
    before = warps;
  }
  EXPECT_EQ(before, 16);
  EXPECT_EQ(plan_of(0, codegen::cpu_target(4)).scan.state_warps, 1);
}

/// Three of look_ahead, which scans everything; the one of look_back, where there is nothing to ask
/// for, fills what a processor has for it.
TEST(ChoosePlan, TilesThatAreReadTwiceFitACoresCache) {
  const auto elements = [](const auto& sums, std::string_view processor, Strategy strategy) {
    const Plan plan =
        choose_plan(over(whole(), sums).graph(), codegen::cpu_target(16, processor), {});
    EXPECT_EQ(plan.strategy, strategy);
    return plan.scan.tile;
  };
  const auto halves = cast<f16>(inclusive_sum(input<f16>("x")));
  const auto floats = inclusive_sum(input<float>("x"));
  const auto positions = inclusive_sum(cast<float>(index()));
  for (const std::string_view any : {"sapphirerapids", "znver4", "unheard_of"}) {
    EXPECT_EQ(elements(halves, any, Strategy::look_ahead), 64 * 1024) << any;
    EXPECT_EQ(elements(floats, any, Strategy::look_ahead), 32 * 1024) << any;
    const int share = any == "sapphirerapids" ? 128 : 64;
    EXPECT_EQ(elements(positions, any, Strategy::look_back), share * 1024) << any;
  }
}

/// Tiles are of all inputs.
TEST(ChoosePlan, TilesOfSeveralInputsHaveFewerElements) {
  const auto sums = inclusive_sum(input<float>("x") * input<float>("y"));
  const Plan plan = choose_plan(over(whole(), sums).graph(), codegen::cpu_target(2), {});
  EXPECT_EQ(plan.strategy, Strategy::look_ahead);
  EXPECT_EQ(plan.scan.tile, 16 * 1024);
}

/// Folds of groups of tiles that are needed were published two rounds of all threads before.
TEST(ChoosePlan, ThreadsLookAtTheTilesOfTwoRoundsOneByOne) {
  const Computation scan = program("scan_sum_f32").over(whole());
  const auto near = [&](int threads) {
    const Plan plan = choose_plan(scan.graph(), codegen::cpu_target(threads), {});
    EXPECT_EQ(plan.blocks, threads);
    return plan.scan.window;
  };
  EXPECT_EQ(near(2), 1);
  EXPECT_EQ(near(16), 1);
  EXPECT_EQ(near(17), 2);
  EXPECT_EQ(near(64), 4);
  EXPECT_EQ(near(1000), 8);
}

/// Two halves a lane where registers are worth it, and what folds them takes words of bf16 alone.
TEST(ChoosePlan, RangesOfHalvesHaveTwoElementsALane) {
  const Target wide = codegen::cpu_target(4), narrow = codegen::cpu_target(4, "", 256);
  const auto widths = [](const auto& values, const Target& target) {
    const Plan plan = choose_plan(over(whole(), inclusive_sum(values)).graph(), target, {});
    EXPECT_FALSE(plan.scan.in_registers);
    return std::pair(plan.scan.range_width, plan.scan.range_load);
  };
  const auto f = cast<float>(input<f16>("x"));
  const auto b = cast<float>(input<bf16>("x"));
  EXPECT_EQ(widths(f, wide), std::pair(2, 1));
  EXPECT_EQ(widths(f, narrow), std::pair(1, 1));
  EXPECT_EQ(widths(b, wide), std::pair(2, 2));
  EXPECT_EQ(widths(b, narrow), std::pair(2, 2));
  EXPECT_EQ(widths(b * cast<float>(input<bf16>("y")), wide), std::pair(2, 2));
  EXPECT_EQ(widths(b * input<float>("y"), wide), std::pair(1, 1));
  EXPECT_EQ(widths(input<float>("x"), wide), std::pair(1, 1));
  EXPECT_EQ(widths(cast<std::int32_t>(input<std::int16_t>("x")), wide), std::pair(1, 1));
}

TEST(ChoosePlan, ShortSegmentsOfScansHaveRunsOfAsFewRowsAsHaveWork) {
  const Computation scan = running_halves();
  const Target gpu = codegen::gpu_target(90);
  auto shape = [&](std::int64_t segment) {
    const Plan plan = choose_plan(scan.graph(), gpu, {.segment = segment});
    EXPECT_EQ(plan.strategy, Strategy::scan_tile) << segment;
    return std::pair<int, int>(plan.warps, plan.depth);
  };
  for (const std::int64_t fills_a_row : {16, 64, 256, 24, 20})
    EXPECT_EQ(shape(fills_a_row), std::pair(4, 1)) << fills_a_row;
  for (const std::int64_t fills_two : {512, 100, 200, 96})
    EXPECT_EQ(shape(fills_two), std::pair(4, 2)) << fills_two;
  // An odd size begins on loads every eighth time, a size of 4k every second time.
  for (const std::int64_t needs_four : {33, 500})
    EXPECT_EQ(shape(needs_four), std::pair(2, 4)) << needs_four;
}

TEST(ChoosePlan, NarrowLoadsOfShortSegmentsHaveMoreRows) {
  const Computation scan = running_halves();
  const Target gpu = codegen::gpu_target(90);
  const codegen::PlanChoice best =
      codegen::default_choice(scan.graph(), gpu, PlanRequest{.segment = 16});
  for (const int alignment : {2, 4, 8}) {
    const PlanRequest request{.segment = 16, .base_alignment = alignment};
    const codegen::PlanChoice narrow =
        codegen::choice_for_alignment(scan.graph(), gpu, request, best);
    const Plan plan = codegen::make_plan(scan.graph(), gpu, request, narrow).value();
    EXPECT_EQ(plan.strategy, Strategy::scan_tile);
    EXPECT_GE(plan.depth * plan.load_width * codegen::kWarpWidth * 2, 256)
        << "bytes of a warp's run";
  }
}

TEST(ChoosePlan, FoldsOfMoreElementsHaveMoreParts) {
  const Target gpu = codegen::gpu_target(90), older = codegen::gpu_target(80);
  for (const bool is_long : {false, true}) {
    const Computation fold = program(is_long ? "variance_f32" : "sum_f16").over(whole());
    const codegen::Graph& graph = fold.graph();
    const std::vector<std::int64_t> classes = codegen::element_classes(graph, gpu);
    SCOPED_TRACE(is_long ? "variance" : "sum");
    // One block would take long to merge as many variances: they have no class of few parts.
    ASSERT_EQ(classes.size(), is_long ? 2U : 3U);
    EXPECT_EQ(codegen::element_classes(graph, older).size(), classes.size() - 1);
    EXPECT_GE(classes[0], 1 << 15);
    EXPECT_GE(classes[1], 1 << 20);
    EXPECT_EQ(codegen::size_class_of(graph, gpu, 0, classes.back() + 1), 0);

    const Plan least = choose_plan(graph, gpu, {.segment = 0, .size_limit = classes[0]});
    const Plan small = choose_plan(graph, gpu, {.segment = 0, .size_limit = classes[1]});
    const Plan many = choose_plan(graph, gpu, {.segment = 0});
    EXPECT_EQ(least.parts.cluster, gpu.cluster_blocks);
    EXPECT_EQ(small.parts.wanted * small.warps, 16 * gpu.processors);
    EXPECT_EQ(2 * small.warps, many.warps);
    EXPECT_EQ(small.depth, 8);
    if (is_long) {
      EXPECT_EQ(many.parts.wanted * many.warps, 16 * gpu.processors);
      continue;
    }
    EXPECT_GE(classes[2], 1 << 24);
    const Plan few = choose_plan(graph, gpu, {.segment = 0, .size_limit = classes[2]});
    EXPECT_EQ(few.warps, many.warps);
    EXPECT_EQ(few.parts.wanted * few.warps, 16 * gpu.processors);
    EXPECT_EQ(few.depth, 8);
    EXPECT_EQ(many.parts.wanted, codegen::kMostParts);
    EXPECT_EQ(many.depth, 16);
  }
}

/// Few segments that many would be staged of are rows where those read wide loads; whatever has one
/// plan for any number has no class.
TEST(ChoosePlan, FewSegmentsAreRows) {
  const auto x = input<f16>("x");
  const Target gpu = codegen::gpu_target(90);
  const auto strategy = [&](const Computation& fold, std::int64_t segment, std::int64_t most,
                            int alignment) {
    const PlanRequest request{.segment = segment, .base_alignment = alignment, .size_limit = most};
    return codegen::default_choice(fold.graph(), gpu, request).strategy;
  };
  for (const std::int64_t segment : {64, 100, 200, 480, 512}) {
    const Computation fold = over(segments(segment), sum(x));
    const std::int64_t most = codegen::size_class_of(fold.graph(), gpu, segment, segment);
    ASSERT_GE(most, 1 << 22) << segment;
    EXPECT_EQ(codegen::size_class_of(fold.graph(), gpu, segment, most), most);
    EXPECT_EQ(codegen::size_class_of(fold.graph(), gpu, segment, most + 1), 0);
    EXPECT_EQ(strategy(fold, segment, 0, 16), Strategy::staged) << segment;
    EXPECT_EQ(strategy(fold, segment, most, 16), Strategy::rows) << segment;
    EXPECT_EQ(strategy(fold, segment, most, 2), Strategy::staged) << "rows would read narrow loads";
  }
  // From 1 KiB on, and by half of the widest loads from nearly as much, many are rows as well, but
  // for moments and folds in order.
  for (const std::int64_t segment : {484, 500, 520, 1000}) {
    EXPECT_EQ(strategy(over(segments(segment), sum(x)), segment, 0, 16), Strategy::rows) << segment;
    EXPECT_EQ(strategy(over(segments(segment), min(x), max(x)), segment, 0, 16), Strategy::rows)
        << segment;
    for (const Computation& more : std::vector<Computation>{
             over(segments(segment), variance(x)), over(segments(segment), mean(x), variance(x))})
      EXPECT_EQ(strategy(more, segment, 0, 16), Strategy::staged) << segment;
    EXPECT_EQ(strategy(over(segments(segment), sum(x)), segment, 0, 2), Strategy::staged)
        << "rows would read narrow loads";
  }
  for (const std::int64_t segment : {1, 3, 8, 37, 500, 1000, 5000, 1 << 20}) {
    const Computation fold = over(segments(segment), sum(x));
    EXPECT_EQ(codegen::size_class_of(fold.graph(), gpu, segment, segment), 0) << segment;
  }
  const Computation scan = over(segments(64), inclusive_sum(x));
  EXPECT_EQ(codegen::size_class_of(scan.graph(), gpu, 64, 64), 0);
  const Computation sums = over(columns(64), sum(x));
  EXPECT_EQ(codegen::size_class_of(sums.graph(), gpu, 64, 64), 0);
  const Computation fold = over(segments(64), sum(x));
  EXPECT_EQ(codegen::size_class_of(fold.graph(), codegen::cpu_target(4), 64, 64), 0);
}

/// Where lanes are elements of registers, two rows are merged by patterns, if there are two.
TEST(ChoosePlan, RowsAreMergedByPatternsWhereLanesAreElementsOfRegisters) {
  const auto patterns = [](const Computation& fold, const Target& target, std::int64_t segment) {
    const Plan plan = choose_plan(fold.graph(), target, {.segment = segment});
    EXPECT_EQ(plan.strategy, Strategy::rows);
    return plan.vector_lanes && plan.rows > 1;
  };
  const Target cpu = codegen::cpu_target(4);
  const auto x = input<float>("x");
  for (const std::int64_t segment : {2, 8, 17, 64, 100})
    EXPECT_TRUE(patterns(over(segments(segment), sum(x)), cpu, segment)) << segment;
  EXPECT_TRUE(patterns(program("longest_run_f32").over(segments(64)), cpu, 64));
  for (const std::int64_t segment : {1, 4096})  // one row
    EXPECT_FALSE(patterns(over(segments(segment), sum(x)), cpu, segment)) << segment;
  const Target gpu = codegen::gpu_target(90);
  const Computation fold = over(segments(16), sum(x));
  EXPECT_FALSE(patterns(fold, gpu, 16));
  Plan wrong = choose_plan(fold.graph(), gpu, {.segment = 16});
  wrong.vector_lanes = true;
  EXPECT_THROW(verify(wrong, fold.graph(), gpu), InternalError);
}

/// Two places where a processor is known for it: not of folds in order, nor tiles of more than 8
/// KiB or loops of less than 128, nor where what is read of each in turn is not 2 KiB.
TEST(ChoosePlan, ReadsTwoPlacesInTurnWhereThatIsKnownToBeFaster) {
  const Target zen = codegen::cpu_target(2, "znver4");
  EXPECT_EQ(zen.interleaved_streams, 2);
  EXPECT_EQ(codegen::cpu_target(2, "znver3").interleaved_streams, 2);
  for (const Target& other : {codegen::cpu_target(2), codegen::cpu_target(2, "sapphirerapids"),
                              codegen::cpu_target(2, "unheard_of")})
    EXPECT_EQ(other.interleaved_streams, 1);
  const auto streams = [](const char* name, const Target& target, std::int64_t segment,
                          const char* plan = "") {
    const Computation computation = program(name).over(segment == 0 ? whole() : segments(segment));
    const codegen::Graph graph = codegen::legalize(computation.graph(), target);
    const PlanRequest request{.segment = segment};
    return *plan == '\0' ? codegen::choose_plan(graph, target, request).hints.streams
                         : make_plan(graph, target, request, codegen::parse_choice(plan))
                               .value()
                               .hints.streams;
  };
  for (const std::int64_t segment : {8, 64, 256, 1024, 2048})
    EXPECT_EQ(streams("sum_f32", zen, segment), 2) << segment;
  EXPECT_EQ(streams("sum_f32", zen, 4096), 1) << "16 KiB";
  EXPECT_EQ(streams("sum_f32", zen, 0), 2);
  EXPECT_EQ(streams("sum_bf16", zen, 0), 2);
  EXPECT_EQ(streams("sum_f16", zen, 0), 1) << "1 KiB of each";
  EXPECT_EQ(streams("sum_f64", zen, 0), 1) << "4 KiB of each";
  EXPECT_EQ(streams("sum_f32", zen, 32767, "rows warps=1 depth=32 rows=1 bytes=0 simt"), 1);
  EXPECT_EQ(streams("sum_f32", zen, 32768, "rows warps=1 depth=32 rows=1 bytes=0 simt"), 2);
  EXPECT_EQ(streams("sum_f32", codegen::cpu_target(2), 64), 1);
  EXPECT_EQ(streams("sum_f32", codegen::gpu_target(90), 64), 1);
  EXPECT_EQ(streams("longest_run_f32", zen, 64), 1) << "in order";
}

/// Where a processor is known for it and threads are many; not of what its caches hold, nor of rows
/// that lie apart, nor along a matrix's long rows of moments.
TEST(ChoosePlan, AsksAheadForWhatComesFromMemory) {
  const Target rapids = codegen::cpu_target(8, "sapphirerapids");
  const Target few = codegen::cpu_target(7, "sapphirerapids");
  EXPECT_EQ(rapids.ahead_bytes, 8192);
  EXPECT_EQ(few.ahead_bytes, 8192);
  for (const Target& other :
       {codegen::cpu_target(16), codegen::cpu_target(16, "znver4"), codegen::gpu_target(90)})
    EXPECT_EQ(other.ahead_bytes, 0);
  const auto ahead = [](const Computation& computation, const Target& target, PlanRequest request) {
    const codegen::Graph graph = codegen::legalize(computation.graph(), target);
    const Plan plan = choose_plan(graph, target, request);
    EXPECT_NO_THROW(verify(plan, graph, target));
    EXPECT_EQ(print(plan, graph).find("elements ahead") != std::string::npos,
              plan.hints.read_ahead > 0);
    return plan.hints.read_ahead;
  };
  for (const std::int64_t segment : {0, 3, 64, 777, 100000}) {
    const auto over_it = [&](const char* name) {
      return program(name).over(segment == 0 ? whole() : segments(segment));
    };
    EXPECT_EQ(ahead(over_it("sum_f16"), rapids, {.segment = segment}), 4096) << segment;
    EXPECT_EQ(ahead(over_it("variance_f64"), rapids, {.segment = segment}), 1024) << segment;
    EXPECT_EQ(ahead(over_it("sum_f16"), codegen::cpu_target(16), {.segment = segment}), 0);
    EXPECT_EQ(ahead(over_it("sum_f16"), few, {.segment = segment}), 0) << segment;
    const codegen::Graph graph = codegen::legalize(over_it("sum_f16").graph(), rapids);
    EXPECT_EQ(codegen::size_class_of(graph, few, segment, 1), 0) << segment;
    const std::int64_t near = codegen::size_class_of(graph, rapids, segment, 1);
    EXPECT_EQ(near, 64 << 20) << segment;
    EXPECT_EQ(codegen::size_class_of(graph, rapids, segment, near + 1), 0) << segment;
    EXPECT_EQ(ahead(over_it("sum_f16"), rapids, {.segment = segment, .size_limit = near}), 0);
    if (segment == 0) continue;
    EXPECT_EQ(ahead(over_it("sum_f16"), rapids, {.segment = segment, .strided = true}), 0);
  }
  const auto over_columns = [&](const char* name, std::int64_t columns) {
    return ahead(program(name).over(chainfold::columns(columns)), rapids, {.segment = columns});
  };
  EXPECT_EQ(over_columns("sum_f32", 100), 8192);
  EXPECT_EQ(over_columns("sum_f32", 2048), 8192);
  EXPECT_EQ(over_columns("sum_f32", 2049), 256) << "eight rows in turn";
  EXPECT_EQ(over_columns("variance_f32", 2048), 8192);
  EXPECT_EQ(over_columns("variance_f32", 2049), 0);
  // Matrices near enough to stay at their columns are fewer than those that are near.
  const Computation matrix = program("sum_f32").over(columns(100));
  EXPECT_EQ(codegen::element_classes(matrix.graph(), rapids),
            (std::vector<std::int64_t>{1 << 20, 32 << 20}));
  const auto strip = [&](std::int64_t most) {
    const Computation wide = program("sum_f32").over(columns(5000));
    return choose_plan(wide.graph(), rapids, {.segment = 5000, .size_limit = most}).columns.strip;
  };
  EXPECT_EQ(strip(1 << 20), 0);
  EXPECT_GT(strip(32 << 20), 0);
}

/// What loads of a program ask for: elements behind their own, where that is a constant.
struct ReadAhead {
  bool any = false;
  std::set<std::int64_t> constants;
};
ReadAhead read_ahead(const codegen::Program& program) {
  ReadAhead result;
  std::map<codegen::ValueId, std::int64_t> constants;
  for (const codegen::Launch& launch : program.launches) {
    codegen::for_each_instr(launch.body, [&](const codegen::Instr& instr) {
      if (const auto* constant = std::get_if<codegen::Const>(&instr.op))
        constants[instr.results[0]] = static_cast<std::int64_t>(constant->bits);
      const auto* load = std::get_if<codegen::Load>(&instr.op);
      if (load == nullptr || load->ahead == codegen::kNoValue) return;
      result.any = true;
      if (constants.contains(load->ahead)) result.constants.insert(constants.at(load->ahead));
    });
  }
  return result;
}

/// Of segments always; of the whole input what is read ahead is the tile that comes next.
TEST(ChoosePlan, ScansAskAheadForWhatComesFromMemory) {
  const Target many = codegen::cpu_target(8, "sapphirerapids");
  const Target few = codegen::cpu_target(2, "sapphirerapids");
  const auto plan_of = [](const char* name, const Target& target, std::int64_t segment) {
    const Computation scan = program(name).over(segment == 0 ? whole() : segments(segment));
    const codegen::Graph graph = codegen::legalize(scan.graph(), target);
    const auto compiled = codegen::compile_graph(graph, target, {.segment = segment});
    return std::pair(compiled.plan, read_ahead(compiled.program));
  };
  using Constants = std::set<std::int64_t>;
  for (const Target& target : {many, few}) {
    for (const std::int64_t segment : {3, 24, 64, 1000}) {
      const auto [plan, asked] = plan_of("scan_sum_f32", target, segment);
      EXPECT_EQ(plan.hints.read_ahead, 2048) << segment;
      EXPECT_EQ(asked.constants, Constants{2048}) << segment;
    }
    const Computation scan = program("scan_sum_f32").over(segments(100));
    EXPECT_EQ(codegen::size_class_of(scan.graph(), target, 100, 1), 0);
  }
  // Backward in a long segment, but from a short one to the next.
  EXPECT_EQ(plan_of("scan_back_out_f32", many, 50000).second.constants, Constants{-2048});
  EXPECT_EQ(plan_of("scan_back_out_f32", many, 1024).second.constants, Constants{2048});
  for (const Target& target : {many, few, codegen::cpu_target(6)}) {
    for (const char* name : {"scan_sum_f32", "scan_back_out_f32"}) {
      const auto [plan, asked] = plan_of(name, target, 0);
      EXPECT_EQ(plan.strategy, Strategy::look_ahead) << name;
      EXPECT_EQ(plan.hints.read_ahead, 0) << name;
      EXPECT_TRUE(asked.any) << name;
      EXPECT_TRUE(asked.constants.empty()) << name << ": where the next tile lies is a ticket's";
    }
  }
}

/// Tiles of whole rows where these are few, or segments short; others by themselves, on lines of
/// memory where that pays.
TEST(ChoosePlan, ACpusShortSegmentsAreScannedByTilesOfWholeRows) {
  const Target cpu = codegen::cpu_target(4), many = codegen::cpu_target(8);
  const auto x = input<f16>("x");
  const auto plan_of = [&](std::string_view name, std::int64_t segment, const Target& target) {
    const Computation scan = name == "halves" ? over(segments(segment), cast<f16>(inclusive_sum(x)))
                                              : program(std::string(name)).over(segments(segment));
    const Plan plan = choose_plan(scan.graph(), target, {.segment = segment});
    EXPECT_NO_THROW(verify(plan, scan.graph(), target));
    return plan;
  };
  for (const std::string_view name : {"scan_sum_f32", "halves", "scan_back_out_f32"}) {
    for (const std::int64_t segment : {3, 5, 7, 24, 31, 33, 40, 63}) {
      const Plan plan = plan_of(name, segment, cpu);
      EXPECT_EQ(plan.strategy, Strategy::scan_tile) << name << segment;
      EXPECT_EQ(plan.scan.tile_segments * segment, std::int64_t{32} * plan.depth)
          << name << segment;
    }
    for (const std::int64_t segment : {32, 64, 65, 96, 110, 126, 128, 200, 1000}) {
      const Plan plan = plan_of(name, segment, cpu);
      EXPECT_EQ(plan.strategy, Strategy::scan_run) << name << segment;
      const bool halves = name == "halves";
      EXPECT_EQ(plan.hints.to_lines, segment >= (halves ? 768 : 64)) << name << segment;
      // Many threads wait for memory even where they convert what they store.
      EXPECT_EQ(plan_of(name, segment, many).hints.to_lines, segment >= 64) << name << segment;
    }
  }
  for (const std::int64_t segment : {68, 100, 112}) {
    EXPECT_EQ(plan_of("halves", segment, cpu).strategy, Strategy::scan_tile) << segment;
    EXPECT_EQ(plan_of("scan_sum_f32", segment, cpu).strategy, Strategy::scan_run) << segment;
  }
  // What is merged by many operations, scanned both ways, or not stored in lines has no such tiles.
  EXPECT_LT(plan_of("scan_both_ways_i32", 31, cpu).depth, 31);
  EXPECT_LT(plan_of("scan_horner_u8", 31, cpu).depth, 31);
  EXPECT_EQ(plan_of("scan_variance_f32", 40, cpu).strategy, Strategy::scan_run);
  EXPECT_FALSE(plan_of("scan_variance_f32", 1000, cpu).hints.to_lines);
  EXPECT_LT(plan_of("scan_variance_f32", 31, cpu).depth, 31);
}

/// What takes two batches and a rest has no loop on vectors, and within the bound no states.
TEST(ChoosePlan, AFewBatchesOfVectorsAreMergedAsValues) {
  const Target cpu = codegen::cpu_target(4);
  const auto has_loop = [&](std::int64_t segment) {
    const Computation fold = over(segments(segment), sum(input<f16>("x")));
    const auto compiled = codegen::compile_graph(fold.graph(), cpu, {.segment = segment});
    EXPECT_LE(compiled.plan.folds[0].error_bound_u, 16) << segment;
    return print(compiled.program).find("for ") != std::string::npos;
  };
  for (const std::int64_t segment : {2048, 2049, 4096, 4099, 6143}) EXPECT_FALSE(has_loop(segment));
  for (const std::int64_t segment : {6144, 6147, 10000}) EXPECT_TRUE(has_loop(segment)) << segment;
}

TEST(ChoosePlan, LongSegmentsOfFewRoundsHaveSmallerBlocks) {
  const Computation fold = program("sum_f16").over(segments(1 << 15));
  const Target gpu = codegen::gpu_target(90);
  const Plan few = choose_plan(fold.graph(), gpu, {.segment = 1 << 15});
  const Plan many = choose_plan(fold.graph(), gpu, {.segment = 1 << 18});
  EXPECT_EQ(few.strategy, Strategy::parts);
  EXPECT_EQ(2 * few.warps, many.warps);
  EXPECT_EQ(cut_parts(few, 1 << 15, 1 << 12).parts, 1);
}

TEST(ChoosePlan, OfManyLongSegmentsACpusThreadsScanOneEach) {
  const Target cpu = codegen::cpu_target(6);
  constexpr std::int64_t kLong = 1 << 20;
  const auto class_of = [&](const char* name, std::int64_t segment, std::int64_t elements,
                            const Target& target) {
    return codegen::size_class_of(program(name).over(segments(segment)).graph(), target, segment,
                                  elements);
  };
  const auto strategy = [&](const char* name, std::int64_t segment, std::int64_t elements) {
    const Computation scan = program(name).over(segments(segment));
    const std::int64_t most = class_of(name, segment, elements, cpu);
    EXPECT_TRUE(most == 0 || elements <= most);
    return choose_plan(scan.graph(), cpu, {.segment = segment, .size_limit = most}).strategy;
  };
  EXPECT_EQ(strategy("scan_sum_f32", kLong, 24 * kLong), Strategy::scan_run);
  EXPECT_EQ(strategy("scan_sum_f32", kLong, 23 * kLong), Strategy::scan_run);
  EXPECT_EQ(strategy("scan_sum_f32", kLong, 1000 * kLong), Strategy::scan_run);
  // Five of six threads would wait for the one with the last of them.
  EXPECT_EQ(strategy("scan_sum_f32", kLong, 25 * kLong), Strategy::look_ahead);
  EXPECT_EQ(strategy("scan_sum_f32", kLong, 18 * kLong), Strategy::look_ahead);
  EXPECT_EQ(strategy("scan_sum_f32", kLong, 9 * kLong), Strategy::look_ahead);
  // Behind that outputs pass the caches by.
  EXPECT_EQ(strategy("scan_sum_f32", kLong, 7 * kLong), Strategy::look_back);
  EXPECT_EQ(strategy("scan_sum_f32", 1 << 18, 1 << 18), Strategy::scan_run);
  EXPECT_EQ(class_of("scan_sum_f32", 1 << 18, 1 << 18, cpu), 0);
  const Target two = codegen::cpu_target(2);
  EXPECT_EQ(class_of("scan_sum_f32", kLong, 2 * kLong, two), 0);
  EXPECT_GT(class_of("scan_sum_f32", kLong, 3 * kLong, two), 0);
  EXPECT_EQ(class_of("scan_sum_f32", kLong, kLong, codegen::cpu_target(1)), 0);
  // What no 64 bits count is any number, and what waits for all of its segment is read twice.
  EXPECT_EQ(class_of("scan_sum_f32", std::int64_t{1} << 61, std::int64_t{3} << 61, two),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(class_of("scan_share_f32", kLong, kLong, cpu), 0);
  EXPECT_EQ(strategy("scan_share_f32", kLong, 24 * kLong), Strategy::propagate);
}

TEST(ChoosePlan, ScansOfFewElementsAreOneThreadsOrHaveSmallTilesOnACpu) {
  const Computation scan = program("scan_sum_f16").over(whole());
  const Target cpu = codegen::cpu_target(6);
  const auto classes = codegen::element_classes(scan.graph(), cpu);
  ASSERT_EQ(classes.size(), 3U);
  auto planned = [&](std::int64_t most) {
    return choose_plan(scan.graph(), cpu, {.segment = 0, .size_limit = most});
  };
  const Plan alone = planned(classes[0]), few = planned(classes[1]), kept = planned(classes[2]);
  const Plan many = planned(0);
  EXPECT_EQ(alone.strategy, Strategy::scan_run);
  EXPECT_EQ(few.strategy, Strategy::look_back);
  EXPECT_EQ(kept.strategy, Strategy::look_back);
  EXPECT_EQ(many.strategy, Strategy::look_ahead);
  EXPECT_GT(kept.scan.tile, few.scan.tile);
  EXPECT_EQ(classes[1], 4 * kept.scan.tile * cpu.processors);  // then every thread has large ones
  EXPECT_EQ(classes[2], (8 << 20) - 1) << "behind it outputs pass the caches by";
  EXPECT_EQ(kept.hints.non_temporal_from, 0);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(codegen::size_class_of(scan.graph(), cpu, classes, 0, classes[i]), classes[i]);
    EXPECT_EQ(codegen::size_class_of(scan.graph(), cpu, classes, 0, classes[i] + 1),
              i < 2 ? classes[i + 1] : 0);
  }
  // Bytes always stay.
  const auto bytes = cast<std::int8_t>(inclusive(max(input<std::int8_t>("x"))));
  EXPECT_EQ(choose_plan(over(whole(), bytes).graph(), cpu, {}).strategy, Strategy::look_back);
  const Computation both = program("scan_both_ways_i32").over(whole());
  EXPECT_EQ(codegen::size_class_of(both.graph(), cpu, 0, 1), 0);
}

TEST(ChoosePlan, ACpusStripsAreEven) {
  for (const char* name : {"sum_f16", "sum_f32", "sum_f64", "arg_folds_f32"}) {
    for (const std::int64_t columns : {129, 5000, 10'007, 16'385, 33'000, 100'000, 1'000'003}) {
      const Computation fold = program(name).over(chainfold::columns(columns));
      const Plan plan = choose_plan(fold.graph(), codegen::cpu_target(6), {.segment = columns});
      const std::int64_t strips = (columns - 1) / plan.columns.strip + 1,
                         step = plan.columns_per_block();
      EXPECT_LE(plan.columns.strip * plan.state_bytes, 128 * 1024) << name << ", " << columns;
      EXPECT_LT(plan.columns.strip * strips - columns, strips * step) << name << ", " << columns;
      if (strips > 1) {
        EXPECT_GT((plan.columns.strip + 2 * step) * plan.state_bytes, 64 * 1024) << name << columns;
      }
    }
  }
}

/// Lines of eight such rows would compete for the same places of a cache.
TEST(ChoosePlan, ACpuReadsFourRowsOfTheSameSetsAtATime) {
  const auto depth = [](const char* name, std::int64_t columns, const Target& target) {
    const Computation fold = program(name).over(chainfold::columns(columns));
    return choose_plan(fold.graph(), target, {.segment = columns}).depth;
  };
  const Target cpu = codegen::cpu_target(6);
  EXPECT_EQ(depth("sum_f32", 1 << 15, cpu), 4);
  EXPECT_EQ(depth("sum_f32", 3 << 15, cpu), 4);
  EXPECT_EQ(depth("sum_f64", 1 << 14, cpu), 4);
  EXPECT_EQ(depth("dot_f32", 1 << 15, cpu), 4);
  EXPECT_EQ(depth("sum_f32", 1 << 14, cpu), 8);
  EXPECT_EQ(depth("sum_f32", 33'000, cpu), 8);
  EXPECT_EQ(depth("sum_f16", 1 << 16, cpu), 8) << "states are half of what is moved";
  EXPECT_EQ(depth("variance_f32", 1 << 15, cpu), 8);
  EXPECT_EQ(depth("sum_f32", 1 << 15, codegen::cpu_target(6, "znver4")), 8) << "rows lie apart";
}

TEST(ChoosePlan, ACpuWithNarrowVectorsHasFewerColumnsAtOnce) {
  const auto planned = [](const char* name, std::int64_t columns, int vector_bits,
                          std::int64_t most = 0) {
    const Target cpu = codegen::cpu_target(6, {}, vector_bits);
    const Computation fold = program(name).over(chainfold::columns(columns));
    const Plan plan = choose_plan(fold.graph(), cpu, {.segment = columns, .size_limit = most});
    EXPECT_NO_THROW(verify(plan, fold.graph(), cpu));
    return plan;
  };
  for (const char* name : {"sum_f16", "sum_f32", "sum_f64", "variance_f32"}) {
    EXPECT_EQ(planned(name, 1000, 512).rows, 2) << name;
    for (const int bits : {128, 256}) {
      EXPECT_EQ(planned(name, 1000, bits).rows, 1) << name << bits;
      EXPECT_EQ(planned(name, 1000, bits, 1 << 18).rows, 1) << name << bits;
      EXPECT_EQ(planned(name, 32, bits).columns.strip, 0) << name << bits;
      EXPECT_GT(planned(name, 128, bits).columns.strip, 0) << name << bits;
    }
    EXPECT_EQ(planned(name, 128, 512).columns.strip, 0) << name;
  }
  EXPECT_EQ(planned("sum_f64", 5000, 512).depth, 8);
  EXPECT_EQ(planned("sum_f64", 5000, 256).depth, 4) << "a load's states are all registers";
  EXPECT_EQ(planned("sum_f32", 5000, 256).depth, 8);
}

TEST(ChoosePlan, ACpusBlocksStayAtTheColumnsOfSmallMatrices) {
  const Target cpu = codegen::cpu_target(6);
  for (const char* name :
       {"sum_f16", "sum_bf16", "sum_f32", "sum_f64", "variance_f64", "dot_f32"}) {
    for (const std::int64_t columns : {1, 32, 100, 128, 129, 300, 1000, 1024, 5000}) {
      const Computation fold = program(name).over(chainfold::columns(columns));
      const std::int64_t most = codegen::size_class_of(fold.graph(), cpu, columns, 1);
      EXPECT_EQ(codegen::size_class_of(fold.graph(), cpu, columns, most), most);
      EXPECT_EQ(codegen::size_class_of(fold.graph(), cpu, columns, most + 1), 0);
      std::int64_t bytes = 0;
      for (const auto& input : fold.graph().inputs) bytes += size_of(input.type);
      EXPECT_GE(most * bytes, (4 << 20) - bytes);
      const Plan small = choose_plan(fold.graph(), cpu, {.segment = columns, .size_limit = most});
      const Plan large = choose_plan(fold.graph(), cpu, {.segment = columns});
      EXPECT_EQ(small.columns.strip, 0) << name << ", " << columns;
      EXPECT_EQ(large.columns.strip > 0, columns > 128 || columns == 100)
          << name << ", " << columns;
      EXPECT_EQ(small.launches, small.parts.wanted > 1 ? 2 : 1) << name << ", " << columns;
      // Wide blocks, but where narrower ones read a ninth less.
      const std::int64_t block = small.columns_per_block(), blocks = (columns + block - 1) / block;
      const std::int64_t half = std::max<std::int64_t>(1, block / 2);
      std::int64_t state = 0;
      for (const codegen::Fold& f : fold.graph().folds)
        for (const DType type : codegen::carried_fields(f)) state += size_of(type);
      // States of 32 bytes a lane, and no more than 128 columns.
      const std::int64_t widest = 32 * std::min<std::int64_t>(4, 32 / state);
      const std::int64_t halves = (columns + half - 1) / half;
      if (columns > 128) {
        EXPECT_LE(8 * blocks * block, 9 * halves * half) << name << ", " << columns;
        EXPECT_LE(block, widest) << name << ", " << columns;
        EXPECT_TRUE(block == widest ||
                    8 * ((columns + 2 * block - 1) / (2 * block)) * 2 * block > 9 * blocks * block)
            << name << ", " << columns;
      }
      // Blocks for some threads, and no second launch where there are enough of them.
      EXPECT_GE(blocks * small.parts.wanted, 5) << name << ", " << columns;
      EXPECT_TRUE(blocks * small.parts.wanted <= 8 || small.parts.wanted == 1) << columns;
    }
  }
}

// The more threads there are, the sooner they are worth waking.
TEST(ChoosePlan, AThreadScansAsMuchAloneAsTheOthersTakeToWake) {
  const Computation scan = program("scan_sum_f32").over(whole());
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  auto most_alone = [](const char* name) {
    const Computation computation = program(name).over(whole());
    return codegen::element_classes(computation.graph(), codegen::cpu_target(2)).front();
  };
  EXPECT_EQ(most_alone("scan_sum_f32"), 200 * 1024 * 20 / 4);
  // Waking takes as long whatever is scanned.
  EXPECT_LT(most_alone("scan_variance_f32"), most_alone("scan_max_f32"));
  EXPECT_LT(most_alone("scan_max_f32"), most_alone("scan_sum_f32"));
  EXPECT_LT(most_alone("scan_logsumexp_f32"), 40000);
  for (const int threads : {2, 3, 4, 8, 16, 64, 512}) {
    const Target cpu = codegen::cpu_target(threads);
    const std::int64_t alone = codegen::element_classes(scan.graph(), cpu).front();
    EXPECT_LT(alone, before) << threads;
    EXPECT_GE(alone, 200 * 1024) << threads;
    before = alone;
  }
  // A GPU's warps are many.
  const Target gpu = codegen::gpu_target(90);
  EXPECT_FALSE(make_plan(scan.graph(), gpu, {.segment = 0},
                         {.strategy = Strategy::scan_run, .warps = 1, .depth = 8}));
  // Nobody else is there.
  const Target one = codegen::cpu_target(1);
  EXPECT_TRUE(codegen::element_classes(scan.graph(), one).empty());
  EXPECT_EQ(choose_plan(scan.graph(), one, {.segment = 0}).strategy, Strategy::scan_run);
}

TEST(ChoosePlan, AllowsNoMatrixInstructionsOnRequest) {
  const Computation computation = program("sum_f16").over(whole());
  for (std::int64_t segment : {0, 8, 64, 4096}) {
    const Plan plan = codegen::choose_plan(computation.graph(), codegen::gpu_target(90),
                                           {.segment = segment, .allow_mma = false});
    EXPECT_EQ(plan.folds[0].unit, Unit::simt);
    EXPECT_FALSE(plan.promises.guard);
  }
}

TEST(ChoosePlan, GuardsWhatSharesAColumnUnlessDataIsFinite) {
  const Computation computation = program("sum_f16").over(whole());
  const Target target = codegen::gpu_target(90);
  EXPECT_TRUE(codegen::choose_plan(computation.graph(), target, {.segment = 8}).promises.guard);
  EXPECT_FALSE(codegen::choose_plan(computation.graph(), target, {.segment = 64}).promises.guard);
  EXPECT_FALSE(codegen::choose_plan(computation.graph(), target,
                                    {.nonfinite = NonFinite::assume_finite, .segment = 8})
                   .promises.guard);
}

TEST(ChoosePlan, VerifyRefusesWhatTheTargetCannot) {
  const Computation computation = program("sum_f16").over(whole());
  const codegen::Graph& graph = computation.graph();
  const Target hopper = codegen::gpu_target(90), turing = codegen::gpu_target(75);
  const Plan plan = codegen::choose_plan(graph, hopper, {.segment = 8});
  EXPECT_THROW(verify(plan, graph, turing), InternalError);
  EXPECT_THROW(verify(plan, graph, codegen::cpu_target(1)), InternalError);
  auto refused = [&](auto change) {
    Plan wrong = plan;
    change(wrong);
    EXPECT_THROW(verify(wrong, graph, hopper), InternalError);
  };
  refused([](Plan& p) { p.promises.guard = false; });
  refused([](Plan& p) { p.load_width = 16; });
  refused([](Plan& p) { p.lanes_per_segment = 3; });
  refused([](Plan& p) { p.segment = 9; });
  refused([](Plan& p) { p.segment = 0; });
  refused([](Plan& p) { p.folds.clear(); });
  refused([](Plan& p) { p.warps = 64; });
  Plan whole_plan = codegen::choose_plan(graph, hopper, {});
  whole_plan.edges = false;
  EXPECT_THROW(verify(whole_plan, graph, hopper), InternalError)
      << "the end may lie within a wide load";
}

TEST(ChoosePlan, TilesThatFoldWhatIsBeforeThemNeedSharedMemory) {
  const Computation computation = program("scan_sum_f32").over(whole());
  const PlanChoice choice =
      codegen::parse_choice("propagate warps=1 depth=8 direct=1 tile=2 bytes=16 simt");
  EXPECT_FALSE(make_plan(computation.graph(), codegen::cpu_target(4), {}, choice));
  PlanChoice without = choice;
  without.direct = 0;
  const auto plan = make_plan(computation.graph(), codegen::cpu_target(4), {}, without);
  ASSERT_TRUE(plan);
  Plan wrong = *plan;
  wrong.scan.direct = true;
  EXPECT_THROW(verify(wrong, computation.graph(), codegen::cpu_target(4)), InternalError);
}

TEST(ChoosePlan, RefusesWhatIsNotSupportedYet) {
  const Computation computation = program("sum_f16").over(whole());
  auto refuses = [&](const PlanRequest& request, const char* input) {
    try {
      codegen::choose_plan(computation.graph(), codegen::gpu_target(90), request);
      ADD_FAILURE() << "a plan was found";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_EQ(error.input(), input);
    }
  };
  refuses({.accuracy = Accuracy::exact}, "accuracy");
  refuses({.accuracy = Accuracy::reproducible}, "accuracy");
  refuses({.determinism = Determinism::gpu_to_gpu}, "determinism");
}

/// Staged segments whose results are many give those of a tile up before warps.
TEST(ChoosePlan, ManyResultsKeepTheirWarps) {
  const auto x = input<std::int16_t>("x");
  const auto wide = cast<std::int64_t>(x);
  const codegen::Target gpu = codegen::gpu_target(90);
  for (const std::int64_t segment : {3, 5, 7, 9}) {
    const Computation computation = over(segments(segment), sum(wide), max(wide), min(wide),
                                         sum(wide * wide), sum(wide + 1), max(wide * wide));
    const codegen::PlanRequest request{.segment = segment};
    const auto choice = codegen::staged_choice(computation.graph(), gpu, request);
    ASSERT_TRUE(choice.has_value()) << segment;
    EXPECT_GE(choice->warps * choice->occupancy, 16) << codegen::to_text(*choice);
  }
}

/// Late blocks, and more than are wanted of those that take one burst each, find no room beside the
/// others: shared memory keeps out one more block than is to be resident, and no other.
TEST(ChoosePlan, NoMoreStagedBlocksAreResidentThanWanted) {
  const auto x = input<f16>("x");
  const auto y = input<double>("y");
  int late = 0, bursts = 0;
  for (const int arch : {80, 86, 89, 90, 100, 120}) {
    const codegen::Target gpu = codegen::gpu_target(arch);
    for (const std::int64_t segment : {3, 7, 24, 37, 64, 100, 1000}) {
      for (const bool two : {false, true}) {
        const Computation computation = two ? Computation(over(segments(segment), sum(x), max(y)))
                                            : over(segments(segment), sum(x));
        for (const int alignment : {two ? 8 : 2, 16}) {
          const codegen::PlanRequest request{.segment = segment, .base_alignment = alignment};
          const auto choice = codegen::staged_choice(computation.graph(), gpu, request);
          if (!choice) continue;
          const Plan plan = make_plan(computation.graph(), gpu, request, *choice).value();
          const auto compiled = codegen::compile_plan(computation.graph(), gpu, plan);
          const std::int64_t bytes = shared_layout(compiled.program.launches.at(0)).bytes;
          EXPECT_LE(bytes, gpu.shared_bytes);
          EXPECT_LE(bytes, gpu.shared_of(plan.occupancy)) << codegen::to_text(*choice);
          if (plan.staged.tail_trips > 0) {
            EXPECT_GT(bytes, gpu.shared_of(plan.occupancy + 1)) << codegen::to_text(*choice);
          }
          late += plan.has_tail_blocks() ? 1 : 0;
          bursts += plan.one_batch() ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(late, 20);
  EXPECT_GT(bursts, 20);
}

/// Where results are half of what is read or more, blocks fill their stages once, and as many as
/// fit do.
TEST(ChoosePlan, ManyResultsAreStagedOnce) {
  const codegen::Target gpu = codegen::gpu_target(90);
  const auto x = input<std::int8_t>("x");
  for (const std::int64_t segment : {3, 5, 6, 7, 9, 11, 13, 14, 15}) {
    const Computation computation = over(segments(segment), sum(x));  // eight bytes each
    const codegen::PlanRequest request{.segment = segment};
    const auto choice = codegen::staged_choice(computation.graph(), gpu, request);
    ASSERT_TRUE(choice.has_value()) << segment;
    EXPECT_EQ(choice->store_batch, choice->stages) << codegen::to_text(*choice);
    EXPECT_GE(choice->occupancy * choice->warps, 16) << codegen::to_text(*choice);
    codegen::PlanChoice more = *choice;
    ++more.occupancy;
    EXPECT_TRUE(more.occupancy > 8 || !make_plan(computation.graph(), gpu, request, more))
        << codegen::to_text(*choice);
  }
  const auto y = input<f16>("y");
  const auto turns = codegen::staged_choice(over(segments(5), sum(y)).graph(), gpu, {.segment = 5});
  EXPECT_GT(turns.value().store_batch, turns.value().stages);
}

/// Pairs of words and larger elements are staged by a few bytes a lane where they are many; halves
/// are rows of small blocks.
TEST(ChoosePlan, PairsAreStoredSoon) {
  const codegen::Target gpu = codegen::gpu_target(90);
  auto plan_of = [&](const Computation& computation, std::int64_t most = 0) {
    return codegen::choose_plan(computation.graph(), gpu, {.segment = 2, .size_limit = most});
  };
  const Plan words = plan_of(over(segments(2), sum(input<float>("x"))));
  EXPECT_EQ(words.strategy, codegen::Strategy::staged);
  EXPECT_EQ(words.rows, 4);
  EXPECT_EQ(words.staged.store_batch, words.stages);
  EXPECT_EQ(plan_of(over(segments(2), max(input<double>("x")))).rows, 2);
  const Plan few = plan_of(over(segments(2), sum(input<float>("x"))), std::int64_t{1} << 20);
  EXPECT_EQ(few.strategy, codegen::Strategy::rows);
  // Pairs that no load holds are staged in any case.
  EXPECT_EQ(codegen::choose_plan(over(segments(2), sum(input<float>("x"))).graph(), gpu,
                                 {.segment = 2, .base_alignment = 4, .size_limit = 1 << 20})
                .strategy,
            codegen::Strategy::staged);
  const Plan halves = plan_of(over(segments(2), cast<bf16>(sum(input<bf16>("x")))));
  EXPECT_EQ(halves.strategy, codegen::Strategy::rows);
  EXPECT_EQ(halves.warps, 4);
  // Results twice as large as the elements, or of two inputs, are no such pairs.
  EXPECT_EQ(plan_of(over(segments(2), sum(input<f16>("x")))).warps, 8);
  EXPECT_EQ(plan_of(over(segments(2), sum(input<float>("x") * input<float>("y")))).strategy,
            codegen::Strategy::rows);
}

/// Doubles that begin anywhere come by loads of one, of long segments by pairs and their edges.
TEST(ChoosePlan, SumsOfDoublesThatBeginAnywhere) {
  const codegen::Target gpu = codegen::gpu_target(90);
  const auto x = input<double>("x");
  const auto plan_of = [&](std::int64_t segment, const Computation& computation) {
    return codegen::choose_plan(computation.graph(), gpu, {.segment = segment});
  };
  const auto sum_of = [&](std::int64_t segment) {
    return plan_of(segment, over(segments(segment), sum(x)));
  };
  EXPECT_EQ(sum_of(383).strategy, codegen::Strategy::staged);
  for (const std::int64_t segment : {385, 777, 1023, 1025, 1337, 1535, 2049, 4099, 8191}) {
    const Plan plan = sum_of(segment);
    EXPECT_EQ(plan.strategy, codegen::Strategy::rows) << segment;
    EXPECT_EQ(plan.load_width, segment < 1536 ? 1 : 2) << segment;
    EXPECT_EQ(plan.edges, segment > 1536) << segment;
    EXPECT_EQ(plan.depth, segment < 576 ? 8 : std::min<std::int64_t>(32, (segment + 31) / 32))
        << segment;
    EXPECT_EQ(plan.warps, segment < 1024 ? 2 : 4) << segment;
    EXPECT_EQ(plan.folds[0].unit == codegen::Unit::simt, segment > 1024) << segment;
  }
  // What is linear is like a sum; extremes keep their few pairs, several folds their stages.
  EXPECT_EQ(plan_of(4099, over(segments(4099), mean(x))).depth, 32);
  EXPECT_EQ(plan_of(4099, over(segments(4099), max(x))).depth, 8);
  EXPECT_TRUE(plan_of(4099, over(segments(4099), max(x))).edges);
  EXPECT_EQ(plan_of(777, over(segments(777), sum(x), max(x))).strategy, codegen::Strategy::staged);
  EXPECT_EQ(plan_of(777, over(segments(777), max(x))).strategy, codegen::Strategy::staged);
  // Filters and expressions take their time elsewhere.
  EXPECT_EQ(plan_of(777, over(segments(777), sum(x, where(x > 0)))).strategy,
            codegen::Strategy::staged);
  EXPECT_EQ(plan_of(4099, over(segments(4099), sum(exp(x)))).depth, 8);
  // Those that pairs divide need none of it.
  EXPECT_EQ(sum_of(4098).load_width, 2);
  EXPECT_FALSE(sum_of(4098).edges);
  // A tuning tries the other loads and tensor cores as well.
  const Computation computation = over(segments(4099), sum(x));
  int single = 0, products = 0;
  for (const codegen::PlanChoice& choice :
       codegen::plan_space(computation.graph(), gpu, {.segment = 4099})) {
    const bool rows = choice.strategy == codegen::Strategy::rows;
    single += rows && choice.bytes == 8 ? 1 : 0;
    products += rows && choice.mma ? 1 : 0;
  }
  EXPECT_GT(single, 0);
  EXPECT_GT(products, 0);
}

/// Segments of one fold that take many wide loads have them all, or 32 of a lane, under way.
TEST(ChoosePlan, LongRowsOfOneFoldAreDeepAndByLanes) {
  const codegen::Target gpu = codegen::gpu_target(90);
  const auto choice_of = [&](const Computation& computation, std::int64_t segment,
                             int alignment = 16) {
    return codegen::default_choice(computation.graph(), gpu,
                                   PlanRequest{.segment = segment, .base_alignment = alignment});
  };
  const auto half = input<f16>("x");
  const auto word = input<float>("x");
  const auto byte = input<std::int8_t>("x");
  const auto expect = [](const codegen::PlanChoice& choice, bool deep) {
    EXPECT_EQ(choice.strategy, codegen::Strategy::rows) << codegen::to_text(choice);
    EXPECT_EQ(choice.depth == 32, deep) << codegen::to_text(choice);
    EXPECT_EQ(choice.warps == 4, deep) << codegen::to_text(choice);
    EXPECT_EQ(choice.mma, !deep) << codegen::to_text(choice);
  };
  for (const std::int64_t kilobytes : {4, 6, 8, 32, 60}) {
    const std::int64_t words = kilobytes * 256;
    expect(choice_of(over(segments(2 * words), sum(half)), 2 * words), true);
    expect(choice_of(over(segments(words), sum(word)), words), true);
    expect(choice_of(over(segments(words), max(word)), words), true);
    expect(choice_of(over(segments(words / 2), sum(input<double>("x"))), words / 2), true);
    expect(choice_of(over(segments(4 * words), sum(byte)), 4 * words), false);
    expect(choice_of(over(segments(words), sum(word), max(word)), words), false);
    expect(choice_of(over(segments(words), sum(word, where(word > 0))), words), false);
  }
  expect(choice_of(over(segments(768), sum(word)), 768), false);
  EXPECT_EQ(choice_of(over(segments(8192), sum(half)), 8192, 8).depth, 16) << "edges";
  // A tuning tries tensor cores, too.
  const Computation sums = over(segments(4096), sum(half));
  int products = 0;
  for (const codegen::PlanChoice& choice :
       codegen::plan_space(sums.graph(), gpu, {.segment = 4096}))
    products += choice.strategy == codegen::Strategy::rows && choice.mma ? 1 : 0;
  EXPECT_GE(products, 2);
}

/// Few long segments are a block's each, in one launch, and longer ones, as long as every block has
/// a processor of its own, are shared by four or eight; more of them, or longer ones, are not.
TEST(ChoosePlan, FewLongSegmentsAreABlocksEachOrAClusters) {
  const codegen::Target gpu = codegen::gpu_target(90), old = codegen::gpu_target(80);
  const auto x = input<float>("x");
  constexpr std::int64_t kKiB = 1024 / 4;
  struct Class {
    int blocks;
    std::int64_t segments;
  };
  const auto classes_of = [&](std::int64_t segment) {
    std::vector<Class> classes;
    if (segment > 128 * kKiB) classes.push_back({8, gpu.processors / 8});
    if (segment > 256 * kKiB) classes.push_back({4, gpu.processors / 4});
    classes.push_back({1, std::min<std::int64_t>(2 * gpu.processors, (32 << 20) / segment)});
    return classes;
  };
  for (const std::int64_t segment : {32 * kKiB, 32 * kKiB + 3, 64 * kKiB, 128 * kKiB,
                                     128 * kKiB + 1, 256 * kKiB, 100'003L, 1024 * kKiB}) {
    const Computation sums = over(segments(segment), sum(x));
    const auto class_of = [&](std::int64_t elements) {
      return codegen::size_class_of(sums.graph(), gpu, segment, elements);
    };
    std::int64_t least = 1;
    for (const Class& few : classes_of(segment)) {
      SCOPED_TRACE(fmt::format("{} elements, {} blocks each", segment, few.blocks));
      const PlanRequest request{.segment = segment, .size_limit = few.segments * segment};
      EXPECT_EQ(class_of(least), request.size_limit);
      EXPECT_EQ(class_of(request.size_limit), request.size_limit);
      least = request.size_limit + 1;
      const codegen::PlanChoice choice = codegen::default_choice(sums.graph(), gpu, request);
      EXPECT_EQ(choice.strategy, codegen::Strategy::parts);
      EXPECT_EQ(choice.parts, few.blocks);
      EXPECT_EQ(choice.cluster, few.blocks > 1 ? few.blocks : 0);
      EXPECT_EQ(choice.warps, few.blocks > 1 || segment < 64 * kKiB ? 8 : 16);
      const auto plan = codegen::make_plan(sums.graph(), gpu, request, choice);
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->launches, 1);
      for (const std::int64_t count : {1, 7, 16, 33, 264})
        EXPECT_EQ(codegen::cut_parts(*plan, segment, count).parts, few.blocks) << count;
      EXPECT_GE(codegen::cut_parts(*plan, segment, few.segments).part_length * few.blocks, segment);
      // The same computation of more keeps its plan, which a tuning of few tries as well.
      const codegen::PlanChoice many =
          codegen::default_choice(sums.graph(), gpu, {.segment = segment});
      EXPECT_NE(codegen::to_text(many), codegen::to_text(choice));
      const std::vector<codegen::PlanChoice> space =
          codegen::plan_space(sums.graph(), gpu, request);
      EXPECT_TRUE(std::any_of(space.begin(), space.end(), [&](const codegen::PlanChoice& tried) {
        return codegen::to_text(tried) == codegen::to_text(many);
      })) << codegen::to_text(many);
    }
    EXPECT_EQ(class_of(least), 0) << segment;
    // Without clusters those that would share segments are parts as ever.
    const std::int64_t alone = codegen::size_class_of(sums.graph(), old, segment, segment);
    EXPECT_EQ(alone > 0, classes_of(segment).size() == 1) << segment;
    EXPECT_GT(codegen::size_class_of(sums.graph(), old, segment, 40 * segment), 0) << segment;
  }
  // Whatever number of processors a device has, and however few bytes that makes.
  for (const int processors : {1, 2, 4, 16}) {
    const codegen::Target small = codegen::gpu_target(90, processors);
    const Computation sums = over(segments(8 * 1024), sum(x));
    const std::int64_t most = codegen::size_class_of(sums.graph(), small, 8 * 1024, 1);
    EXPECT_EQ(most, 2 * processors * 8 * 1024);
    EXPECT_EQ(codegen::choose_plan(sums.graph(), small, {.segment = 8 * 1024, .size_limit = most})
                  .parts.wanted,
              1);
    const std::int64_t longer = 128 * 1024;
    const Computation shared = over(segments(longer), sum(x));
    const std::int64_t few = codegen::size_class_of(shared.graph(), small, longer, 1);
    const int blocks = processors >= 8 ? 8 : processors >= 4 ? 4 : 1;
    EXPECT_EQ(few, longer * (blocks == 1 ? 2 * processors : processors / blocks));
    EXPECT_EQ(codegen::choose_plan(shared.graph(), small, {.segment = longer, .size_limit = few})
                  .parts.wanted,
              blocks);
  }
  const auto none = [&](const Computation& computation, std::int64_t segment) {
    EXPECT_EQ(codegen::size_class_of(computation.graph(), gpu, segment, segment), 0) << segment;
  };
  none(over(segments(8 * 1024 - 1), sum(x)), 8 * 1024 - 1);
  none(over(segments(256 * 1024 + 1), sum(x)), 256 * 1024 + 1);
  none(over(segments(16 * 1024), sum(x), max(x)), 16 * 1024);
  none(over(segments(16 * 1024), sum(x, where(x > 0))), 16 * 1024);
  none(over(segments(16 * 1024), sum(exp(x))), 16 * 1024);
  none(over(segments(16 * 1024), variance(x)), 16 * 1024);
  none(over(segments(64 * 1024), sum(input<std::int8_t>("x"))), 64 * 1024);
  none(over(segments(16 * 1024), inclusive_sum(x)), 16 * 1024);
  const Computation sums = over(segments(16 * 1024), sum(x));
  EXPECT_EQ(codegen::size_class_of(sums.graph(), codegen::cpu_target(4), 16 * 1024, 1 << 20), 0);
}

/// What is tried beside staged segments of short bursts has deeper rings, too, with bursts to
/// match.
TEST(ChoosePlan, ShortBurstsHaveDeepRingsBesideThem) {
  const auto x = input<f16>("x");
  const codegen::Target gpu = codegen::gpu_target(90);
  const Computation computation = over(segments(9), sum(x));
  int deep = 0;
  for (const codegen::PlanChoice& choice :
       codegen::plan_space(computation.graph(), gpu, {.segment = 9})) {
    if (choice.strategy != codegen::Strategy::staged) continue;
    EXPECT_GE(choice.store_batch, choice.stages);
    deep += choice.stages == 4 ? 1 : 0;
  }
  EXPECT_GT(deep, 0);
}

/// Rows fold inputs as they are where results are many and no lane is idle; what has more to do, or
/// idle lanes, is staged.
TEST(ChoosePlan, SeveralFoldsOfShortSegments) {
  const auto x = input<f16>("x");
  const codegen::Target gpu = codegen::gpu_target(90);
  const auto strategy = [&](const Computation& computation, std::int64_t segment) {
    return codegen::default_choice(computation.graph(), gpu, {.segment = segment}).strategy;
  };

  for (const std::int64_t segment : {16, 32, 48, 64, 100, 128}) {
    const Computation extremes = over(segments(segment), min(x), max(x));
    const Computation filtered =
        over(segments(segment), min(x, where(x > 0)), max(x, where(x > 0)));
    const Computation squares = over(segments(segment), mean(x), mean(x * x));
    // 2 bytes an element, and 2 of a result of each fold of f16, 4 of means.
    const bool rows = segment == 16 || segment == 32;
    EXPECT_EQ(strategy(extremes, segment), rows ? Strategy::rows : Strategy::staged) << segment;
    EXPECT_EQ(strategy(filtered, segment), Strategy::staged) << segment;
    const bool many = segment == 16;  // more results than staging gathers
    EXPECT_EQ(strategy(squares, segment), many ? Strategy::rows : Strategy::staged) << segment;
  }
}

/// Moments take registers that blocks of fewer warps have.
TEST(ChoosePlan, MomentsOfLongSegmentsTakeFewWarps) {
  const auto x = input<f16>("x");
  const codegen::Target gpu = codegen::gpu_target(90);
  for (const std::int64_t segment : {4096, 16384, 32768, 65536, 1 << 20}) {
    const Computation moments = over(segments(segment), mean(x), variance(x));
    const Computation sums = over(segments(segment), sum(x));
    const auto choice = codegen::default_choice(moments.graph(), gpu, {.segment = segment});
    EXPECT_EQ(choice.warps, 4) << codegen::to_text(choice);
    const bool rows = segment < 65536;
    EXPECT_EQ(choice.strategy, rows ? codegen::Strategy::rows : codegen::Strategy::parts);
    EXPECT_EQ(codegen::default_choice(sums.graph(), gpu, {.segment = segment}).warps,
              segment < 131072 ? 4 : 8);
  }
}

TEST(ChoosePlan, TakesASegmentOfTwoInputsInOneBatchRatherThanTwo) {
  const auto x = input<f16>("x");
  const auto y = input<f16>("y");
  const auto z = input<f16>("z");
  const auto choice_of = [&](const Computation& computation, std::int64_t segment, int arch,
                             int alignment = 16) {
    return rows_choice(computation.graph(), codegen::gpu_target(arch),
                       PlanRequest{.segment = segment, .base_alignment = alignment});
  };
  const Computation product = over(whole(), dot(x, y));
  for (const int arch : {75, 80, 90}) {
    EXPECT_EQ(choice_of(product, 2048, arch).depth, 8) << "one batch";
    EXPECT_EQ(choice_of(product, 2048, arch).warps, 8);
    for (const std::int64_t segment : {2304, 4096}) {  // 9 and 16 loads of an input
      EXPECT_EQ(choice_of(product, segment, arch).depth, 16);
      EXPECT_EQ(choice_of(product, segment, arch).warps, 4);
    }
    EXPECT_EQ(choice_of(product, 4352, arch).depth, 8) << "three batches";
    EXPECT_EQ(choice_of(product, 4096, arch, 8).depth, 8) << "narrow loads, four batches";
    EXPECT_EQ(choice_of(product, 400, arch, 2).depth, 8) << "narrow loads, 13";
    EXPECT_EQ(choice_of(product, 3001, arch).depth, 8) << "edges";
    EXPECT_EQ(choice_of(product, 3001, arch).warps, 4);
    EXPECT_EQ(choice_of(over(whole(), sum(x * x)), 4096, arch).depth, 16) << "one input";
    EXPECT_EQ(choice_of(over(whole(), sum(x * x)), 4096, arch).warps, 8);
    EXPECT_EQ(choice_of(over(whole(), sum(x * y * z)), 4096, arch).depth, 8) << "three inputs";
    EXPECT_EQ(choice_of(over(whole(), dot(x, y), sum(x)), 4096, arch).depth, 8) << "two folds";
    // A merge of pairs an element holds more.
    EXPECT_EQ(choice_of(over(whole(), argmax(x * y)), 4096, arch).depth, 8);
  }
}

/// Heads are found as they are folded on GPUs; scans and CPUs want offsets.
TEST(ChoosePlan, SegmentsThatDataTell) {
  const auto x = input<float>("x");
  const auto begins = heads(input<bool>("begins"));
  const auto strategy = [](const Computation& computation, const codegen::Target& target) {
    const auto plan = codegen::choose_plan(computation.graph(), target, {});
    verify(plan, computation.graph(), target);
    return plan.strategy;
  };
  for (const int arch : {75, 90, 120}) {
    const codegen::Target gpu = codegen::gpu_target(arch);
    EXPECT_EQ(strategy(over(begins, sum(x), count()), gpu), Strategy::head_tiles);
    EXPECT_EQ(strategy(over(begins, inclusive(sum(x))), gpu), Strategy::merge_path);
    EXPECT_EQ(strategy(over(offsets("o"), sum(x)), gpu), Strategy::merge_path);
  }
  EXPECT_EQ(strategy(over(begins, sum(x)), codegen::cpu_target(2, "znver4")), Strategy::merge_path);
  // Of 300 bytes a state, as many elements a tile as shared memory holds.
  const auto plan =
      codegen::choose_plan(over(begins, sum(x), mean(x * x), variance(x), stddev(x + 1)).graph(),
                           codegen::gpu_target(90), {});
  EXPECT_EQ(plan.strategy, Strategy::head_tiles);
  EXPECT_LT(codegen::elements_a_lane(plan), 16);
}

}  // namespace
}  // namespace chainfold::test
