// What the goldens show: a choice of test programs, segment sizes and targets in which every
// strategy, unit and kind of fold occurs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {

struct GoldenCase {
  const char* program;
  std::int64_t segment;  ///< 0: the whole
  const char* target;
  const char* plan = "";  ///< a choice's text; empty: the default
  Accuracy accuracy = Accuracy::accurate;
  Determinism determinism = Determinism::run_to_run;
  bool columns = false;  ///< `segment` is the number of columns
  bool strided = false;  ///< strides are given at launch
  int alignment = 16;    ///< of all pointers
  /// Data tell the segments: "offsets", "pairs" of begins and ends, or "heads".
  const char* ragged = "";

  [[nodiscard]] std::string name() const {
    const std::string_view text(plan);
    return fmt::format("{}_{}{}{}_{}{}{}", program,
                       *ragged != '\0' ? ragged
                       : segment > 0   ? fmt::format("{}{}", columns ? "C" : "S", segment)
                                       : "whole",
                       strided ? "_strided" : "",
                       alignment < 16 ? fmt::format("_aligned_to_{}", alignment) : "", target,
                       text.empty() ? "" : "_", text.substr(0, text.find(' ')));
  }
  /// `target` is a parse_target() name, or a processor's, of which there are eight threads.
  [[nodiscard]] codegen::Target home() const {
    const std::string_view name(target);
    return name == "cpu" || name.starts_with("sm_") ? codegen::parse_target(name)
                                                    : codegen::cpu_target(8, name);
  }
  [[nodiscard]] bool on_cpu() const { return home().backend == codegen::Backend::llvm; }
  /// The plan for a target; none where the pinned one is not legal there.
  [[nodiscard]] std::optional<codegen::Plan> plan_on(const codegen::Target& machine) const {
    const Computation test = computation();
    const codegen::PlanRequest request{.accuracy = accuracy,
                                       .determinism = determinism,
                                       .segment = segment,
                                       .base_alignment = alignment,
                                       .strided = strided};
    const codegen::Graph graph = codegen::legalize(test.graph(), machine);
    if (*plan == '\0') return codegen::choose_plan(graph, machine, request);
    return codegen::make_plan(graph, machine, request, codegen::parse_choice(plan));
  }
  [[nodiscard]] Computation computation() const {
    const std::string_view told = ragged;
    if (told == "offsets") return test::program(program).over(offsets("offsets"));
    if (told == "pairs") return test::program(program).over(offsets<std::int32_t>("from", "to"));
    if (told == "heads")
      return test::program(program).over(heads(input<bool>("b") || lag(input<bool>("b"), 1, true)));
    return test::program(program).over(columns       ? chainfold::columns(segment)
                                       : segment > 0 ? segments(segment)
                                                     : whole());
  }
};

