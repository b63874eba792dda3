// How types, constants and instructions read in LLVM text; shared by the files of the emitter.
//
// In registers a boolean is an i1. An f16 or bf16 is the i16 of its bits: nothing is computed in
// them. Signed and unsigned integers are alike. In memory a boolean is an i8. `lanes` says how many
// elements a vector type has; 0 stands for a scalar.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"

namespace chainfold::codegen::llvm {

/// The type of one element in registers and in memory.
std::string_view register_type(DType type) noexcept;
std::string_view memory_type(DType type) noexcept;
/// "float", or "<32 x float>".
std::string vector_of(std::string_view element, int lanes);
/// The constant with these bits, without its type. Signalling NaNs come out quiet.
std::string literal(DType type, Bits bits);
/// A constant for all of `lanes` elements: "5", or "splat (i32 5)".
std::string constant(std::string_view element, std::string_view value, int lanes);
/// A shuffle mask with its type: "<2 x i32> <i32 0, i32 1>".
std::string index_vector(std::span<const int> indices);

/// A typed operand.
using Argument = std::pair<std::string, std::string>;  // type, value

/// Metadata !1, of loops that stay as they are.
inline constexpr std::string_view kRolled =
    "!1 = distinct !{!1, !2, !3}\n!2 = !{!\"llvm.loop.unroll.disable\"}\n"
    "!3 = !{!\"llvm.loop.vectorize.enable\", i1 false}\n";

/// Collects the instructions of one function and the declarations of what they call.
class FunctionWriter {
 public:
  /// Names the result of an instruction: "%t7".
  std::string let(std::string_view instruction);
  void line(std::string_view text);
  /// Begins a basic block; its predecessors must end with their own terminator.
  void label(std::string_view name);
  /// The basic block that the next instruction falls into.
  [[nodiscard]] const std::string& current_label() const { return label_; }
  /// A number that no other label or name of this function carries.
  int fresh() { return next_++; }

  /// Calls llvm.<name>.<suffixes>; the result's name, empty for void.
  std::string intrinsic(std::string_view name, std::string_view result,
                        std::span<const std::string> suffix_types,
                        std::span<const Argument> arguments);
  /// "shufflevector" of one or two vectors of `from` elements; `b` empty for one.
  std::string shuffle(std::string_view element, int from, const std::string& a,
                      const std::string& b, std::span<const int> indices);
  /// A scalar in all lanes.
  std::string splat(std::string_view element, const std::string& scalar, int lanes);

  /// Memory on the stack, for the whole function: the pointer to it. Its definition is among
  /// slots(), which belong at the function's beginning.
  std::string slot(std::string_view type) { return at_beginning("alloca " + std::string(type)); }
  /// The value of an instruction at the function's beginning, among slots().
  std::string at_beginning(const std::string& instruction) {
    const std::string name = "%slot" + std::to_string(fresh());
    slots_ += "  " + name + " = " + instruction + "\n";
    return name;
  }
  [[nodiscard]] const std::string& slots() const { return slots_; }

  /// A function of the runtime that is called: "declare void @name(i32)\n".
  void declare(std::string_view declaration) { declarations_.emplace(declaration); }

  std::string take_text() { return std::exchange(text_, {}); }
  void append(std::string_view text) { text_ += text; }
  [[nodiscard]] const std::set<std::string>& declarations() const { return declarations_; }

 private:
  std::string text_, slots_;
  std::string label_ = "entry";
  std::set<std::string> declarations_;
  int next_ = 0;
};

}  // namespace chainfold::codegen::llvm
