// The element-wise operations that graphs, folds and programs share, and their meaning.
//
// Semantics. Every operation acts on each element alone. Operands of one operation have one type
// (except where stated) and so has the result:
//   neg abs                 wrap in integers (abs(INT_MIN) = INT_MIN); clear or flip the sign bit
//   in floats add sub mul             wrap in integers; round to nearest even in floats div rem
//   integers truncate; x / 0 = 0, x % 0 = x, INT_MIN / -1 = INT_MIN, INT_MIN % -1 = 0;
//                           floats: div rounds to nearest even, rem is C's fmod
//   min max                 floats: NaN if either is NaN; -0 < +0
//   sqrt fma                correctly rounded; fma (a*b+c) rounds once. In integers fma is mul, add
//   floor                   floats only
//   exp log pow             floats only, within 2 ulp of the exact value; the one
//                           place where executors may differ: in the last bits, and in whether pow
//                           of a signalling NaN is NaN where pow of a quiet one is a number
//   bit_and bit_or bit_xor  integers and booleans
//   bit_not                 integers; on booleans it is "not"
//   shl shr                 integers; the amount is taken modulo the width; shr keeps the sign of
//   signed types eq ne lt le gt ge       to boolean; every comparison with NaN is false but ne
//   select                  (boolean, x, y) -> x or y
//   convert                 integers wrap; to float rounds to nearest even; float to integer
//   truncates and
//                           saturates, NaN gives 0; anything to boolean is x != 0; boolean gives 0
//                           or 1
//   reinterpret             the same bits as another type of as many bytes; not to or from boolean
//   is_finite               float to boolean: neither NaN nor infinite
// f16 and bf16 appear only as operands and results of convert, reinterpret and select: nothing is
// computed in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chainfold/codegen/base/types.hpp"

namespace chainfold::codegen {

enum class Op : std::uint8_t {
  neg,
  abs,
  sqrt,
  floor,
  exp,
  log,
  bit_not,
  is_finite,
  convert,
  reinterpret,  // one operand
  add,
  sub,
  mul,
  div,
  rem,
  min,
  max,
  pow,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,  // two operands
  eq,
  ne,
  lt,
  le,
  gt,
  ge,  // two, to boolean
  fma,
  select,  // three
};
inline constexpr int kOpCount = static_cast<int>(Op::select) + 1;

constexpr int arity(Op op) noexcept { return op <= Op::reinterpret ? 1 : op <= Op::ge ? 2 : 3; }
/// Whether the type of the result is chosen and not told by the operands'.
constexpr bool is_cast(Op op) noexcept { return op == Op::convert || op == Op::reinterpret; }
constexpr bool is_comparison(Op op) noexcept { return op >= Op::eq && op <= Op::ge; }
/// a op b == b op a, bit for bit (NaN payloads aside).
constexpr bool is_commutative(Op op) noexcept {
  return op == Op::add || op == Op::mul || op == Op::min || op == Op::max || op == Op::bit_and ||
         op == Op::bit_or || op == Op::bit_xor || op == Op::eq || op == Op::ne;
}
/// The name in prints: "add", "select", ...
std::string_view name_of(Op op) noexcept;

/// Whether `op` is defined for operands of `type` (select and convert: for every type).
bool is_defined(Op op, DType type) noexcept;
/// Whether values of `from` become values of `to` by this cast.
bool is_defined(Op cast, DType from, DType to) noexcept;

/// One element of any type, in the low bytes of 64 bits (the rest zero; signed integers too).
using Bits = std::uint64_t;

/// The definition of the operations: evaluates `op` on elements given as bits. `type` is the type
/// of the operands (of x and y for select), `result` that of the result (differs for comparisons,
/// is_finite and casts). This is the reference that the executors are held against.
Bits evaluate(Op op, DType type, DType result, Bits a, Bits b = 0, Bits c = 0);

/// Bits of a value given as double or as 64-bit integer, converted as Op::convert does.
Bits bits_of_double(DType type, double value);
Bits bits_of_int(DType type, std::int64_t value);
/// The value of bits as a double (exact for all types but 64-bit integers beyond 2^53).
double double_of_bits(DType type, Bits bits);

/// A readable literal that reads back exactly: "1.5", "-3", "true", "nan".
std::string text_of_bits(DType type, Bits bits);

}  // namespace chainfold::codegen
