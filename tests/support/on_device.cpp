#include "chainfold/tests/support/on_device.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::test {

namespace {

constexpr std::uint8_t kPoison = 0xFF;  // NaN in every float type

const runtime::Context& first_device() { return runtime::Context::of(0); }

std::int64_t output_values(const DeviceCase& what) {
  if (what.segment == 0) return 1;
  if (what.columns) return what.segment;
  return (what.elements + what.segment - 1) / what.segment;
}

bool per_element(const codegen::Graph& graph, codegen::NodeId output) {
  return graph.node(output).level == Level::element;
}

/// Adds what another run found.
void join(Verdict& verdict, const Verdict& other, const char* through) {
  if (!other.problems.empty()) verdict.problems += fmt::format("{}:\n{}", through, other.problems);
  verdict.values += other.values;
  verdict.unchecked += other.unchecked;
  verdict.worst_u = std::max(verdict.worst_u, other.worst_u);
}

}  // namespace

std::string why_no_gpu() {
  if (runtime::device_count() == 0) return "this machine has no CUDA device";
  if (!runtime::nvrtc_available()) return "libnvrtc is not installed";
  return {};
}

DeviceArray::DeviceArray(const runtime::Context& context, std::size_t bytes, int shift)
    : context_(context),
      bytes_(bytes),
      shift_(shift),
      buffer_(context, bytes + 2 * kGuard + static_cast<std::size_t>(shift)) {
  poison();
}

void DeviceArray::upload(const void* source) const {
  if (bytes_ == 0) return;
  runtime::copy_to_device(context_, buffer_.pointer() + kGuard + static_cast<unsigned>(shift_),
                          source, bytes_, nullptr);
  runtime::synchronize(context_, nullptr);
}

void DeviceArray::download(void* destination) const {
  if (bytes_ == 0) return;
  runtime::copy_to_host(context_, destination,
                        buffer_.pointer() + kGuard + static_cast<unsigned>(shift_), bytes_,
                        nullptr);
  runtime::synchronize(context_, nullptr);
}

void DeviceArray::poison() const {
  runtime::fill_bytes(context_, buffer_.pointer(), kPoison, buffer_.bytes(), nullptr);
  runtime::synchronize(context_, nullptr);
}

std::string DeviceArray::damage(bool inside) const {
  std::vector<std::uint8_t> all(buffer_.bytes());
  runtime::copy_to_host(context_, all.data(), buffer_.pointer(), all.size(), nullptr);
  runtime::synchronize(context_, nullptr);
  const std::size_t begin = kGuard + static_cast<std::size_t>(shift_), end = begin + bytes_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == kPoison || (!inside && i >= begin && i < end)) continue;
    return fmt::format("byte {} of an array of {} was written\n",
                       static_cast<std::int64_t>(i) - static_cast<std::int64_t>(begin), bytes_);
  }
  return {};
}

Bindings host_bindings(const codegen::Graph& graph, const std::vector<Column>& inputs,
                       const std::vector<Bits>& params, const std::vector<std::int64_t>& strides) {
  Bindings bindings;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    bindings.push_back(input_binding(graph.inputs[i], inputs[i], strides.empty() ? 0 : strides[i]));
  }
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    bindings.push_back(scalar_binding(graph.params[i], params[i]));
  }
  return bindings;
}

std::vector<Column> poisoned_outputs(const codegen::Graph& graph, std::int64_t values,
                                     std::int64_t elements) {
  std::vector<Column> columns;
  for (codegen::NodeId output : graph.outputs) {
    columns.emplace_back(graph.node(output).type, per_element(graph, output) ? elements : values);
    columns.back().fill(std::byte{0x5A});
  }
  return columns;
}

