// Columns whose rows are read in phases: around the sizes of windows, turns of rows and parts,
// dense and padded, in pieces, in memory that begins anywhere, interpreted and held against the
// reference or a plain loop. The interpreter refuses loads that are not aligned or leave the
// input's memory.
#include <gtest/gtest.h>

#include <bit>

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>

#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

/// A small block: four phases of f32, eight of f16 by half as wide loads as there are.
struct Phased {
  const char* program;
  PlanChoice choice;
};
PlanChoice choice_of(int phases, int bytes, int warps, int depth, int runs, int parts) {
  return {.strategy = Strategy::columns,
          .warps = warps,
          .depth = depth,
          .rows = runs,
          .phases = phases,
          .parts = parts,
          .bytes = bytes,
          .mma = false};
}

std::string words(const InterpCase& c) {
  return fmt::format("{} columns, {} rows of {}, aligned to {}, gap {}, {} chunks: {}", c.segment,
                     c.elements / c.segment, name_of(c.fill), c.base_alignment,
                     c.gaps.empty() ? -1 : c.gaps[0], c.chunks,
                     c.choice ? to_text(*c.choice) : "default");
}

void expect_right(const TestProgram& tested, const InterpCase& c) {
  SCOPED_TRACE(tested.name + ": " + words(c));
  try {
    const Verdict verdict = check_interpreted(tested, codegen::gpu_target(90), c);
    ASSERT_EQ(verdict.problems, "");
    ASSERT_GT(verdict.values, 0);
  } catch (const std::exception& error) {
    FAIL() << error.what();
  }
}

class PhasedColumns : public testing::TestWithParam<Phased> {
 protected:
  const TestProgram& tested = program(GetParam().program);
  const PlanChoice& choice = GetParam().choice;
  [[nodiscard]] int width() const {
    const Computation computation = tested.over(columns(2));
    return choice.bytes / size_of(computation.graph().inputs[0].type);
  }
  [[nodiscard]] int own() const { return width() * (codegen::kWarpWidth * choice.rows - 1); }
};

/// One band and several, the last one full, nearly empty, and one column short.
TEST_P(PhasedColumns, OfEveryNumberAreRight) {
  const int w = width(), band = own();
  std::size_t turn = 0;
  for (const std::int64_t count : {band, band + 1, band + w - 1, band + w, band + w + 1,
                                   2 * band - 1, 2 * band + 1, 3 * band + w / 2 + 1}) {
    for (const std::int64_t rows : {21, 66}) {
      if (!is_taken(++turn)) continue;
      InterpCase c{.segment = count,
                   .columns = true,
                   .elements = count * rows,
                   .fill = tested.fills[turn % tested.fills.size()],
                   .seed = turn,
                   .choice = choice};
      // Legal for these columns: rows begin alike after so many.
      const Computation computation = tested.over(columns(count));
      const auto plan =
          make_plan(computation.graph(), codegen::gpu_target(90), {.segment = count}, choice);
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->columns_per_block(), band);
      expect_right(tested, c);
    }
  }
}

/// None, fewer than phases, around batches and turns of a block, with a rest, one part and several.
TEST_P(PhasedColumns, OfEveryNumberOfRowsAreRight) {
  const std::int64_t count = own() + 3;
  const int batch = choice.depth * choice.phases, turn = choice.depth * choice.warps;
  std::size_t number = 0;
  for (const std::int64_t rows :
       {0, 1, 2, choice.phases - 1, choice.phases, choice.phases + 1, batch - 1, batch, batch + 1,
        batch + 2, turn - 1, turn, turn + 1, turn + 2, 2 * turn, 2 * turn + 1, 3 * turn + batch + 1,
        5 * turn - 1, 7 * turn}) {
    for (const int parts : {1, choice.parts}) {
      if (!is_taken(++number)) continue;
      InterpCase c{.segment = count,
                   .columns = true,
                   .elements = count * rows,
                   .fill = tested.fills[number % tested.fills.size()],
                   .seed = number,
                   .choice = choice};
      c.choice->parts = parts;
      c.options.schedule = static_cast<codegen::Schedule>(number % 3);
      c.options.seed = number;
      expect_right(tested, c);
    }
  }
}

