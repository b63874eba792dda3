#include "chainfold/tests/support/interpreted.hpp"

#include <algorithm>
#include <stdexcept>

#include "chainfold/runtime/arguments.hpp"

namespace chainfold::test {

namespace {

constexpr std::byte kPoison{0x5A};

/// The pieces in which a host would hand the input over: [first, last) of parts or of segments.
struct Piece {
  std::int64_t begin = 0, end = 0;
};
std::vector<Piece> cut(std::int64_t units, int chunks) {
  const std::int64_t step = std::max<std::int64_t>(1, (units + chunks - 1) / chunks);
  std::vector<Piece> pieces;
  for (std::int64_t begin = 0; begin < units; begin += step) {
    pieces.push_back({begin, std::min(units, begin + step)});
  }
  if (pieces.empty()) pieces.push_back({0, 0});
  return pieces;
}

class Interpreted {
 public:
  Interpreted(const codegen::Graph& graph, const codegen::Compiled& compiled,
              const std::vector<Column>& inputs, const std::vector<Bits>& params,
              const InterpCase& what)
      : graph_(graph), compiled_(compiled), inputs_(inputs), what_(what) {
    arguments_.elements = what.elements;
    arguments_.segment = what.segment;
    arguments_.segments = what.segment > 0 ? what.elements / what.segment : 1;
    std::copy(params.begin(), params.end(), arguments_.params.begin());
    range_ = {.segments = arguments_.segments, .elements = what.elements};
    if (compiled.plan.strategy == codegen::Strategy::parts) {
      const std::int64_t length = what.segment > 0 ? what.segment : what.elements;
      const codegen::PartCut cut = codegen::cut_parts(compiled.plan, length, range_.segments);
      range_.parts = cut.parts;
      range_.part_length = cut.part_length;
      range_.part_end = cut.parts * range_.segments;
    }
    for (codegen::NodeId output : graph.outputs) {
      outputs_.emplace_back(graph.node(output).type, range_.segments);
      outputs_.back().fill(kPoison);
    }
    const runtime::Slots slots(graph, compiled.program, arguments_, range_);
    const auto slot_params =
        std::span(slots.data(), slots.size()).subspan(compiled.program.buffers.size());
    for (const codegen::Buffer& buffer : compiled.program.buffers) {
      if (buffer.role != codegen::BufferRole::scratch) continue;
      scratch_.emplace_back(buffer.type, buffer.elements.evaluate(slot_params));
      scratch_.back().fill(kPoison);
    }
  }

  std::vector<Column> run() {
    if (compiled_.plan.strategy == codegen::Strategy::parts) {
      if (what_.chunks == 1) {
        launch(range_, 0, what_.elements, -1);
      } else {
        for (const Piece& piece : cut(range_.part_end, what_.chunks)) {
          runtime::Slots::Range range = range_;
          range.origin = element_of_part(piece.begin);
          range.part_begin = piece.begin;
          range.part_end = piece.end;
          launch(range, range.origin, element_of_part(piece.end), 0);
        }
        launch(range_, 0, 0, 1);
      }
    } else if (what_.segment == 0) {  // nothing of it can be handed over piece by piece
      launch(range_, 0, what_.elements, -1);
    } else {
      for (const Piece& piece : cut(range_.segments, what_.chunks)) {
        runtime::Slots::Range range = range_;
        range.segments = piece.end - piece.begin;
        first_output_ = piece.begin;
        launch(range, piece.begin * what_.segment, piece.end * what_.segment, -1);
      }
    }
    return std::move(outputs_);
  }

 private:
  [[nodiscard]] std::int64_t element_of_part(std::int64_t part) const {
    const std::int64_t length = what_.segment > 0 ? what_.segment : what_.elements;
    return part / range_.parts * length +
           std::min(length, part % range_.parts * range_.part_length);
  }

  /// Runs over the elements [begin, end), which the program finds at the start of its inputs.
  void launch(const runtime::Slots::Range& range, std::int64_t begin, std::int64_t end, int only) {
    const runtime::Slots slots(graph_, compiled_.program, arguments_, range);
    const auto params =
        std::span(slots.data(), slots.size()).subspan(compiled_.program.buffers.size());
    std::vector<Column>
        pieces;  // a copy, because a piece of a column is not aligned like its start
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const DType type = inputs_[i].type();
      pieces.emplace_back(
          type, end - begin,
          what_.base_alignment >= 16 ? 0 : std::max(what_.base_alignment, size_of(type)));
      std::copy_n(inputs_[i].data() + begin * size_of(type), pieces.back().bytes(),
                  pieces.back().data());
    }
    std::vector<codegen::InterpBuffer> buffers;
    for (const codegen::Buffer& buffer : compiled_.program.buffers) {
      const auto index = static_cast<std::size_t>(buffer.index);
      Column& column = buffer.role == codegen::BufferRole::input    ? pieces[index]
                       : buffer.role == codegen::BufferRole::output ? outputs_[index]
                                                                    : scratch_[index];
      const bool shifted = buffer.role == codegen::BufferRole::output;
      buffers.push_back({column.data() + (shifted ? first_output_ * size_of(buffer.type) : 0),
                         shifted ? column.count() - first_output_ : column.count()});
    }
    codegen::interpret(compiled_.program, buffers, params, what_.options, only);
  }

  const codegen::Graph& graph_;
  const codegen::Compiled& compiled_;
  const std::vector<Column>& inputs_;
  const InterpCase& what_;
  runtime::Arguments arguments_;
  runtime::Slots::Range range_;
  std::vector<Column> outputs_, scratch_;
  std::int64_t first_output_ = 0;
};

}  // namespace

std::vector<Column> interpret_graph(const codegen::Graph& graph, const codegen::Compiled& compiled,
                                    const std::vector<Column>& inputs,
                                    const std::vector<Bits>& params, const InterpCase& what) {
  return Interpreted(graph, compiled, inputs, params, what).run();
}

Verdict check_interpreted(const TestProgram& program, const codegen::Target& target,
                          const InterpCase& what) {
  const Computation computation = program.over(what.segment > 0 ? segments(what.segment) : whole());
  const codegen::Graph& graph = computation.graph();
  const codegen::PlanRequest request{.accuracy = what.accuracy,
                                     .nonfinite = what.nonfinite,
                                     .determinism = what.determinism,
                                     .segment = what.segment,
                                     .base_alignment = what.base_alignment};
  codegen::Compiled compiled;
  if (what.choice) {
    std::optional<codegen::Plan> plan = make_plan(graph, target, request, *what.choice);
    if (!plan) throw std::invalid_argument("not legal: " + to_text(*what.choice));
    compiled = codegen::compile_plan(graph, target, *std::move(plan));
  } else {
    compiled = codegen::compile_graph(graph, target, request);
  }
  const std::vector<Column> inputs = make_inputs(graph, what.elements, what.fill, what.seed);
  const std::vector<Bits> params = param_bits(program, graph, what.segment);
  InterpCase run = what;
  if (target.arch > 0) run.options.arch = target.arch;
  const std::vector<Column> outputs = interpret_graph(graph, compiled, inputs, params, run);
  const auto expected =
      reference(graph, inputs, what.elements,
                {.segment = what.segment, .params = params, .plan = compiled.plan});
  return judge(expected, outputs);
}

}  // namespace chainfold::test