DeviceLaunch::DeviceLaunch(const Kernel& kernel, const codegen::Graph& graph,
                           const std::vector<Column>& inputs, const std::vector<Bits>& params,
                           std::int64_t elements, std::int64_t outputs, int shift,
                           const std::vector<std::int64_t>& strides, int output_shift,
                           const std::vector<Column>& bounds)
    : context_(first_device()), graph_(graph), values_(outputs) {
  const runtime::ContextScope scope(context_);
  args_.elements = elements;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (graph.inputs[i].is_packed()) {
      const int first = first_bit(i, static_cast<std::uint64_t>(elements));
      const Column& packed = inputs[i].packed(first);
      inputs_.emplace_back(context_, packed.bytes(), shift);
      inputs_.back().upload(packed.data());
      args_.inputs.push_back(
          Binding(graph.inputs[i].name,
                  bits(static_cast<const std::uint8_t*>(inputs_.back().data()), -1, first)));
      continue;
    }
    inputs_.emplace_back(context_, inputs[i].bytes(), shift * size_of(inputs[i].type()));
    inputs_.back().upload(inputs[i].data());
    args_.inputs.push_back(
        Binding(graph.inputs[i].name, static_cast<const void*>(inputs_.back().data()),
                graph.inputs[i].type, inputs[i].count(), strides.empty() ? 0 : strides[i]));
  }
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    inputs_.emplace_back(context_, bounds[i].bytes());
    inputs_.back().upload(bounds[i].data());
    args_.inputs.push_back(Binding(graph.partition.bounds[i].name,
                                   static_cast<const void*>(inputs_.back().data()),
                                   bounds[i].type(), bounds[i].count()));
  }
  if (codegen::is_ragged(graph)) {
    status_.emplace_back(context_, sizeof(LaunchStatus));
    args_.status = static_cast<LaunchStatus*>(status_.back().data());
  }
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    args_.inputs.push_back(scalar_binding(graph.params[i], params[i]));
  }
  for (codegen::NodeId output : graph.outputs) {
    const DType type = graph.node(output).type;
    // What has a value an element shares the alignment of inputs.
    const bool element = per_element(graph, output);
    const std::int64_t count = element ? elements : outputs;
    outputs_.emplace_back(context_, static_cast<std::size_t>(count * size_of(type)),
                          (element ? shift : output_shift) * size_of(type));
    args_.outputs.push_back(OutputBinding(outputs_.back().data(), type, count));
  }
  const std::int64_t bytes = kernel.scratch_bytes(args_);
  scratch_.emplace_back(context_, static_cast<std::size_t>(bytes));
  if (bytes > 0) args_.scratch = {scratch_.back().data(), bytes};
}

void DeviceLaunch::poison_outputs() const {
  for (const DeviceArray& output : outputs_) output.poison();
}

LaunchStatus DeviceLaunch::status() const {
  const runtime::ContextScope scope(context_);
  LaunchStatus told;
  status_.at(0).download(&told);
  return told;
}

std::vector<Column> DeviceLaunch::results(std::string& problems) const {
  const runtime::ContextScope scope(context_);
  runtime::synchronize(context_, static_cast<runtime::StreamHandle>(args_.stream));
  std::vector<Column> columns = poisoned_outputs(graph_, values_, args_.elements);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    outputs_[i].download(columns[i].data());
    if (const std::string damage = outputs_[i].damage(); !damage.empty())
      problems += fmt::format("output {}: {}", i, damage);
  }
  for (const DeviceArray& input : inputs_) problems += input.damage();
  for (const DeviceArray& status : status_) problems += status.damage();
  for (const DeviceArray& scratch : scratch_) problems += scratch.damage();
  return columns;
}

std::string words(const DeviceCase& what) {
  return fmt::format(
      "{} {}{}{}, {} elements of {}, {} elements off", what.columns ? "columns" : "segment",
      what.segment, what.gaps.empty() ? "" : fmt::format(" with gaps of {}", what.gaps[0]),
      what.tail ? " with a tail" : "", what.elements, name_of(what.fill), what.shift);
}

codegen::Plan plan_on_device(const Kernel& kernel, const codegen::Graph& graph,
                             std::int64_t segment, std::int64_t elements, int alignment,
                             bool strided) {
  return codegen::choose_plan(
      graph, kernel.target(),
      {.segment = segment,
       .base_alignment = alignment,
       .strided = strided,
       .size_limit = codegen::size_class_of(graph, kernel.target(), segment, elements)});
}

