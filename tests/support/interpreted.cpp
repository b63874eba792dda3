#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/codegen/legalize.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <stdexcept>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/launch/arguments.hpp"
#include "chainfold/runtime/launch/slots.hpp"

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
    arguments_ = runtime::dense_arguments(graph, what.elements, what.segment);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (graph.inputs[k].is_packed())
        arguments_.first_bits[k] = static_cast<std::uint8_t>(first_bit(k, what.seed));
    for (std::size_t k = 0; k < inputs.size() && !what.gaps.empty(); ++k)
      if (!graph.inputs[k].is_packed()) arguments_.strides[k] += what.gaps[k % what.gaps.size()];
    std::copy(params.begin(), params.end(), arguments_.params.begin());
    if (what.ragged) {
      arguments_.bound = true;
      arguments_.rooms.fill(static_cast<std::int64_t>(what.ragged->segments.size()) + what.room);
      arguments_.segments = static_cast<std::int64_t>(what.ragged->segments.size());
      bounds_ = what.ragged->bounds();
    }
    range_ = runtime::range_of(compiled.plan, arguments_);
    for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
      const DType type = graph.node(graph.outputs[o]).type;
      outputs_.emplace_back(type, runtime::output_values(graph, arguments_, o),
                            output_offset(o, type));
      outputs_.back().fill(kPoison);
    }
    declare_scratch();
  }
  void declare_scratch() {
    scratch_.clear();
    const codegen::Compiled& compiled = compiled_;
    const runtime::Slots slots(graph_, compiled.program, arguments_, range_);
    const auto slot_params =
        std::span(slots.data(), slots.size()).subspan(compiled.program.buffers.size());
    for (const codegen::Buffer& buffer : compiled.program.buffers) {
      if (buffer.role != codegen::BufferRole::scratch) continue;
      scratch_.emplace_back(buffer.type, buffer.elements.evaluate(slot_params));
      scratch_.back().fill(kPoison);
    }
  }

  std::vector<Column> run() {
    const bool cluster = compiled_.plan.parts.cluster > 0, parts = range_.parts > 1 && !cluster;
    if (what_.chunks > 1 && codegen::has_scans(graph_)) {
      run_scans();
    } else if (what_.chunks == 1 || what_.ragged || !what_.gaps.empty() ||
               (cluster && what_.segment == 0)) {
      launch(range_, pieces(0, what_.elements), -1);
    } else if (parts) {
      for (const Piece& piece : cut(range_.part_end, what_.chunks)) {
        runtime::Slots::Range range = range_;
        range.origin = element_of_part(piece.begin) / (what_.columns ? what_.segment : 1);
        range.part_begin = piece.begin;
        range.part_end = piece.end;
        launch(range, pieces(element_of_part(piece.begin), element_of_part(piece.end)), 0);
      }
      launch(range_, pieces(0, 0), 1);
    } else if (what_.columns) {
      // Whole bands of columns, the last with what is left.
      const std::int64_t band = std::min(compiled_.plan.columns_per_block(), what_.segment);
      const std::int64_t bands = what_.segment / band;
      for (const Piece& piece : cut(bands, what_.chunks)) {
        runtime::Slots::Range range = range_;
        first_output_ = piece.begin * band;
        range.segments = (piece.end == bands ? what_.segment : piece.end * band) - first_output_;
        launch(range, columns(first_output_, range.segments), -1);
      }
    } else if (what_.segment == 0) {  // nothing of it can be handed over piece by piece
      launch(range_, pieces(0, what_.elements), -1);
    } else {
      for (const Piece& piece : cut(range_.segments, what_.chunks)) {
        runtime::Slots::Range range = range_;
        range.segments = piece.end - piece.begin;
        range.part_end = range.segments * range.parts;
        first_output_ = piece.begin;
        launch(range, pieces(piece.begin * what_.segment, piece.end * what_.segment), -1);
      }
    }
    return std::move(outputs_);
  }
  [[nodiscard]] LaunchStatus told() const {
    return {.wrong_offset = static_cast<std::int64_t>(status_.get(0)),
            .segments = static_cast<std::int64_t>(status_.get(1))};
  }

 private:
  /// Chunk after chunk of segments, or of the whole (the last one first where scans are backward),
  /// each as a launch on memory of its own.
  void run_scans() {
    const bool carries = what_.segment == 0;
    const bool backward = carries && std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                                 [](const auto& node) { return node.reverse; });
    const std::int64_t unit = carries ? 1 : what_.segment;
    std::vector<Piece> chunks = cut(what_.elements / unit, what_.chunks);
    if (backward) std::reverse(chunks.begin(), chunks.end());
    std::vector<Column> whole = std::move(outputs_), carried;
    for (const Piece& chunk : chunks) {
      const std::int64_t elements = (chunk.end - chunk.begin) * unit;
      const auto given = arguments_.params;
      const auto first_bits = arguments_.first_bits;
      arguments_ = runtime::dense_arguments(graph_, elements, what_.segment);
      arguments_.params = given;
      arguments_.first_bits = first_bits;
      range_ = runtime::range_of(compiled_.plan, arguments_);
      declare_scratch();
      outputs_.clear();
      for (std::size_t o = 0; o < whole.size(); ++o) {
        const DType type = whole[o].type();
        outputs_.emplace_back(type, runtime::output_values(graph_, arguments_, o),
                              output_offset(o, type));
        outputs_.back().fill(kPoison);
      }
      carry_in_ = std::move(carried);
      carry_out_ = carries ? fields() : std::vector<Column>();
      launch(range_, pieces(chunk.begin * unit, chunk.end * unit), -1);
      for (std::size_t o = 0; o < whole.size(); ++o) {
        const std::int64_t first = runtime::per_element(graph_, o) ? chunk.begin * unit
                                   : carries                       ? 0
                                                                   : chunk.begin;
        for (std::int64_t i = 0; i < outputs_[o].count(); ++i)
          whole[o].set(first + i, outputs_[o].get(i));
      }
      carried = std::move(carry_out_);
    }
    outputs_ = std::move(whole);
  }
  /// One column of one element a field of the folds' states.
  [[nodiscard]] std::vector<Column> fields() const {
    std::vector<Column> fields;
    for (const codegen::Fold& fold : graph_.folds) {
      for (const DType type : fold.state) {
        fields.emplace_back(type, 1);
        fields.back().fill(kPoison);
      }
    }
    return fields;
  }

  [[nodiscard]] std::int64_t element_of_part(std::int64_t part) const {
    if (what_.columns) return std::min(what_.elements, part * range_.part_length * what_.segment);
    const std::int64_t length = what_.segment > 0 ? what_.segment : what_.elements;
    return part / range_.parts * length +
           std::min(length, part % range_.parts * range_.part_length);
  }
  [[nodiscard]] int offset(DType type) const {
    return what_.base_alignment >= 16 ? 0 : std::max(what_.base_alignment, size_of(type));
  }
  [[nodiscard]] int output_offset(std::size_t output, DType type) const {
    return runtime::per_element(graph_, output) ? offset(type) : what_.output_shift * size_of(type);
  }
  /// The elements [begin, end) of each input, or all of them with their gaps: copies, because a
  /// piece of a column is not aligned like its start.
  [[nodiscard]] std::vector<Column> pieces(std::int64_t begin, std::int64_t end) const {
    std::vector<Column> pieces;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const DType type = inputs_[i].type();
      if (!what_.gaps.empty() && !graph_.inputs[i].is_packed()) {
        pieces.push_back(spread(inputs_[i], what_.segment, arguments_.strides[i], offset(type)));
        continue;
      }
      pieces.emplace_back(type, end - begin, offset(type));
      std::copy_n(inputs_[i].data() + begin * size_of(type), pieces.back().bytes(),
                  pieces.back().data());
    }
    return pieces;
  }
  /// The columns [first, first + count) of each input.
  [[nodiscard]] std::vector<Column> columns(std::int64_t first, std::int64_t count) const {
    std::vector<Column> pieces;
    for (const Column& input : inputs_) {
      Column& piece = pieces.emplace_back(input.type(), range_.rows * count, offset(input.type()));
      for (std::int64_t i = 0; i < piece.count(); ++i)
        piece.set(i, input.get(i / count * what_.segment + first + i % count));
    }
    return pieces;
  }

  /// Runs over inputs which the program finds at the start of its buffers.
  void launch(const runtime::Slots::Range& range, std::vector<Column> pieces, int only) {
    runtime::Slots slots(graph_, compiled_.program, arguments_, range);
    slots.set_status(&status_);
    // Only whether there is a carry counts: its memory is told below.
    slots.set_carry(carry_in_.empty() ? nullptr : &carry_in_,
                    carry_out_.empty() ? nullptr : &carry_out_);
    const auto params =
        std::span(slots.data(), slots.size()).subspan(compiled_.program.buffers.size());
    const std::vector<int> shared = shared_inputs();
    std::vector<codegen::InterpBuffer> buffers;
    for (const codegen::Buffer& buffer : compiled_.program.buffers) {
      const auto index = static_cast<std::size_t>(buffer.index);
      if (buffer.role == codegen::BufferRole::carry_in ||
          buffer.role == codegen::BufferRole::carry_out) {
        std::vector<Column>& carry =
            buffer.role == codegen::BufferRole::carry_in ? carry_in_ : carry_out_;
        buffers.push_back(carry.empty() ? codegen::InterpBuffer{}
                                        : codegen::InterpBuffer{carry[index].data(), 1});
        continue;
      }
      if (buffer.role == codegen::BufferRole::output && shared[index] >= 0) {
        Column& memory = pieces[static_cast<std::size_t>(shared[index])];
        buffers.push_back({memory.data(), memory.count()});
        continue;
      }
      if (buffer.role == codegen::BufferRole::status) {
        buffers.push_back({status_.data(), status_.count()});
        continue;
      }
      if (buffer.role == codegen::BufferRole::input && index >= inputs_.size()) {
        Column& bound = bounds_[index - inputs_.size()];
        buffers.push_back({bound.data(), bound.count()});
        continue;
      }
      if (buffer.packed) {
        const int first = arguments_.first_bits[index];
        const Column& bits = pieces[index].packed(first);
        buffers.push_back({const_cast<std::byte*>(bits.data()), first + pieces[index].count()});
        continue;
      }
      Column& column = buffer.role == codegen::BufferRole::input    ? pieces[index]
                       : buffer.role == codegen::BufferRole::output ? outputs_[index]
                                                                    : scratch_[index];
      const bool shifted = buffer.role == codegen::BufferRole::output;
      buffers.push_back({column.data() + (shifted ? first_output_ * size_of(buffer.type) : 0),
                         shifted ? column.count() - first_output_ : column.count()});
    }
    codegen::interpret(compiled_.program, buffers, params, what_.options, only);
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      if (shared[o] < 0) continue;
      const Column& memory = pieces[static_cast<std::size_t>(shared[o])];
      if (!memory.sentinel_intact()) throw std::logic_error("written behind an input's memory");
      std::copy_n(memory.data(), memory.bytes(), outputs_[o].data());
    }
  }
  /// The input in whose memory each output lies; -1: in none.
  [[nodiscard]] std::vector<int> shared_inputs() const {
    std::vector<int> shared(outputs_.size(), -1);
    std::vector<bool> taken(inputs_.size(), false);
    for (std::size_t o = 0; o < shared.size() && what_.in_place; ++o) {
      for (std::size_t i = 0; i < taken.size() && runtime::per_element(graph_, o); ++i) {
        if (taken[i] || shared[o] >= 0 || graph_.inputs[i].is_packed()) continue;
        if (size_of(inputs_[i].type()) != size_of(outputs_[o].type())) continue;
        taken[i] = true;
        shared[o] = static_cast<int>(i);
      }
    }
    return shared;
  }

  const codegen::Graph& graph_;
  const codegen::Compiled& compiled_;
  const std::vector<Column>& inputs_;
  const InterpCase& what_;
  runtime::Arguments arguments_;
  runtime::Slots::Range range_;
  std::vector<Column> outputs_, scratch_, carry_in_, carry_out_;
  std::vector<Column> bounds_;  // of what offsets tell
  Column status_{DType::i64, 2};
  std::int64_t first_output_ = 0;
};

}  // namespace

