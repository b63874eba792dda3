// Runs compiled graphs in the interpreter on test data and holds them against the reference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/tests/support/end_values.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/ragged.hpp"
#include "chainfold/tests/support/reference.hpp"

namespace chainfold::test {

/// One run: how many elements, in segments of how many (0: the whole), on what data.
struct InterpCase {
  std::int64_t segment = 0;
  bool columns = false;  ///< `segment` is the number of columns instead
  /// Where offsets tell the segments; `elements` and `segment` say nothing then.
  std::optional<Ragged> ragged{};
  /// Where heads tell them: so many values more than there are segments have room.
  std::int64_t room = 0;
  /// Elements between rows, for the inputs in turn: a strided plan. Empty: no strides.
  std::vector<std::int64_t> gaps{};
  std::int64_t elements = 0;
  Fill fill = Fill::uniform;
  std::uint64_t seed = 1;
  int base_alignment = 16;
  int output_shift = 0;  ///< elements by which outputs of segments are off a multiple of 256 bytes
  /// Parts of a `parts` plan handed over in this many launches, each with its own piece of the
  /// input; a `rows` plan runs as many pieces of its segments. Columns are cut between rows where
  /// they have parts, else between columns. Strided inputs come whole. Chunks of a scan are
  /// launches of their own, which carry their states on over the whole (segment == 0).
  int chunks = 1;
  /// Outputs with a value an element lie in the memory of inputs of their elements' size, each in
  /// that of another one, as far as there are such.
  bool in_place = false;
  NonFinite nonfinite = NonFinite::ieee;
  Accuracy accuracy = Accuracy::accurate;
  Determinism determinism = Determinism::run_to_run;
  std::optional<codegen::PlanChoice> choice{};  ///< instead of the default plan's
  codegen::InterpOptions options{};
};

/// The graph's outputs over `inputs`, which have no gaps, poisoned before and with sentinels
/// behind. Of carried scans an output with a value a segment is that of the last launch.
std::vector<Column> interpret_graph(const codegen::Graph& graph, const codegen::Compiled& compiled,
                                    const std::vector<Column>& inputs,
                                    const std::vector<Bits>& params, const InterpCase& what);

/// The same of segments that data tell: what the launch tells of them, and its outputs.
LaunchStatus interpret_ragged(const codegen::Graph& graph, const codegen::Compiled& compiled,
                              const std::vector<Column>& inputs, const InterpCase& what,
                              std::vector<Column>& outputs);

/// Leaves the elements of segments in outputs with a value an element; what is wrong with others.
std::string keep_segments(const codegen::Graph& graph, const InterpCase& what,
                          std::vector<Column>& outputs);

/// Bytes that every row of every input is aligned to.
int alignment_of(const codegen::Graph& graph, const InterpCase& what);

/// Computations in the interpreter by the default plan, or (`seed` > 0) any.
Executor plan_interpreter(const codegen::Target& target, std::uint64_t seed);

/// Compiles, interprets and compares: what went wrong, empty if nothing did.
Verdict check_interpreted(const TestProgram& program, const codegen::Target& target,
                          const InterpCase& what);

}  // namespace chainfold::test