Verdict check_on_device(const Computation& computation, const std::vector<Bits>& params,
                        const std::vector<Column>& inputs, const DeviceCase& what,
                        bool transcendental) {
  const codegen::Graph& graph = computation.graph();
  Options options;
  options.target = target("gpu");
  options.plan = what.plan;
  options.accuracy = what.accuracy;
  options.nonfinite = what.nonfinite;
  const Kernel kernel = compile(computation, options);
  const std::int64_t values = output_values(what);
  codegen::Graph tail_graph = graph;
  tail_graph.partition = {};

  const bool strided = !what.gaps.empty();
  std::vector<Column> spread_out;
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < inputs.size() && strided; ++i) {
    const bool packed = graph.inputs[i].is_packed();  // bitmaps have no gaps
    strides.push_back(packed ? 0 : what.segment + what.gaps[i % what.gaps.size()]);
    spread_out.push_back(spread(inputs[i], what.segment, packed ? what.segment : strides[i]));
  }
  const std::vector<Column>& memory = strided ? spread_out : inputs;

  // Segments that come through run() go by the plan of many.
  const std::int64_t many = std::numeric_limits<std::int64_t>::max();
  const auto expect = [&](int alignment, int tail_alignment, bool gaps, bool from_host) {
    const std::int64_t elements = from_host && what.segment > 0 ? many : what.elements;
    ReferenceRequest request{.segment = what.segment, .params = params};
    request.plan = what.plan.empty()
                       ? plan_on_device(kernel, graph, what.segment, elements, alignment, gaps)
                       : make_plan(graph, kernel.target(),
                                   {.accuracy = what.accuracy,
                                    .nonfinite = what.nonfinite,
                                    .segment = what.segment,
                                    .base_alignment = alignment,
                                    .strided = gaps},
                                   codegen::parse_choice(what.plan))
                             .value();
    if (what.tail)
      request.tail_plan =
          plan_on_device(kernel, tail_graph, 0, what.elements % what.segment, tail_alignment);
    // The reference's own functions may be off by one ulp, the kernel's by two.
    if (transcendental) request.transcendental_ulp = 3;
    return reference(graph, inputs, what.elements, request);
  };

  Verdict verdict;
  std::vector<std::vector<Expected>> expected;
  int expected_alignment = 0;
  if (what.through_run) {
    std::vector<Column> actual = poisoned_outputs(graph, values, what.elements);
    Outputs outputs;
    for (Column& column : actual) {
      outputs.push_back(
          OutputBinding(static_cast<void*>(column.data()), column.type(), column.count()));
    }
    kernel.run_into(host_bindings(graph, memory, params, strides), outputs);
    expected = expect(16, 16, false, true);
    expected_alignment = 16;
    join(verdict, judge(expected, actual), "run()");
  }
  if (what.through_launch) {
    const runtime::Context& context = first_device();
    const runtime::Stream stream(context);
    DeviceLaunch launch(kernel, graph, memory, params, what.elements, values, what.shift, strides,
                        what.output_shift);
    launch.args().stream = stream.handle();
    kernel.launch(launch.args());
    Verdict found;
    std::string problems;
    const std::vector<Column> actual = launch.results(problems);
    unsigned bits = 16, tail_bits = 16;
    const std::int64_t full = what.segment > 0 ? what.elements / what.segment : 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (graph.inputs[i].is_packed()) continue;
      const int size = size_of(inputs[i].type());
      const std::int64_t stride = strided ? strides[i] : what.segment;
      bits |= static_cast<unsigned>(what.shift * size);
      if (strided) bits |= static_cast<unsigned>(stride * size);
      tail_bits |= static_cast<unsigned>((what.shift + full * stride) * size);
    }
    for (codegen::NodeId output : graph.outputs) {
      if (!per_element(graph, output)) continue;
      const int size = size_of(graph.node(output).type);
      bits |= static_cast<unsigned>(what.shift * size);
      tail_bits |= static_cast<unsigned>((what.shift + full * what.segment) * size);
    }
    const int alignment = 1 << std::countr_zero(bits);
    const int tail_alignment = std::min(alignment, 1 << std::countr_zero(tail_bits));
    const bool few = what.segment > 0 && codegen::size_class_of(graph, kernel.target(),
                                                                what.segment, what.elements) > 0;
    if (alignment != expected_alignment || (what.tail && tail_alignment != 16) || strided || few) {
      expected = expect(alignment, tail_alignment, strided, false);
    }
    found = judge(expected, actual);
    found.problems += problems;
    join(verdict, found, "launch()");
  }
  return verdict;
}

