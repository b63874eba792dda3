#include "chainfold/codegen/emit/cuda/ops.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/op_table.hpp"
#include "chainfold/codegen/emit/cuda/text.hpp"

namespace chainfold::codegen::cuda {
namespace {

// C++ promotes elements of 1 and 2 bytes to int; the cast back wraps.
std::string narrowed(DType type, std::string text) {
  if (size_of(type) > 2) return text;
  return fmt::format("({}){}", type_name(type), text);
}

// Operators of C++ would be undefined on overflow for what computes as a signed integer.
bool needs_wrapping(DType type) {
  return is_integer(type) && (is_signed(type) || size_of(type) < 4);
}

// The unsigned type in which what needs wrapping computes.
std::string_view wrapping_type(DType type) {
  return size_of(type) == 8 ? "unsigned long long" : "unsigned";
}

// Wrapping is left to unsigned numbers, in place: a call would cost a compiler more.
std::string arithmetic(char sign, DType type, const std::string& a, const std::string& b) {
  if (!needs_wrapping(type)) return fmt::format("{} {} {}", a, sign, b);
  return fmt::format("({0})(({1}){2} {3} ({1}){4})", type_name(type), wrapping_type(type), a, sign,
                     b);
}

std::string extremum(char sign, DType type, std::span<const std::string> args) {
  return narrowed(type, fmt::format("({0} {2} {1} ? {0} : {1})", args[0], args[1], sign));
}

std::string bitwise(char sign, DType type, std::span<const std::string> args) {
  const std::string text = fmt::format("{} {} {}", args[0], sign, args[1]);
  return size_of(type) <= 2 ? fmt::format("({})({})", type_name(type), text) : text;
}

std::string shift(std::string_view sign, DType type, std::span<const std::string> args) {
  const int last_bit = size_of(type) * 8 - 1;
  // A left shift of a negative number, or into the sign, is only defined for unsigned types.
  std::string value = args[0];
  if (sign == "<<" && needs_wrapping(type))
    value = fmt::format("({}){}", wrapping_type(type), value);
  const std::string text =
      fmt::format("{} {} ((unsigned){} & {}u)", value, sign, args[1], last_bit);
  return value == args[0] && size_of(type) >= 4 ? text
                                                : fmt::format("({})({})", type_name(type), text);
}

std::string call(DType type, std::string_view f32_name, std::string_view f64_name,
                 std::span<const std::string> args) {
  return fmt::format("{}({})", type == DType::f32 ? f32_name : f64_name, fmt::join(args, ", "));
}

/// f16 and bf16 as f32, everything else as it is.
std::string as_f32(DType type, const std::string& text) {
  return fmt::format("cf_f32_of_{}({})", name_of(type), text);
}

std::string float_to_integer(DType from, DType to, const std::string& text) {
  const std::string value = size_of(from) == 2 ? as_f32(from, text) : text;
  switch (to) {
    case DType::i8: return fmt::format("(signed char)cf_clamp(cf_i32_of({}), -128, 127)", value);
    case DType::u8: return fmt::format("(unsigned char)cf_clamp(cf_i32_of({}), 0, 255)", value);
    case DType::i16: return fmt::format("(short)cf_clamp(cf_i32_of({}), -32768, 32767)", value);
    case DType::u16: return fmt::format("(unsigned short)cf_clamp(cf_i32_of({}), 0, 65535)", value);
    default: return fmt::format("cf_{}_of({})", name_of(to), value);
  }
}

std::string to_half(DType from, DType to, const std::string& text) {
  const std::string_view name = name_of(to);
  if (size_of(from) == 2 && is_float(from))
    return fmt::format("cf_{}_of_f32({})", name, as_f32(from, text));
  if (from == DType::f32 || from == DType::f64)
    return fmt::format("cf_{}_of_{}({})", name, name_of(from), text);
  // Integers of 16 bits are exact in f32, and what f32 would round is infinite in f16; only bf16
  // would see two roundings.
  if (to == DType::bf16 && size_of(from) >= 4) {
    const auto wide = is_signed(from) ? "long long" : "unsigned long long";
    return fmt::format("cf_bf16_of_integer(({}){})", wide, text);
  }
  return fmt::format("cf_{}_of_f32((float){})", name, text);
}

std::string convert(DType from, DType to, const std::string& text) {
  if (from == to) return text;
  const bool from_half = is_float(from) && size_of(from) == 2;
  if (to == DType::boolean)
    return from_half ? fmt::format("({} & 0x7fff) != 0", text) : fmt::format("{} != 0", text);
  if (is_float(to) && size_of(to) == 2) return to_half(from, to, text);
  if (is_float(to)) {
    if (!from_half) return fmt::format("({}){}", type_name(to), text);
    return to == DType::f32 ? as_f32(from, text) : "(double)" + as_f32(from, text);
  }
  if (is_float(from)) return float_to_integer(from, to, text);
  return fmt::format("({}){}", type_name(to), text);
}

/// 16 bits are integers in any case; floats of 32 and 64 go through the signed integer of their
/// size.
std::string reinterpret(DType from, DType to, const std::string& text) {
  if (type_name(from) == type_name(to)) return text;
  std::string bits = text;
  if (from == DType::f32) bits = fmt::format("__float_as_int({})", text);
  if (from == DType::f64) bits = fmt::format("__double_as_longlong({})", text);
  if (to == DType::f32) return fmt::format("__int_as_float((int){})", bits);
  if (to == DType::f64) return fmt::format("__longlong_as_double((long long){})", bits);
  return fmt::format("({}){}", type_name(to), bits);
}

}  // namespace

std::string expression(Op op, DType type, DType result, std::span<const std::string> args) {
  const bool floating = is_float(type);
  const OpRow& row = row_of(op);
  if (floating && !row.cuda_f32.empty()) return call(type, row.cuda_f32, row.cuda_f64, args);
  switch (op) {
    case Op::neg:
      if (floating) return "-" + args[0];
      return narrowed(type, fmt::format("cf_neg({})", args[0]));
    case Op::abs:
      return is_signed(type) ? narrowed(type, fmt::format("cf_abs({})", args[0])) : args[0];
    case Op::sign:
      if (!floating) {
        return is_signed(type) ? narrowed(type, fmt::format("(({0} > 0) - ({0} < 0))", args[0]))
                               : fmt::format("({})({} != 0)", type_name(type), args[0]);
      }
      return fmt::format("{0} > 0 ? ({1})1 : {0} < 0 ? ({1})-1 : {0} == 0 ? ({1})0 : {0}", args[0],
                         type_name(type));
    case Op::is_nan: return fmt::format("{0} != {0}", args[0]);
    case Op::is_infinite: return fmt::format("cf_is_infinite({})", args[0]);
    case Op::bit_not:
      if (type == DType::boolean) return "!" + args[0];
      return narrowed(type, "~" + args[0]);
    case Op::convert: return convert(type, result, args[0]);
    case Op::reinterpret: return reinterpret(type, result, args[0]);
    case Op::add: return arithmetic('+', type, args[0], args[1]);
    case Op::sub: return arithmetic('-', type, args[0], args[1]);
    case Op::mul: return arithmetic('*', type, args[0], args[1]);
    case Op::div: return narrowed(type, fmt::format("cf_div({}, {})", args[0], args[1]));
    case Op::rem: return narrowed(type, fmt::format("cf_rem({}, {})", args[0], args[1]));
    case Op::min: return extremum('<', type, args);
    case Op::max: return extremum('>', type, args);
    case Op::bit_and: return bitwise('&', type, args);
    case Op::bit_or: return bitwise('|', type, args);
    case Op::bit_xor: return bitwise('^', type, args);
    case Op::shl: return shift("<<", type, args);
    case Op::shr: return shift(">>", type, args);
    case Op::eq: return fmt::format("{} == {}", args[0], args[1]);
    case Op::ne: return fmt::format("{} != {}", args[0], args[1]);
    case Op::lt: return fmt::format("{} < {}", args[0], args[1]);
    case Op::le: return fmt::format("{} <= {}", args[0], args[1]);
    case Op::gt: return fmt::format("{} > {}", args[0], args[1]);
    case Op::ge: return fmt::format("{} >= {}", args[0], args[1]);
    case Op::fma: return arithmetic('+', type, arithmetic('*', type, args[0], args[1]), args[2]);
    case Op::select: return fmt::format("{} ? {} : {}", args[0], args[1], args[2]);
    default: break;
  }
  throw InternalError("the CUDA emitter does not know operation " + std::string(name_of(op)));
}

}  // namespace chainfold::codegen::cuda
