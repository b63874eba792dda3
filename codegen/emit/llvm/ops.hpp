// Elementwise operations in LLVM text: ops.hpp's definition, instruction by instruction.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/emit/llvm/text.hpp"

namespace chainfold::codegen::llvm {

/// Writes operations on vectors of `lanes` elements, or on scalars (0). Operands and results are
/// names or constants of that shape. `pairs`: of each lane's two elements, which a store may join
/// to words.
class OpWriter {
 public:
  OpWriter(FunctionWriter& out, int lanes, bool pairs = false)
      : out_(out), lanes_(lanes), pairs_(pairs) {}

  /// `op` on operands of `type`, giving `result`; not select, whose condition has a shape of its
  /// own.
  std::string compute(Op op, DType type, DType result, std::span<const std::string> args);
  std::string convert(DType from, DType to, const std::string& x);

 private:
  std::string integer(Op op, DType type, std::span<const std::string> args);
  std::string divide(Op op, DType type, const std::string& a, const std::string& b);
  /// A division that does not trap, or its rest.
  std::string quotient(std::string_view instruction, std::string_view element, const std::string& a,
                       const std::string& b);
  std::string library(std::string_view name, DType type, std::span<const std::string> args);
  std::string floating(Op op, DType type, std::span<const std::string> args);
  std::string compare(Op op, DType type, const std::string& a, const std::string& b);

  std::string widen_half(DType from, const std::string& x);  // f16 or bf16 bits to f32
  std::string narrow_half(DType to, const std::string& x);   // f32 to the bits of f16 or bf16
  std::string upper_words(const std::string& words);         // i32 to i16
  std::string half_of_integer(DType from, DType to, const std::string& x);
  std::string float_to_integer(DType from, DType to, const std::string& x);
  std::string odd_float(const std::string& x);

  [[nodiscard]] std::string of(std::string_view element) const {
    return vector_of(element, lanes_);
  }
  [[nodiscard]] std::string of(DType type) const { return of(register_type(type)); }
  [[nodiscard]] std::string k(std::string_view element, std::string_view value) const {
    return constant(element, value, lanes_);
  }
  std::string binary(std::string_view instruction, std::string_view element, const std::string& a,
                     const std::string& b);
  std::string select(std::string_view element, const std::string& condition, const std::string& a,
                     const std::string& b);
  std::string cast(std::string_view instruction, std::string_view from, const std::string& x,
                   std::string_view to);
  std::string call(std::string_view name, std::string_view element,
                   std::span<const std::string> args);

  FunctionWriter& out_;
  int lanes_;
  bool pairs_;
};

}  // namespace chainfold::codegen::llvm
