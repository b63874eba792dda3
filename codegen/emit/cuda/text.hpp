// How values, literals and element-wise operations read in CUDA text; shared by the files of the
// emitter.
//
// A value is one or more variables. Booleans and elements of 4 or 8 bytes take a variable each:
// v12, or v12_0, v12_1 ... of a vector or fragment. Vectors and fragments of 1- and 2-byte elements
// stay packed in 32-bit words, v12_w0, v12_w1 and so on. So a wide load brings them, and so a
// matrix instruction takes them. A single f16 or bf16 is an unsigned short that holds its bits.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen::cuda {

/// The type of a variable that holds one element.
std::string_view type_name(DType type) noexcept;
/// The type that one element has in memory: as type_name, but a byte for booleans.
std::string_view memory_type_name(DType type) noexcept;
/// A literal with exactly these bits.
std::string literal(DType type, Bits bits);

/// Elements that share one 32-bit variable: 4, 2, or 1 where elements are not packed.
int elements_per_word(const Type& type) noexcept;
inline bool is_packed(const Type& type) noexcept { return elements_per_word(type) > 1; }
/// How many variables a value takes.
int variable_count(const Type& type) noexcept;
/// The type of each of them.
std::string_view variable_type(const Type& type) noexcept;
/// Their names.
std::string variable(ValueId id, const Type& type, int i);
std::vector<std::string> variables(ValueId id, const Type& type);
/// Element `i` as an expression over the word in which it lies.
std::string element(const std::string& word, const Type& type, int i);
/// The elements of one word (2 or 4 of them, fewer in a last word) put together.
std::string packed_word(std::span<const std::string> elements, int per_word);

/// Whether inputs do not change while a kernel of the program is there. They are no outputs then,
/// and no kernel starts before what may still write them has ended.
inline bool inputs_are_constant(const Program& program) {
  return !program.in_place && !program.launches[0].overlaps;
}

/// `name` with everything that cannot stand in an identifier replaced.
std::string identifier(std::string_view name);

/// The name of the function that runs one matrix instruction.
std::string mma_name(const MmaRow& row);

}  // namespace chainfold::codegen::cuda