int alignment_of(const codegen::Graph& graph, const InterpCase& what) {
  auto bits = static_cast<std::uint64_t>(what.base_alignment);
  for (std::size_t i = 0; i < graph.inputs.size() && !what.gaps.empty(); ++i) {
    if (graph.inputs[i].is_packed()) continue;
    bits |= static_cast<std::uint64_t>(what.segment + what.gaps[i % what.gaps.size()]) *
            static_cast<std::uint64_t>(size_of(graph.inputs[i].type));
  }
  return 1 << std::countr_zero(bits);
}

std::vector<Column> interpret_graph(const codegen::Graph& graph, const codegen::Compiled& compiled,
                                    const std::vector<Column>& inputs,
                                    const std::vector<Bits>& params, const InterpCase& what) {
  return Interpreted(graph, compiled, inputs, params, what).run();
}

LaunchStatus interpret_ragged(const codegen::Graph& graph, const codegen::Compiled& compiled,
                              const std::vector<Column>& inputs, const InterpCase& what,
                              std::vector<Column>& outputs) {
  Interpreted run(graph, compiled, inputs, {}, what);
  outputs = run.run();
  return run.told();
}

std::string keep_segments(const codegen::Graph& graph, const InterpCase& what,
                          std::vector<Column>& outputs) {
  std::string touched;
  for (std::size_t o = 0; o < outputs.size() && what.ragged; ++o) {
    if (!runtime::per_element(graph, o)) continue;
    if (!what.in_place) touched += touched_between(outputs[o], *what.ragged, kPoison);
    outputs[o] = of_segments(outputs[o], *what.ragged);
  }
  return touched;
}

