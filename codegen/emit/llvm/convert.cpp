// Conversions between element types; OpWriter's second half.
#include <array>
#include <bit>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/emit/llvm/ops.hpp"

namespace chainfold::codegen::llvm {
namespace {

bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

std::string power_of_two(int exponent, bool negative = false) {
  const Bits sign = negative ? Bits{1} << 63 : 0;
  return fmt::format("0x{:016X}", sign | static_cast<Bits>(1023 + exponent) << 52);
}

}  // namespace

std::string OpWriter::convert(DType from, DType to, const std::string& x) {
  const std::string_view f = register_type(from), t = register_type(to);
  if (from == to) return x;
  if (from == DType::boolean) {
    if (is_integer(to)) {
      // LLVM 19 combines without end where minima follow the extension of a mask of which some
      // lanes are known (AVX-512). A frozen mask is not looked through, and costs nothing.
      return cast("zext", f, size_of(to) == 8 ? out_.let(fmt::format("freeze {} {}", of(f), x)) : x,
                  t);
    }
    const Bits one = bits_of_double(to, 1.0);
    return select(t, x, k(t, literal(to, one)), k(t, literal(to, 0)));
  }
  if (is_half(from)) {
    const std::string wide = widen_half(from, x);
    return convert(DType::f32, to, wide);
  }
  if (is_float(from)) {
    if (to == DType::boolean) return binary("fcmp une", f, x, k(f, literal(from, 0)));
    if (is_integer(to)) return float_to_integer(from, to, x);
    if (to == DType::f64) return cast("fpext", f, x, t);
    if (to == DType::f32) return cast("fptrunc", f, x, t);
    return narrow_half(to, from == DType::f64 ? odd_float(x) : x);
  }
  if (to == DType::boolean) return binary("icmp ne", f, x, k(f, "0"));
  if (is_integer(to)) {
    if (size_of(to) == size_of(from)) return x;
    return cast(size_of(to) < size_of(from) ? "trunc" : is_signed(from) ? "sext" : "zext", f, x, t);
  }
  if (is_half(to)) return half_of_integer(from, to, x);
  return cast(is_signed(from) ? "sitofp" : "uitofp", f, x, t);
}

std::string OpWriter::widen_half(DType from, const std::string& x) {
  if (from == DType::f16) {
    // Behind the fence LLVM cannot turn comparisons and minima of f32 back into those of half. It
    // would take these apart lane by lane (docs/tuned-values.md#cpu).
    const std::string wide = cast("fpext", "half", cast("bitcast", "i16", x, "half"), "float");
    return call("arithmetic.fence", "float", std::array{wide});
  }
  const std::string upper = binary("shl", "i32", cast("zext", "i16", x, "i32"), k("i32", "16"));
  return cast("bitcast", "i32", upper, "float");
}

std::string OpWriter::narrow_half(DType to, const std::string& x) {
  if (to == DType::f16) return cast("bitcast", "half", cast("fptrunc", "float", x, "half"), "i16");
  // To nearest even by a carry: half a unit less one, and one more where the last kept bit is set.
  const std::string bits = cast("bitcast", "float", x, "i32");
  const std::string upper = binary("lshr", "i32", bits, k("i32", "16"));
  const std::string odd = binary("and", "i32", upper, k("i32", "1"));
  const std::string raised =
      binary("add", "i32", binary("add", "i32", bits, k("i32", "32767")), odd);
  const std::string quiet = binary("or", "i32", bits, k("i32", "4194304"));
  const std::string is_nan = binary("fcmp uno", "float", x, x);
  return upper_words(select("i32", is_nan, quiet, raised));
}

/// The upper halves of words. Of vectors they come by a shuffle, one instruction for two registers.
/// Shifts, truncations and what joins their halves would be five. Of pairs they come by shifts,
/// which are not truncated where the halves become words again.
std::string OpWriter::upper_words(const std::string& words) {
  if (lanes_ == 0 || pairs_)
    return cast("trunc", "i32", binary("lshr", "i32", words, k("i32", "16")), "i16");
  const std::string halves =
      out_.let(fmt::format("bitcast {} {} to {}", of("i32"), words, vector_of("i16", 2 * lanes_)));
  std::vector<int> indices;
  for (int lane = 0; lane < lanes_; ++lane) indices.push_back(2 * lane + 1);
  return out_.shuffle("i16", 2 * lanes_, halves, {}, indices);
}

// f64 to f32 rounded to odd: what a second rounding to 16 bits then gives is what one alone would.
std::string OpWriter::odd_float(const std::string& x) {
  const std::string nearest = cast("fptrunc", "double", x, "float");
  const std::string back = cast("fpext", "float", nearest, "double");
  const std::string inexact = binary("fcmp one", "double", back, x);
  const std::string beyond = binary("fcmp ogt", "double", call("fabs", "double", std::array{back}),
                                    call("fabs", "double", std::array{x}));
  const std::string bits = cast("bitcast", "float", nearest, "i32");
  const std::string below = binary("add", "i32", bits, k("i32", "-1"));
  const std::string truncated = select("i32", beyond, below, bits);
  const std::string odd = binary("or", "i32", truncated, k("i32", "1"));
  return cast("bitcast", "i32", select("i32", inexact, odd, bits), "float");
}

std::string OpWriter::half_of_integer(DType from, DType to, const std::string& x) {
  const std::string_view f = register_type(from);
  const bool is_signed_type = is_signed(from);
  const std::string_view to_float = is_signed_type ? "sitofp" : "uitofp";
  std::string value = x;
  if (size_of(from) <= 2) return narrow_half(to, cast(to_float, f, value, "float"));
  if (to == DType::f16) {
    // From 2^17 on all is infinite; up to there an f32 holds the integer.
    value = call(is_signed_type ? "smin" : "umin", f, std::array{value, k(f, "131072")});
    if (is_signed_type) value = call("smax", f, std::array{value, k(f, "-131072")});
    return narrow_half(to, cast(to_float, f, value, "float"));
  }
  if (size_of(from) == 8) {
    // Beyond 2^32 the low 16 bits only say whether anything is there: what remains fits an f64.
    const std::string low = binary("and", f, x, k(f, "65535"));
    const std::string kept = binary("and", f, x, k(f, "-65536"));
    const std::string jammed =
        select(f, binary("icmp eq", f, low, k(f, "0")), kept, binary("or", f, kept, k(f, "65536")));
    const std::string size =
        is_signed_type ? out_.intrinsic("abs", of(f), std::array{of(f)},
                                        std::array{Argument{of(f), x}, Argument{"i1", "false"}})
                       : x;
    value = select(f, binary("icmp ult", f, size, k(f, "4294967296")), x, jammed);
  }
  return narrow_half(to, odd_float(cast(to_float, f, value, "double")));
}

// Written out, because llvm.fptosi.sat of a vector becomes scalar code on x86.
std::string OpWriter::float_to_integer(DType from, DType to, const std::string& x) {
  const std::string_view f = register_type(from), t = register_type(to);
  const int bits = 8 * size_of(to);
  const bool is_signed_type = is_signed(to);
  const std::string_view wide = bits == 64 ? "i64" : "i32";
  const std::string low =
      k(f, is_signed_type ? power_of_two(bits - 1, true) : literal(DType::f64, 0));
  const std::string high = k(f, power_of_two(is_signed_type ? bits - 1 : bits));
  const std::string above = binary("fcmp oge", f, x, high);
  const std::string inside =
      binary("and", "i1", binary("fcmp ogt", f, x, low), binary("fcmp olt", f, x, high));
  const std::string safe = select(f, inside, x, k(f, literal(from, 0)));  // NaN and all beyond: 0
  const bool through_signed = is_signed_type || bits < 32;
  std::string value = cast(through_signed ? "fptosi" : "fptoui", f, safe, wide);
  const Bits most = (is_signed_type ? Bits{1} << (bits - 1) : bits == 64 ? 0 : Bits{1} << bits) - 1;
  value = select(wide, above, k(wide, fmt::format("{}", most)), value);
  if (is_signed_type) {
    const std::string least = fmt::format("-{}", Bits{1} << (bits - 1));
    value = select(wide, binary("fcmp ole", f, x, low), k(wide, least), value);
  }
  return wide == t ? value : cast("trunc", wide, value, t);
}

}  // namespace chainfold::codegen::llvm