/// Memory that begins anywhere: windows of the first row would begin before it.
TEST_P(PhasedColumns, InMemoryThatBeginsAnywhereAreRight) {
  const Computation computation = tested.over(columns(2));
  const int size = size_of(computation.graph().inputs[0].type);
  const std::int64_t count = 2 * own() - 5;
  std::int64_t turn = 0;
  for (int alignment = size; alignment < 16; alignment *= 2) {
    for (const std::int64_t rows :
         {1, 2, choice.phases, choice.depth * choice.warps, choice.depth * choice.warps + 2, 150}) {
      for (const int chunks : {1, 3}) {
        if (!is_taken(++turn + std::countr_zero(static_cast<unsigned>(alignment)))) continue;
        expect_right(tested, {.segment = count,
                              .columns = true,
                              .elements = count * rows,
                              .fill = tested.fills[0],
                              .seed = static_cast<std::uint64_t>(rows + alignment),
                              .base_alignment = alignment,
                              .chunks = chunks,
                              .choice = choice});
      }
    }
  }
}

/// Pieces of the rows, each of which ends where its memory ends, and pieces of the columns.
TEST_P(PhasedColumns, InPiecesAreRight) {
  std::int64_t turn = choice.depth + choice.bytes + choice.phases;  // others of other plans
  for (const std::int64_t count : {own() + 7, 4 * own() + 1}) {
    for (const int parts : {1, 5}) {
      if (!is_taken(++turn)) continue;
      InterpCase c{.segment = count,
                   .columns = true,
                   .elements = count * 203,
                   .fill = tested.fills[0],
                   .chunks = 4,
                   .choice = choice};
      c.choice->parts = parts;
      expect_right(tested, c);
    }
  }
}

