#include "chainfold/codegen/emit/llvm/ops.hpp"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/op_table.hpp"

namespace chainfold::codegen::llvm {

std::string OpWriter::binary(std::string_view instruction, std::string_view element,
                             const std::string& a, const std::string& b) {
  return out_.let(fmt::format("{} {} {}, {}", instruction, of(element), a, b));
}

std::string OpWriter::select(std::string_view element, const std::string& condition,
                             const std::string& a, const std::string& b) {
  return out_.let(
      fmt::format("select {0} {1}, {2} {3}, {2} {4}", of("i1"), condition, of(element), a, b));
}

std::string OpWriter::cast(std::string_view instruction, std::string_view from,
                           const std::string& x, std::string_view to) {
  return out_.let(fmt::format("{} {} {} to {}", instruction, of(from), x, of(to)));
}

std::string OpWriter::call(std::string_view name, std::string_view element,
                           std::span<const std::string> args) {
  const std::string type = of(element);
  std::vector<Argument> arguments;
  for (const std::string& arg : args) arguments.emplace_back(type, arg);
  return out_.intrinsic(name, type, std::array{type}, arguments);
}

std::string OpWriter::compare(Op op, DType type, const std::string& a, const std::string& b) {
  constexpr std::array<std::string_view, 6> kNames{"eq", "ne", "lt", "le", "gt", "ge"};
  const std::string_view name =
      kNames[static_cast<std::size_t>(op) - static_cast<std::size_t>(Op::eq)];
  std::string predicate;
  if (is_float(type)) {
    predicate = fmt::format("fcmp {}{}", op == Op::ne ? "u" : "o", name);
  } else if (op == Op::eq || op == Op::ne) {
    predicate = fmt::format("icmp {}", name);
  } else {
    predicate = fmt::format("icmp {}{}", is_signed(type) ? "s" : "u", name);
  }
  return binary(predicate, register_type(type), a, b);
}

std::string OpWriter::compute(Op op, DType type, DType result, std::span<const std::string> args) {
  if (op == Op::convert) return convert(type, result, args[0]);
  if (op == Op::reinterpret) {
    const std::string_view from = register_type(type), to = register_type(result);
    return from == to ? args[0] : cast("bitcast", from, args[0], to);
  }
  if (is_comparison(op)) return compare(op, type, args[0], args[1]);
  return is_float(type) ? floating(op, type, args) : integer(op, type, args);
}

// No vector instruction divides 64-bit integers. Spelled out, 32 divisions take long to compile
// where a fold's merge has some. A loop over lanes is somewhat slower
// (docs/decisions/0019-first-results.md); of shorter integers, which compile sooner, more so.
std::string OpWriter::quotient(std::string_view instruction, std::string_view element,
                               const std::string& a, const std::string& b) {
  const bool by_constant = b.starts_with("splat");
  const bool is_known = !a.starts_with('%');
  if (lanes_ == 0 || is_known || element != "i64") return binary(instruction, element, a, b);
  const std::string vector = of(element);
  std::string name = fmt::format("@chainfold.{}.{}.{}", instruction, lanes_, element);
  std::string divisor = "%v", parameter = fmt::format(", {} %b", vector);
  std::string place = fmt::format("  %y = alloca {0}\n  store {0} %b, ptr %y\n", vector);
  std::string load =
      fmt::format("  %q = getelementptr {0}, ptr %y, i64 %i\n  %v = load {0}, ptr %q\n", element);
  if (by_constant) {
    const std::size_t from = b.rfind(' ') + 1;
    divisor = b.substr(from, b.size() - from - 1);
    name += ".by." + divisor;
    parameter = place = load = "";
  }
  out_.declare(
      fmt::format("define internal {0} {1}({0} %a{2}) noinline nounwind memory(none) {{\n"
                  "entry:\n  %x = alloca {0}\n  store {0} %a, ptr %x\n{3}  br label %each\n"
                  "each:\n  %i = phi i64 [ 0, %entry ], [ %next, %each ]\n"
                  "  %p = getelementptr {4}, ptr %x, i64 %i\n  %u = load {4}, ptr %p\n{5}"
                  "  %w = {6} {4} %u, {7}\n  store {4} %w, ptr %p\n"
                  "  %next = add nuw nsw i64 %i, 1\n  %more = icmp ult i64 %next, {8}\n"
                  "  br i1 %more, label %each, label %done, !llvm.loop !1\n"
                  "done:\n  %all = load {0}, ptr %x\n  ret {0} %all\n}}\n",
                  vector, name, parameter, place, element, load, instruction, divisor, lanes_));
  out_.declare(kRolled);
  const std::string second = by_constant ? "" : fmt::format(", {} {}", vector, b);
  return out_.let(fmt::format("call {0} {1}({0} {2}{3})", vector, name, a, second));
}

// The divisor that would trap is replaced before, its result afterwards.
std::string OpWriter::divide(Op op, DType type, const std::string& a, const std::string& b) {
  const std::string_view e = register_type(type);
  const std::string zero = k(e, "0"), one = k(e, "1"), minus_one = k(e, "-1");
  if (b.starts_with("splat") && b != zero && b != minus_one) {
    const std::string_view sign = is_signed(type) ? "s" : "u";
    return quotient(fmt::format("{}{}", sign, op == Op::div ? "div" : "rem"), e, a, b);
  }
  const std::string by_zero = binary("icmp eq", e, b, zero);
  if (!is_signed(type)) {
    const std::string safe = select(e, by_zero, one, b);
    const std::string result = quotient(op == Op::div ? "udiv" : "urem", e, a, safe);
    return select(e, by_zero, op == Op::div ? zero : a, result);
  }
  const std::string by_minus_one = binary("icmp eq", e, b, minus_one);
  const std::string traps = binary("or", "i1", by_zero, by_minus_one);
  const std::string safe = select(e, traps, one, b);
  if (op == Op::div) {
    const std::string result = quotient("sdiv", e, a, safe);
    const std::string negated = select(e, by_minus_one, binary("sub", e, zero, a), result);
    return select(e, by_zero, zero, negated);
  }
  const std::string result = quotient("srem", e, a, safe);  // by 1 instead of -1: 0 as well
  return select(e, by_zero, a, result);
}

std::string OpWriter::integer(Op op, DType type, std::span<const std::string> args) {
  const std::string_view e = register_type(type);
  const bool is_signed_type = is_signed(type);
  const auto simple = [&](std::string_view instruction) {
    return binary(instruction, e, args[0], args[1]);
  };
  const auto shift = [&](std::string_view instruction) {
    const std::string modulus = fmt::format("{}", 8 * size_of(type) - 1);
    return binary(instruction, e, args[0], binary("and", e, args[1], k(e, modulus)));
  };
  switch (op) {
    case Op::neg: return binary("sub", e, k(e, "0"), args[0]);
    case Op::abs: {
      if (!is_signed_type) return args[0];
      const std::array<Argument, 2> arguments{Argument{of(e), args[0]}, Argument{"i1", "false"}};
      return out_.intrinsic("abs", of(e), std::array{of(e)}, arguments);
    }
    case Op::sign: {
      const std::string zero = k(e, "0"), one = k(e, "1");
      const std::string above = select(e, binary("icmp ne", e, args[0], zero), one, zero);
      if (!is_signed_type) return above;
      return select(e, binary("icmp slt", e, args[0], zero), k(e, "-1"), above);
    }
    case Op::bit_not:
      return binary("xor", e, args[0], k(e, type == DType::boolean ? "true" : "-1"));
    case Op::add: return simple("add");
    case Op::sub: return simple("sub");
    case Op::mul: return simple("mul");
    case Op::div:
    case Op::rem: return divide(op, type, args[0], args[1]);
    case Op::min: return call(is_signed_type ? "smin" : "umin", e, args);
    case Op::max: return call(is_signed_type ? "smax" : "umax", e, args);
    case Op::bit_and: return simple("and");
    case Op::bit_or: return simple("or");
    case Op::bit_xor: return simple("xor");
    case Op::shl: return shift("shl");
    case Op::shr: return shift(is_signed_type ? "ashr" : "lshr");
    case Op::fma: return binary("add", e, simple("mul"), args[2]);
    default: break;
  }
  throw InternalError(fmt::format("{} is not defined on {}", name_of(op), name_of(type)));
}

// exp, log and pow are LLVM's own; it has none for the others, or folds them in other ways. What is
// declared here the compiler replaces by functions of vectors, or of each lane.
std::string OpWriter::library(std::string_view name, DType type,
                              std::span<const std::string> args) {
  const std::string_view e = register_type(type);
  if (name == "exp" || name == "log" || name == "pow") return call(name, e, args);
  const std::string vector = of(e);
  const std::string function =
      lanes_ == 0 ? fmt::format("@chainfold.library.{}.{}", name, name_of(type))
                  : fmt::format("@chainfold.library.{}.{}.{}", name, name_of(type), lanes_);
  out_.declare(
      fmt::format("declare {0} {1}({0}) nounwind willreturn memory(none)\n", vector, function));
  return out_.let(fmt::format("call {0} {1}({0} {2})", vector, function, args[0]));
}

std::string OpWriter::floating(Op op, DType type, std::span<const std::string> args) {
  const std::string_view e = register_type(type);
  const auto simple = [&](std::string_view instruction) {
    return binary(instruction, e, args[0], args[1]);
  };
  const OpRow& row = row_of(op);
  if (row.cpu == CpuForm::intrinsic) return call(row.cpu_name, e, args);
  if (row.cpu == CpuForm::library) return library(row.cpu_name, type, args);
  switch (op) {
    case Op::neg: return out_.let(fmt::format("fneg {} {}", of(e), args[0]));
    case Op::abs: return call("fabs", e, args);
    case Op::sign: {
      const std::string zero = k(e, "0.0"), one = k(e, "1.0"), minus = k(e, "-1.0");
      const std::string zeros = select(e, binary("fcmp oeq", e, args[0], zero), zero, args[0]);
      const std::string below = select(e, binary("fcmp olt", e, args[0], zero), minus, zeros);
      return select(e, binary("fcmp ogt", e, args[0], zero), one, below);
    }
    case Op::rsqrt: return binary("fdiv", e, k(e, "1.0"), call("sqrt", e, args));
    case Op::is_nan: return binary("fcmp uno", e, args[0], args[0]);
    case Op::is_infinite:
      return binary("fcmp oeq", e, call("fabs", e, args), k(e, "0x7FF0000000000000"));
    case Op::is_finite:
      return binary("fcmp olt", e, call("fabs", e, args), k(e, "0x7FF0000000000000"));
    case Op::add: return simple("fadd");
    case Op::sub: return simple("fsub");
    case Op::mul: return simple("fmul");
    case Op::div: return simple("fdiv");
    case Op::rem: return simple("frem");
    case Op::min: return call("minimum", e, args);
    case Op::max: return call("maximum", e, args);
    case Op::fma: return call("fma", e, args);
    default: break;
  }
  throw InternalError(fmt::format("{} is not defined on {}", name_of(op), name_of(type)));
}

}  // namespace chainfold::codegen::llvm