Verdict check_ragged_on_device(const TestProgram& program, const Ragged& ragged, Fill fill,
                               std::uint64_t seed, int shift, const std::string& plan,
                               Accuracy accuracy) {
  const Computation computation = program.over(ragged.partition());
  const codegen::Graph& graph = computation.graph();
  Options options;
  options.target = target("gpu");
  options.accuracy = accuracy;
  options.plan = plan;
  const Kernel kernel = compile(computation, options);
  auto inputs = make_inputs(graph, ragged.elements, fill, seed);
  set_heads(graph, ragged, inputs);
  const std::vector<Column> bounds = ragged.bounds();
  const auto values = static_cast<std::int64_t>(ragged.segments.size());
  const std::vector<Bits> params = param_bits(program, graph, 0);
  const codegen::Graph made = codegen::legalize(graph, kernel.target());
  ReferenceRequest request{.params = params};
  request.ragged = ragged.segments;
  const codegen::Plan chosen =
      plan.empty()
          ? plan_on_device(kernel, made, 0, ragged.elements)
          : make_plan(made, kernel.target(), {.accuracy = accuracy}, codegen::parse_choice(plan))
                .value();
  request.plan = as_written(chosen, made, graph);
  if (program.transcendental) request.transcendental_ulp = 3;
  const auto expected = reference(graph, inputs, ragged.elements, request);
  Verdict verdict;
  std::vector<Column> actual = poisoned_outputs(graph, values, ragged.elements);
  Outputs outputs;
  for (Column& column : actual)
    outputs.push_back(
        OutputBinding(static_cast<void*>(column.data()), column.type(), column.count()));
  Bindings bindings = host_bindings(graph, inputs, params);
  for (std::size_t i = 0; i < bounds.size(); ++i)
    bindings.push_back(Binding(graph.partition.bounds[i].name,
                               static_cast<const void*>(bounds[i].data()), bounds[i].type(),
                               bounds[i].count()));
  std::string touched;
  // What is of no segment keeps what it held.
  const auto compact = [&](std::vector<Column>& all, std::byte held) {
    for (std::size_t o = 0; o < all.size(); ++o) {
      if (!per_element(graph, graph.outputs[o])) continue;
      touched += touched_between(all[o], ragged, held);
      all[o] = of_segments(all[o], ragged);
    }
  };
  kernel.run_into(bindings, outputs);
  compact(actual, std::byte{0x5A});
  join(verdict, judge(expected, actual), "run()");
  DeviceLaunch launch(kernel, graph, inputs, params, ragged.elements, values, shift, {}, 1, bounds);
  kernel.launch(launch.args());
  std::string problems;
  std::vector<Column> launched = launch.results(problems);
  compact(launched, std::byte{kPoison});
  problems += touched;
  if (launch.status().wrong_offset != -1) problems += "the launch tells of a wrong offset\n";
  if (launch.status().segments != values) problems += "the launch tells another count\n";
  Verdict of_launch = judge(expected, launched);
  of_launch.problems += problems;
  join(verdict, of_launch, "launch()");
  return verdict;
}

Verdict check_on_device(const TestProgram& program, const DeviceCase& what) {
  const Tail tail = what.tail ? Tail::partial : Tail::error;
  const Computation computation = program.over(what.columns       ? columns(what.segment)
                                               : what.segment > 0 ? segments(what.segment, tail)
                                                                  : whole());
  const codegen::Graph& graph = computation.graph();
  return check_on_device(computation, param_bits(program, graph, what.segment),
                         make_inputs(graph, what.elements, what.fill, what.seed), what,
                         program.transcendental);
}

}  // namespace chainfold::test
