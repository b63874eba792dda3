// Literals: plain C++ numbers beside expressions.
//
// A literal takes the type of the expression beside it (f32 beside f16 and bf16, which compute in
// f32). Its value must be exact there: `x * 0.1` for an f32 x is an error, `x * 0.1f` is not. The
// C++ compiler does not know the value, so the error is a UserError(type_mismatch) when the
// expression is built. A floating-point literal beside an integer expression is refused at compile
// time. So is a bool beside a number, or a number beside a bool.
//
// Literals are arguments of the kernel, so that 2 * x and 3 * x share one kernel. These are part of
// the kernel: 0, 1, -1, booleans, exponents of cf::pow, and literals marked with cf::constant.
#pragma once

#include <ranges>
#include <type_traits>
#include <utility>

#include "chainfold/codegen/base/element_rule.hpp"
#include "chainfold/codegen/base/literal.hpp"
#include "chainfold/dsl/expr.hpp"

namespace chainfold {
namespace dsl {

/// A literal that is part of the kernel; see cf::constant.
template <Element T>
struct Constant {
  T value;
};

template <class T>
constexpr bool is_range_of_elements() {
  if constexpr (std::ranges::contiguous_range<T>) {
    return Element<std::ranges::range_value_t<T>>;
  } else {
    return false;
  }
}
template <class T>
inline constexpr bool kElements = is_range_of_elements<T>();
/// Numbers of C++ that are no element types, and arrays: taken as operands, to be refused by
/// ElementRule.
template <class T>
inline constexpr bool kForeignOperand =
    !Element<T> && !Expression<T> &&
    (std::is_arithmetic_v<T> || std::is_enum_v<T> || IsComplexNumber<T>::value || kElements<T>);

template <class T>
struct ScalarOf {
  static constexpr bool kIs = Element<T> || kForeignOperand<T>;
};
template <class T>
struct ScalarOf<Constant<T>> {
  static constexpr bool kIs = true;
};

/// A C++ number, or one marked constant.
template <class T>
concept Scalar = ScalarOf<std::remove_cvref_t<T>>::kIs;
/// Operands of an operation: at least one expression, beside it expressions and numbers.
template <class... T>
concept Operands = ((Expression<T> || Scalar<T>) && ...) && (Expression<T> || ...);

template <class T>
struct ElementOf {
  using type = T;
};
template <class T>
struct ElementOf<Constant<T>> {
  using type = T;
};
/// Whether a number is of an element type.
template <Scalar T>
inline constexpr bool kIsElement = Element<typename ElementOf<std::remove_cvref_t<T>>::type>;

/// The type that a C++ number has by itself.
template <Scalar T>
inline constexpr DType kOwnType =
    kDType<ElementOr<typename ElementOf<std::remove_cvref_t<T>>::type>>;

/// A literal in an expression.
template <DType T, bool IsConstant>
struct Literal : Leaf<T, Level::uniform> {
  explicit Literal(codegen::Bits value) : bits(value) {}
  codegen::NodeId write(Walk& walk) const {
    return IsConstant ? walk.builder.constant(T, bits) : walk.builder.literal(T, bits);
  }
  codegen::Bits bits;
};

/// The type of a literal beside an expression of type `beside`.
constexpr DType literal_type(DType beside) noexcept {
  return beside == DType::f16 || beside == DType::bf16 ? DType::f32 : beside;
}

template <DType Own, DType Beside>
struct LiteralRule {
  static constexpr bool kFloatBesideInteger = is_float(Own) && is_integer(Beside);
  static constexpr bool kBoolWithNumber = (Own == DType::boolean) != (Beside == DType::boolean);
  static_assert(!kFloatBesideInteger,
                "chainfold: a floating-point literal beside an integer expression; cast the "
                "expression first, e.g. cf::cast<float>(x) * 0.5f");
  static_assert(!kBoolWithNumber,
                "chainfold: a bool and a number have no common type; compare the number (x != 0) "
                "or cast the bool (cf::cast<std::int32_t>(b))");
};

template <class T>
T scalar_value(const T& value) {
  return value;
}
template <class T>
T scalar_value(const Constant<T>& value) {
  return value.value;
}

template <class T>
struct IsConstant : std::false_type {};
template <class T>
struct IsConstant<Constant<T>> : std::true_type {};

/// An operand as an expression. A number is checked against the type `Beside` and becomes a literal
/// of type P, which holds all values of Beside.
template <DType P, DType Beside, bool MakeConstant = false, class X>
auto as_expression(X&& x) {
  using Plain = std::remove_cvref_t<X>;
  if constexpr (Expression<X>) {
    return Plain(std::forward<X>(x));
  } else if constexpr (!kIsElement<X>) {
    (void)ElementRule<Plain>{};
    return Literal<P, false>(0);
  } else {
    constexpr DType kOwn = kOwnType<X>;
    (void)LiteralRule<kOwn, Beside>{};
    const codegen::Bits own = codegen::bits_of(scalar_value(x));
    const codegen::Bits checked = codegen::literal_bits(literal_type(Beside), kOwn, own);
    return Literal < P,
           MakeConstant ||
               IsConstant<Plain>::value >
                   (codegen::evaluate(codegen::Op::convert, literal_type(Beside), P, checked));
  }
}

}  // namespace dsl

/// Marks a literal as part of the kernel instead of an argument of it. The compiler may then use
/// its value, and another value means another kernel. It is an operand like the number itself.
template <class T>
auto constant(T value) {
  (void)ElementRule<T>{};
  if constexpr (Element<T>) {
    return dsl::Constant<T>{value};
  } else {
    return dsl::Constant<float>{};
  }
}

}  // namespace chainfold