Verdict check_interpreted(const TestProgram& program, const codegen::Target& target,
                          const InterpCase& what) {
  const Computation computation = program.over(what.ragged        ? what.ragged->partition()
                                               : what.columns     ? columns(what.segment)
                                               : what.segment > 0 ? segments(what.segment)
                                                                  : whole());
  const codegen::Graph& written = computation.graph();
  const codegen::Graph graph = codegen::legalize(written, target);
  const codegen::PlanRequest request{.accuracy = what.accuracy,
                                     .nonfinite = what.nonfinite,
                                     .determinism = what.determinism,
                                     .segment = what.segment,
                                     .base_alignment = alignment_of(graph, what),
                                     .strided = !what.gaps.empty()};
  codegen::Compiled compiled;
  if (what.choice) {
    std::optional<codegen::Plan> plan = make_plan(graph, target, request, *what.choice);
    if (!plan) throw std::invalid_argument("not legal: " + to_text(*what.choice));
    compiled = codegen::compile_plan(graph, target, *std::move(plan));
  } else {
    compiled = codegen::compile_graph(graph, target, request);
  }
  const std::int64_t elements = what.ragged ? what.ragged->elements : what.elements;
  std::vector<Column> inputs = make_inputs(graph, elements, what.fill, what.seed);
  if (what.ragged) set_heads(graph, *what.ragged, inputs);
  const std::vector<Bits> params = param_bits(program, graph, what.segment);
  InterpCase run = what;
  run.elements = elements;
  if (target.arch > 0) run.options.arch = target.arch;
  std::vector<Column> outputs = interpret_graph(graph, compiled, inputs, params, run);
  const std::string touched = keep_segments(graph, what, outputs);
  ReferenceRequest asked{
      .segment = what.segment, .params = params, .plan = as_written(compiled.plan, graph, written)};
  if (what.ragged) asked.ragged = what.ragged->segments;
  const auto expected = reference(written, inputs, elements, asked);
  Verdict verdict = judge(expected, outputs);
  verdict.problems += touched;
  return verdict;
}

Executor plan_interpreter(const codegen::Target& target, std::uint64_t seed) {
  return [target, seed](const Computation& computation, const std::vector<Column>& inputs,
                        std::int64_t row) {
    const codegen::Graph graph = codegen::legalize(computation.graph(), target);
    InterpCase run{.segment = row,
                   .columns = graph.partition.kind == codegen::Partition::Kind::columns,
                   .elements = inputs[0].count()};
    if (target.arch > 0) run.options.arch = target.arch;
    const codegen::PlanRequest request{.segment = row};
    run.choice = codegen::default_choice(graph, target, request);
    if (seed > 0) {
      std::mt19937_64 random(seed);
      const auto space = codegen::plan_space(graph, target, request);
      run.choice = space[random() % space.size()];
    }
    auto plan = codegen::make_plan(graph, target, request, *run.choice);
    const auto compiled = codegen::compile_plan(graph, target, *std::move(plan));
    return interpret_graph(graph, compiled, inputs, {}, run);
  };
}

}  // namespace chainfold::test