inline constexpr GoldenCase kGoldenCases[] = {
    // Sums on tensor cores: below a quad, a quad and more, a warp, several loads, parts.
    {"sum_f16", 8, "sm_90"},
    {"sum_f16", 16, "sm_90"},
    {"sum_f16", 64, "sm_90"},
    {"sum_f16", 100, "sm_90"},
    {"sum_f16", 2048, "sm_90"},
    {"sum_f16", 1001, "sm_90"},
    {"sum_f16", 0, "sm_90"},
    {"sum_f16", 16, "sm_75"},
    {"sum_bf16", 256, "sm_80"},
    {"sum_bf16", 256, "sm_75"},
    {"sum_i8", 3, "sm_90"},
    {"sum_i8", 64, "sm_90"},
    {"sum_u8", 32, "sm_75"},
    {"sum_f64", 64, "sm_80"},
    {"sum_f64", 4099, "sm_90"},
    {"sum_f64", 64, "sm_75"},
    // Products: data as both operands.
    {"dot_f16", 64, "sm_90"},
    {"dot_f64", 256, "sm_90"},
    {"dot_u8", 64, "sm_80"},
    {"norm_bf16", 1000, "sm_80"},
    // Lanes by themselves.
    {"sum_f32", 64, "sm_90"},
    {"sum_f32", 4099, "sm_90"},
    // Edges where memory is aligned, wherever the input begins.
    {.program = "sum_f16", .segment = 5000, .target = "sm_90", .alignment = 2},
    {.program = "sum_i8", .segment = 0, .target = "sm_80", .alignment = 1},
    {"sum_f32", 4096, "cpu"},
    {"sum_f32", 0, "cpu"},
    {"sum_f32", 1, "sm_90"},
    {"basics_i32", 33, "sm_90"},
    {"variance_f32", 256, "sm_90"},
    {"variance_f32", 0, "cpu"},
    {"flags_bool", 33, "sm_80"},
    {"filter_f16", 33, "sm_90"},
    {"arithmetic_i64", 16, "sm_90"},
    // States of several fields: merged in any order, and in that of the elements.
    {"argmax_f32", 33, "sm_90"},
    {"logsumexp_f32", 0, "cpu"},
    {"longest_run_f32", 4096, "sm_90"},
    {"longest_run_bool", 0, "sm_90"},
    {"longest_run_bool", 7, "sm_90"},
    // Several outputs and units in one kernel.
    {"frames", 64, "sm_90"},
    {"q6", 0, "sm_90"},
    {"q6", 0, "cpu"},
    {"sum_f32", 24, "cpu"},
    {"sum_bf16", 1000, "cpu"},
    {"sum_i8", 37, "cpu"},
    {"basics_f16", 64, "cpu"},
    {"longest_run_f32", 100, "cpu"},
    // What a processor likes: blocks of rows and loads of a loop from two places in turn, lines
    // asked for ahead.
    {"sum_f16", 48, "znver4"},
    {"sum_bf16", 0, "znver4"},
    {"sum_f16", 48, "sapphirerapids"},
    {"sum_bf16", 0, "sapphirerapids"},
    {"two_sums_f16", 24, "sm_90"},
    {"literals_f32", 33, "sm_90"},
    // Through shared memory: fragments, a lane a segment, late blocks, lanes that take turns,
    // two inputs, order and one burst a block.
    {"sum_f16", 64, "sm_90",
     "staged warps=8 lanes=8 rows=4 stages=2 burst=128 blocks=2 bytes=16 mma"},
    {"sum_f16", 37, "sm_90",
     "staged warps=8 lanes=1 rows=1 stages=2 burst=64 blocks=2 bytes=16 mma"},
    {"sum_i8", 777, "sm_90",
     "staged warps=8 lanes=32 rows=2 stages=2 burst=16 late=2 blocks=2 bytes=16 mma"},
    {"dot_f16", 100, "sm_80",
     "staged warps=4 lanes=8 rows=2 stages=4 burst=16 blocks=2 bytes=16 simt"},
    {"argmax_f32", 33, "sm_90",
     "staged warps=8 lanes=1 rows=1 stages=2 burst=8 late=8 blocks=1 bytes=16 simt"},
    // The papers' algorithms.
    {"sum_f16", 16, "sm_90", "reduction16 warps=8 rows=2"},
    {"sum_f16", 48, "sm_90", "strided16n warps=8 depth=4 chain=1"},
    {"sum_bf16", 1040, "sm_80", "coalesced16n warps=8 depth=4 chain=1"},
    {"sum_f16", 256, "sm_90", "reduction256 warps=8 rows=4"},
    {"sum_f16", 2816, "sm_90", "inefficient256n warps=8 depth=4"},
    {"sum_f16", 2048, "sm_90", "efficient256n warps=8 depth=8 chain=1"},
    {"sum_f16", 16384, "sm_90", "block256n warps=4 depth=4 chain=1"},
    {"sum_f16", 0, "sm_90", "grid256n warps=16 depth=4 chain=1 blocks=4"},
    {"sum_f16", 0, "sm_90", "single_pass warps=4 chain=1 blocks=8"},
    {"sum_f16", 0, "sm_90", "split warps=8 depth=2 blocks=4 fraction=50"},
    // As published: sums are rounded, chains long, blocks meet in any order.
    {"sum_bf16", 2560, "sm_90", "inefficient256n warps=8 depth=4 product=1",
     Accuracy::as_published},
    {"sum_f16", 4096, "sm_80", "efficient256n warps=8 depth=4 chain=0 product=1",
     Accuracy::as_published},
    {"sum_f16", 0, "sm_90", "recurrence warps=1 chain=5", Accuracy::as_published},
    {"sum_f16", 0, "sm_80", "single_pass warps=4 chain=4 blocks=8 product=1",
     Accuracy::as_published, Determinism::not_guaranteed},
    // Segments that offsets tell, padded.
    {.program = "sum_f16",
     .segment = 0,
     .target = "sm_90",
     .plan = "padded warps=8 depth=4 chain=1",
     .ragged = "offsets"},
    {.program = "sum_bf16",
     .segment = 0,
     .target = "sm_80",
     .plan = "padded warps=8 depth=4 chain=0",
     .accuracy = Accuracy::as_published,
     .ragged = "pairs"},
    // Columns: whole bands, ragged ones, few columns whose rows share a load, in order, one part.
    {.program = "sum_f16", .segment = 1024, .target = "sm_90", .columns = true},
    {.program = "argmax_f16", .segment = 1000, .target = "sm_80", .columns = true},
    {.program = "sum_f32",
     .segment = 4099,
     .target = "sm_90",
     .plan = "columns warps=8 depth=16 runs=4 parts=64 bytes=16 simt",
     .columns = true},
    // Rows that begin off wide loads, in phases.
    {.program = "sum_f32", .segment = 4099, .target = "sm_90", .columns = true},
    {.program = "sum_f16", .segment = 1001, .target = "sm_90", .columns = true},
    {.program = "variance_f16",
     .segment = 1003,
     .target = "sm_80",
     .columns = true,
     .strided = true},
    {.program = "longest_run_f32", .segment = 24, .target = "sm_90", .columns = true},
    {.program = "basics_i8", .segment = 1 << 20, .target = "sm_90", .columns = true},
    {.program = "sum_f32", .segment = 300, .target = "cpu", .columns = true},
    {.program = "sum_f32", .segment = 300, .target = "znver4", .columns = true},
    {.program = "sum_f32", .segment = 300, .target = "sapphirerapids", .columns = true},
    // Strides: rows of short segments, parts of long ones, columns.
    {.program = "dot_f16", .segment = 64, .target = "sm_90", .strided = true},
    {.program = "sum_f32", .segment = 1 << 20, .target = "sm_90", .strided = true},
    {.program = "frames", .segment = 1024, .target = "sm_90", .columns = true, .strided = true},
    // Scans: segments that begin with lanes, within lanes, anywhere; each segment read twice.
    {"scan_sum_f32", 64, "sm_90", "scan_tile warps=8 depth=1 blocks=0 bytes=16 simt"},
    {"scan_exclusive_i8", 2, "sm_80", "scan_tile warps=8 depth=1 blocks=0 bytes=4 simt"},
    {"scan_back_out_f32", 37, "sm_90", "scan_tile warps=4 depth=2 blocks=0 bytes=8 simt"},
    // Elements that ask for their segment's fold, which ends in another lane or row; both
    // directions.
    {"scan_share_f32", 37, "sm_90", "scan_tile warps=4 depth=2 blocks=0 bytes=16 simt"},
    {"scan_both_ways_i32", 37, "sm_90", "scan_tile warps=4 depth=2 blocks=0 bytes=16 simt"},
    {"scan_sum_f32", 100, "cpu", "scan_run warps=1 depth=1 blocks=0 bytes=16 simt"},
    // Of a block's warps; of blocks that wait for each other; of blocks that need not.
    {"scan_sum_f16", 250, "sm_90", "scan_block warps=2 depth=2 blocks=0 bytes=8 simt"},
    {"scan_share_f32", 333, "sm_90", "scan_block warps=4 depth=3 blocks=0 bytes=16 simt"},
    {"scan_both_ways_i32", 101, "sm_80", "scan_block warps=2 depth=2 blocks=0 bytes=16 simt"},
    {"scan_sum_i32", 0, "sm_90", "look_back warps=4 depth=1 tile=0 blocks=2 bytes=16 simt"},
    {"scan_horner_back_u8", 3000, "sm_80",
     "look_back warps=1 depth=1 tile=0 blocks=0 bytes=4 simt"},
    {"scan_sum_i32", 0, "cpu", "look_back warps=1 depth=1 tile=1 blocks=0 bytes=16 simt"},
    {"scan_sum_i32", 0, "cpu",
     "look_ahead warps=1 depth=1 near=1 tile=1 stages=2 blocks=1 bytes=16 simt"},
    {"scan_sum_i32", 0, "sapphirerapids",
     "look_back warps=1 depth=1 tile=1 blocks=0 bytes=16 simt"},
    {"scan_back_out_f32", 128, "sapphirerapids", "scan_run warps=1 depth=2 blocks=0 bytes=0 simt"},
    // Rows of two halves a lane, and what is left of them.
    {"running_sum_to_f16", 100, "cpu", "scan_run warps=1 depth=4 blocks=0 bytes=0 simt"},
    {"running_sum_to_bf16", 200, "cpu", "scan_run warps=1 depth=4 blocks=0 bytes=0 simt"},
    // Most rows of a tile through shared memory.
    {"scan_sum_f16", 0, "sm_90",
     "look_back warps=8 depth=6 staged=4 tile=0 blocks=4 bytes=16 simt"},
    {"scan_sum_f32", 3000, "sm_80",
     "look_back warps=2 depth=9 staged=8 tile=0 blocks=2 bytes=16 simt"},
    // Lanes that scan their own part of a run.
    {"running_sum_to_f16", 0, "sm_90",
     "look_back warps=2 depth=5 staged=3 blocked=1 tile=0 blocks=1 bytes=16 simt"},
    // Groups of tiles before the own one, tile by tile.
    {"scan_sum_f32", 0, "sm_90",
     "look_back warps=8 depth=3 staged=2 near=1 tile=0 blocks=4 bytes=16 simt"},
    // Tiles of all segments, which begin anywhere in them.
    {"scan_sum_f32", 1001, "sm_90",
     "look_back warps=2 depth=3 staged=2 heads=1 tile=0 blocks=2 bytes=16 simt"},
    // Tiles of several segments in turn.
    {"scan_horner_u8", 3000, "sm_90",
     "look_back warps=2 depth=3 staged=2 across=4 tile=0 blocks=2 bytes=4 simt"},
    {"scan_sum_i32", 0, "sm_90", "look_ahead warps=2 depth=1 stages=3 blocks=2 bytes=16 simt"},
    {"scan_back_out_f32", 5000, "sm_90", "propagate warps=2 depth=1 tile=0 blocks=0 bytes=4 simt"},
    {"scan_decay_f32", 64, "sm_90", "scan_tile warps=4 depth=1 blocks=0 bytes=16 simt"},
    {"scan_share_f32", 0, "sm_90", "propagate warps=2 depth=1 tile=0 blocks=0 bytes=4 simt"},
    // Segments that begin and end within loads.
    {"scan_share_f32", 1001, "sm_90", "propagate warps=2 depth=2 tile=0 blocks=0 bytes=16 simt"},
    // Tiles that fold the states before them themselves.
    {"scan_back_out_f32", 0, "sm_90",
     "propagate warps=4 depth=2 direct=1 tile=0 blocks=4 bytes=16 simt"},
    // Parts of one cluster, of one for each segment, and one part each: in one launch.
    {"variance_f32", 0, "sm_90", "parts warps=4 depth=2 parts=8 cluster=8 bytes=16 simt"},
    {"sum_f32", 100'003, "sm_90", "parts warps=8 depth=8 parts=8 cluster=8 bytes=16 simt"},
    {"sum_f16", 32'768, "sm_90", "parts warps=16 depth=8 parts=1 bytes=16 simt"},
    // Segments that data tell: folds, places, scans of both directions.
    {.program = "sum_f32", .segment = 0, .target = "sm_90", .ragged = "offsets"},
    {.program = "sum_f32", .segment = 0, .target = "cpu", .ragged = "offsets"},
    {.program = "argmax_f16", .segment = 0, .target = "sm_75", .ragged = "pairs"},
    {.program = "longest_run_f32", .segment = 0, .target = "sm_80", .ragged = "heads"},
    {.program = "sum_f32", .segment = 0, .target = "sm_90", .ragged = "heads"},
    {.program = "argmax_f16", .segment = 0, .target = "sm_120", .ragged = "heads"},
    {.program = "sum_f32", .segment = 0, .target = "cpu", .ragged = "heads"},
    {.program = "scan_sum_f32", .segment = 0, .target = "sm_90", .ragged = "pairs"},
    {.program = "scan_backward_f16", .segment = 0, .target = "sm_90", .ragged = "heads"},
    // Bitmaps.
    {"bitmap_where_f32", 64, "sm_90"},
    {"bitmap_alone", 0, "sm_75"},
    {.program = "bitmap_two_i8", .segment = 1000, .target = "sm_80", .columns = true},
    {"bitmap_where_f16", 33, "cpu"},
    {"scan_bitmap_f32", 0, "sm_90"},
    {.program = "bitmap_where_f32", .segment = 0, .target = "sm_90", .ragged = "offsets"},
    // On tensor cores, by quads of lanes.
    {"running_sum_f16", 64, "sm_90", "scan_tile warps=8 depth=2 bytes=16 mma"},
};

/// Cases whose programs and kernels stand in full: short ones, in which every strategy, unit and
/// operation of short ones occurs.
inline constexpr std::string_view kShown[] = {
    "dot_f16_S64_sm_90",
    "look_back_cpu",
    "look_back_in_place_sm_75",
    "look_back_sm_90",
    "scan_back_out_f32_S37_sm_90_scan_tile",
    "scan_back_out_f32_S5000_sm_90_propagate",
    "scan_exclusive_i8_S2_sm_80_scan_tile",
    "scan_sum_f16_S250_sm_90_scan_block",
    "scan_sum_f32_S64_sm_90_scan_tile",
    "sum_bf16_S2560_sm_90_inefficient256n",
    "sum_f16_S16384_sm_90_block256n",
    "sum_f16_S16_sm_90_reduction16",
    "sum_f16_S2048_sm_90_efficient256n",
    "sum_f16_S256_sm_90_reduction256",
    "sum_f16_S2816_sm_90_inefficient256n",
    "sum_f16_S32768_sm_90_parts",
    "sum_f16_S4096_sm_80_efficient256n",
    "sum_f16_S48_sm_90_strided16n",
    "sum_f16_S64_sm_90",
    "sum_f16_S64_sm_90_staged",
    "sum_f16_whole_sm_90_single_pass",
    "sum_f32_S1_sm_90",
    "sum_i8_S64_sm_90",
    "sum_u8_S32_sm_75",
};

}  // namespace chainfold::test
