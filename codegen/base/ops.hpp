// The element-wise operations that graphs, folds and programs share, and their meaning.
//
// clang-format off
// Semantics. Every operation acts on each element alone. Operands of one operation have one type (except
// where stated), and so has the result:
//   neg abs                 wrap in integers (abs(INT_MIN) = INT_MIN); flip or clear the sign bit in floats
//   sign                    -1, 0 or 1; NaN of NaN
//   add sub mul             wrap in integers; round to nearest even in floats
//   div rem                 integers truncate; x / 0 = 0, x % 0 = x, INT_MIN / -1 = INT_MIN,
//                           INT_MIN % -1 = 0; floats: div rounds to nearest even, rem is C's fmod
//   min max                 floats: NaN if either is NaN; -0 < +0
//   sqrt fma                correctly rounded; fma (a * b + c) rounds once. In integers fma is mul, add
//   floor ceil round        floats only; round is C's, of two whole numbers as near the one farther from 0
//   exp exp2 expm1 log log2 log1p sin cos tanh erf pow rsqrt
//                           floats only, within the ulps of op_table.inc of the exact value; the one place
//                           where executors may differ: in the last bits, and in whether pow of a
//                           signalling NaN is NaN where pow of a quiet one is a number
//   bit_and bit_or bit_xor  integers and booleans
//   bit_not                 integers; on booleans it is "not"
//   shl shr                 integers; the amount is taken modulo the width; shr keeps the sign of signed types
//   eq ne lt le gt ge       to boolean; every comparison with NaN is false but ne
//   is_finite is_nan is_infinite
//                           float to boolean
//   select                  (boolean, x, y) -> x or y
//   convert                 integers wrap; to float rounds to nearest even; float to integer truncates and
//                           saturates, NaN gives 0; anything to boolean is x != 0; boolean gives 0 or 1
//   reinterpret             the same bits as another type of as many bytes; not to or from boolean
// clang-format on
// f16 and bf16 appear only as operands and results of convert, reinterpret and select: nothing is
// computed in them.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "chainfold/codegen/base/types.hpp"

namespace chainfold::codegen {

/// The rows of op_table.inc, in its order.
enum class Op : std::uint8_t {
#define OPERATION(name, ...) name,
#include "chainfold/codegen/base/op_table.inc"
};

/// What type the result of an operation has: the operands', boolean, or one that is chosen.
enum class OpResult : std::uint8_t { same, boolean, chosen };

namespace op_table {
struct Shape {
  int arity;
  OpResult result;
  bool commutative;
};
inline constexpr Shape kShapes[] = {
#define OPERATION(name, arity, domain, result, commutative, ...) \
  {arity, OpResult::result, commutative},
#include "chainfold/codegen/base/op_table.inc"
};
constexpr const Shape& shape_of(Op op) noexcept { return kShapes[static_cast<int>(op)]; }
}  // namespace op_table

inline constexpr int kOpCount = static_cast<int>(std::size(op_table::kShapes));

constexpr int arity(Op op) noexcept { return op_table::shape_of(op).arity; }
/// Whether the type of the result is chosen and not told by the operands'.
constexpr bool is_cast(Op op) noexcept { return op_table::shape_of(op).result == OpResult::chosen; }
/// Whether the result is boolean whatever the operands are.
constexpr bool is_test(Op op) noexcept {
  return op_table::shape_of(op).result == OpResult::boolean;
}
constexpr bool is_comparison(Op op) noexcept { return is_test(op) && arity(op) == 2; }
/// a op b == b op a, bit for bit (NaN payloads aside).
constexpr bool is_commutative(Op op) noexcept { return op_table::shape_of(op).commutative; }
/// The name in prints: "add", "select", ...
std::string_view name_of(Op op) noexcept;

/// Whether `op` is defined for operands of `type` (select and convert: for every type).
bool is_defined(Op op, DType type) noexcept;
/// Whether values of `from` become values of `to` by this cast.
bool is_defined(Op cast, DType from, DType to) noexcept;

/// One element of any type, in the low bytes of 64 bits (the rest zero; signed integers too).
using Bits = std::uint64_t;

/// The definition of the operations: evaluates `op` on elements given as bits. `type` is the type
/// of the operands (of x and y for select), `result` that of the result (differs for tests and
/// casts). This is the reference that the executors are held against.
Bits evaluate(Op op, DType type, DType result, Bits a, Bits b = 0, Bits c = 0);

/// Bits of a value given as double or as 64-bit integer, converted as Op::convert does.
Bits bits_of_double(DType type, double value);
Bits bits_of_int(DType type, std::int64_t value);
/// The value of bits as a double (exact for all types but 64-bit integers beyond 2^53).
double double_of_bits(DType type, Bits bits);

/// A readable literal that reads back exactly: "1.5", "-3", "true", "nan".
std::string text_of_bits(DType type, Bits bits);

}  // namespace chainfold::codegen