/// Strides that keep rows on boundaries and those that do not; behind the last row there is
/// nothing.
TEST_P(PhasedColumns, OfRowsWithGapsAreRight) {
  if (choice.phases < width()) GTEST_SKIP() << "a stride may need more phases";
  std::size_t turn = 0;
  for (const std::int64_t count : {own(), own() + 1, 2 * own() + 3}) {
    const int aligned = static_cast<int>(16 - count % 16);
    for (const int gap : {1, 2, 3, 5, aligned, aligned + 4, 40}) {
      if (!is_taken(++turn)) continue;
      InterpCase c{.segment = count,
                   .columns = true,
                   .gaps = {gap},
                   .elements = count * static_cast<std::int64_t>(7 + turn * 29 % 120),
                   .fill = tested.fills[turn % tested.fills.size()],
                   .seed = turn,
                   .base_alignment = turn % 2 == 0 ? 16 : 8,
                   .choice = choice};
      expect_right(tested, c);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PhasedColumns,
                         testing::Values(Phased{"sum_f16", choice_of(8, 16, 8, 2, 2, 3)},
                                         Phased{"sum_f16", choice_of(4, 8, 16, 2, 1, 4)},
                                         Phased{"sum_f32", choice_of(4, 16, 8, 1, 2, 3)},
                                         Phased{"sum_f32", choice_of(8, 16, 8, 2, 1, 2)},
                                         Phased{"sum_i8", choice_of(8, 8, 8, 2, 1, 3)},
                                         Phased{"sum_f64", choice_of(2, 16, 4, 4, 2, 5)},
                                         Phased{"basics_f16", choice_of(4, 8, 4, 2, 1, 3)},
                                         Phased{"argmax_f32", choice_of(4, 16, 4, 2, 1, 2)},
                                         Phased{"variance_f32", choice_of(4, 16, 4, 4, 1, 3)},
                                         Phased{"variance_f16", choice_of(4, 8, 8, 1, 2, 2)},
                                         Phased{"index_i16", choice_of(8, 16, 8, 2, 1, 3)},
                                         Phased{"filter_f16", choice_of(8, 16, 8, 2, 1, 3)},
                                         Phased{"index_u8", choice_of(16, 16, 16, 1, 1, 3)},
                                         Phased{"logsumexp_f32", choice_of(4, 16, 4, 2, 1, 2)},
                                         Phased{"magnitudes_i8", choice_of(8, 8, 8, 2, 2, 3)}),
                         [](const auto& info) {
                           const PlanChoice& choice = info.param.choice;
                           return fmt::format("{}_{}_phases_{}_bytes_{}_runs", info.param.program,
                                              choice.phases, choice.bytes, choice.rows);
                         });

/// What the rules choose, at the sizes that it was made for: against a plain loop, which shares no
/// code with the library.
TEST(PhasedColumnPlans, OfTheRulesSumEachColumn) {
  const codegen::Target target = codegen::gpu_target(90, 2);
  for (const char* name : {"sum_f16", "sum_f32", "sum_i8", "sum_f64"}) {
    const TestProgram& tested = program(name);
    for (const std::int64_t count : {1001, 1002, 1003, 4099}) {
      const Computation computation = tested.over(columns(count));
      const codegen::Graph& graph = computation.graph();
      const codegen::Compiled compiled = codegen::compile_graph(graph, target, {.segment = count});
      const bool aligned = count * size_of(graph.inputs[0].type) % 16 == 0;
      EXPECT_EQ(compiled.plan.columns.phases > 1, !aligned) << name << ", " << count;
      const std::int64_t rows = count == 4099 ? 67 : 141;
      const InterpCase c{.segment = count, .columns = true, .elements = count * rows};
      const std::vector<Column> inputs = make_inputs(graph, c.elements, Fill::whole, 9);
      const std::vector<Column> outputs = interpret_graph(graph, compiled, inputs, {}, c);
      const DType from = inputs[0].type(), to = outputs[0].type();
      auto number = [](DType type, Bits bits) {
        return is_float(type) ? codegen::double_of_bits(type, bits)
                              : static_cast<double>(static_cast<std::int64_t>(codegen::evaluate(
                                    codegen::Op::convert, type, DType::i64, bits)));
      };
      for (std::int64_t column = 0; column < count; ++column) {
        double sum = 0;  // whole numbers: exact in every order
        for (std::int64_t row = 0; row < rows; ++row)
          sum += number(from, inputs[0].get(row * count + column));
        ASSERT_EQ(number(to, outputs[0].get(column)), sum)
            << name << ", " << count << " columns, column " << column;
      }
    }
  }
}

/// What is in one column changes no other, although neighbours' windows and the rows before and
/// behind bring it, too.
TEST(PhasedColumnPlans, ElementsSpoilTheirOwnColumnOnly) {
  for (const char* name : {"sum_f16", "basics_f16", "variance_f16"}) {
    const TestProgram& tested = program(name);
    constexpr std::int64_t kCount = 515, kRows = 37;
    const Computation computation = tested.over(columns(kCount));
    const codegen::Graph& graph = computation.graph();
    const codegen::Compiled compiled =
        codegen::compile_graph(graph, codegen::gpu_target(90, 1), {.segment = kCount});
    ASSERT_GT(compiled.plan.columns.phases, 1);
    ASSERT_LT(compiled.plan.columns_per_block(), kCount);
    const InterpCase c{.segment = kCount, .columns = true, .elements = kCount * kRows};
    std::vector<Column> inputs = make_inputs(graph, c.elements, Fill::uniform, 5);
    const std::vector<Column> clean = interpret_graph(graph, compiled, inputs, {}, c);
    const std::int64_t band = compiled.plan.columns_per_block();
    for (const std::int64_t column : {std::int64_t{0}, band - 1, band, band + 7, kCount - 1}) {
      for (const double what :
           {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        for (const std::int64_t row : {std::int64_t{0}, std::int64_t{11}, kRows - 1}) {
          const std::int64_t at = row * kCount + column;
          const Bits before = inputs[0].get(at);
          inputs[0].set_double(at, what);
          const std::vector<Column> spoiled = interpret_graph(graph, compiled, inputs, {}, c);
          inputs[0].set(at, before);
          for (std::size_t o = 0; o < spoiled.size(); ++o) {
            for (std::int64_t other = 0; other < kCount; ++other) {
              if (other == column) continue;
              ASSERT_EQ(spoiled[o].get(other), clean[o].get(other))
                  << name << ", output " << o << ", row " << row << ", column " << column
                  << " in column " << other;
            }
          }
          EXPECT_NE(spoiled[0].get(column), clean[0].get(column)) << name;
        }
      }
    }
  }
}

/// The plans that a tuner would try.
TEST(PhasedColumnPlans, OfTheSpaceAreRight) {
  std::size_t turn = 0;
  int phased = 0, narrow = 0;
  for (const char* name : {"sum_f16", "sum_i8", "argmax_f32"}) {
    const TestProgram& tested = program(name);
    for (const std::int64_t count : {523, 1018}) {
      const Computation computation = tested.over(columns(count));
      const auto space =
          plan_space(computation.graph(), codegen::gpu_target(90), {.segment = count});
      for (const PlanChoice& choice : space) {
        EXPECT_EQ(codegen::parse_choice(to_text(choice)), choice);
        (choice.phases > 1 ? phased : narrow) += 1;
      }
      for (std::size_t i = turn % (3 * kThin); i < space.size(); i += 3 * kThin) {
        ++turn;
        expect_right(tested, {.segment = count,
                              .columns = true,
                              .elements = count * static_cast<std::int64_t>(turn * 37 % 151),
                              .fill = tested.fills[turn % tested.fills.size()],
                              .seed = turn,
                              .choice = space[i]});
      }
    }
  }
  EXPECT_GE(phased, 60);
  EXPECT_GE(narrow, 18);
}

}  // namespace
}  // namespace chainfold::test
