// What is bound to inputs of bits: checks, and where they begin.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/runtime/launch/arguments.hpp"
#include "chainfold/runtime/launch/bindings.hpp"

namespace chainfold::runtime {

/// Whether a binding is of bits where the input is, and of elements where that is. Its count, its
/// first bit and its stride are checked as well. Throws UserError.
void check_bits(const codegen::GraphInput& input, const Binding& binding);

/// The elements that a bitmap says it has; -1: as many as other inputs. `alone`: nothing else tells
/// how many there are, and its memory does. Throws UserError(length_mismatch).
std::int64_t elements_of_bits(const codegen::GraphInput& input, const Binding& binding, bool alone);

/// The byte of a bitmap's first bit, of `elements` bits. Throws UserError where its memory is known
/// to be shorter.
const std::byte* checked_bitmap(const codegen::GraphInput& input, const Binding& binding,
                                std::int64_t elements);

/// Lets input `i` begin `elements` elements further on.
void advance_input(const codegen::Graph& graph, Arguments& arguments, std::size_t i,
                   std::int64_t elements);

}  // namespace chainfold::runtime
