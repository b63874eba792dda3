// From what a user bound to what a launch needs: names are looked up; types, lengths and sizes are
// checked. All checks come before anything runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/runtime/launch/bindings.hpp"

namespace chainfold::runtime {

/// Bound arguments in the graph's order. Inputs lie in rows of `segment` elements: the segments, or
/// the rows whose columns are folded.
struct Arguments {
  /// The graph's inputs, and behind them the bounds of its partition.
  std::array<const std::byte*, kMaxBindings> inputs{};
  std::array<std::byte*, kMaxBindings> outputs{};    ///< null where they are not known
  std::array<std::int64_t, kMaxBindings> rooms{};    ///< values that each output has room for
  std::array<std::int64_t, kMaxBindings> strides{};  ///< elements from row to row; 0 for the whole
  std::array<std::uint64_t, kMaxBindings> params{};  ///< values of the graph's parameters
  std::array<std::uint8_t, kMaxBindings> first_bits{};  ///< of packed inputs, in their first bytes
  std::int64_t elements = 0;                            ///< without what lies between rows
  std::int64_t segment = 0;        ///< elements a segment, or columns; 0 for the whole
  std::int64_t segments = 0;       ///< full segments (1 for the whole), columns, or by offsets
  std::int64_t rows = 0;           ///< columns: elements of each
  std::int64_t tail_elements = 0;  ///< elements of a last, shorter segment
  bool strided = false;            ///< some input has gaps between its rows
  bool bound = false;              ///< outputs and their room are known
  /// Segments, a shorter last one included.
  [[nodiscard]] std::int64_t all_segments() const { return segments + (tail_elements > 0 ? 1 : 0); }
};

/// Whether output `o` has one value an element.
inline bool per_element(const codegen::Graph& graph, std::size_t o) {
  return graph.node(graph.outputs[o]).level == codegen::Level::element;
}
/// Values of output `o`. Where the launch tells how many segments there are, as many as it has room
/// for; as many as there are elements as long as no outputs are bound.
inline std::int64_t output_values(const codegen::Graph& graph, const Arguments& arguments,
                                  std::size_t o) {
  if (has_heads(graph) && !per_element(graph, o))
    return arguments.bound ? std::min(arguments.rooms[o], arguments.elements) : arguments.elements;
  return per_element(graph, o) ? arguments.elements : arguments.all_segments();
}

/// Bytes of `elements` elements of an input without gaps; of a packed one from `first_bit` on.
inline std::int64_t bytes_of_input(const codegen::GraphInput& input, std::int64_t elements,
                                   std::int64_t first_bit = 0) {
  constexpr std::int64_t kBits = 8;
  if (!input.is_packed()) return elements * size_of(input.type);
  return elements == 0 ? 0 : (first_bit + elements + kBits - 1) / kBits;
}
/// The same of the arguments' input `i`.
inline std::int64_t bytes_of_input(const codegen::Graph& graph, const Arguments& arguments,
                                   std::size_t i, std::int64_t elements) {
  return bytes_of_input(graph.inputs[i], elements, arguments.first_bits[i]);
}

/// Arguments of `elements` elements in rows of `segment` (0: the whole input) without gaps. Inputs
/// and parameters are still to be set.
Arguments dense_arguments(const codegen::Graph& graph, std::int64_t elements, std::int64_t segment);

/// Elements of each of the partition's bounds.
inline std::int64_t bound_values(const codegen::Graph& graph, const Arguments& arguments) {
  return arguments.segments + (graph.partition.bounds.size() == 1 ? 1 : 0);
}

/// Bindings, checked, as arguments. `elements` < 0: every input has its own count, and they must
/// agree. Throws UserError.
Arguments resolve(const codegen::Graph& graph, const Bindings& bindings, std::int64_t elements);

/// The same bindings, and an aligned address for each input that is not bound: for calls that ask
/// for sizes alone. Nothing may be read.
Bindings with_any_memory(const codegen::Graph& graph, const Bindings& bindings);
/// The same with offsets of no segments where none are bound.
Bindings with_any_bounds(const codegen::Graph& graph, const Bindings& bindings);

/// Throws UserError(wrong_offset) where a status says so, of offsets in this machine's memory, and
/// UserError(too_small) where an output had no room for all segments.
void check_status(const codegen::Graph& graph, const Arguments& arguments,
                  const LaunchStatus& status);

/// Checks number, types, capacity, null and alignment of the outputs, and takes their pointers.
/// Throws UserError.
void bind_outputs(const codegen::Graph& graph, const Outputs& outputs, Arguments& arguments);

/// The largest power of two up to 16 of which all pointers of inputs, and of outputs with one value
/// an element, are multiples. Where rows of some input have gaps, so are the distances of rows.
int common_alignment(const codegen::Graph& graph, const Arguments& arguments);

}  // namespace chainfold::runtime
