// Expressions: what all of them share.
//
// The type of an expression is its tree. Each node has an element type and a level: one value an
// element, a segment or a launch. The C++ compiler knows both and checks them as the expression is
// written. Operands are held by value and names are copied, so nothing dangles. Copying is cheap
// and an expression never changes. `cf::over` walks the tree once into a graph, where equal inputs
// and equal subexpressions become one node.
//
// A tree of more than kMaxNodes nodes is refused at compile time: `cf::let(part)` makes one node of
// a part of it.
#pragma once

#include <algorithm>
#include <concepts>
#include <map>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold {

/// How many values an expression has: one a launch (uniform), one a segment or one an element. What
/// a monoid computes from its arguments (monoid.hpp) has a level of its own: state.
using codegen::Level;

namespace dsl {
/// The message where C++ asks an expression for its value.
template <class T>
struct NoValueRule {
  static constexpr bool kHasValue = std::is_void_v<T>;
  static_assert(kHasValue,
                "chainfold: an expression has no value in C++, it stands for what a kernel "
                "computes; use cf::max, cf::min, cf::sqrt, ... instead of std::, cf::cast<T>(x) "
                "instead of static_cast, and cf::select instead of if and ?:");
};
}  // namespace dsl

/// The base of every expression. It makes the operators of namespace chainfold findable.
struct ExpressionBase {
  /// Refuses std::max(x, y), if (x > 0), std::sqrt(x) and static_cast<float>(x), and says what to
  /// write instead. As a template it is found where no function takes expressions.
  template <class T>
    requires std::is_arithmetic_v<T>
  explicit(!std::same_as<T, double>) operator T() const {
    (void)dsl::NoValueRule<T>{};
    return T{};
  }
};

/// An expression over the elements of a launch: an input or what was written with it.
template <class E>
concept Expression = std::derived_from<std::remove_cvref_t<E>, ExpressionBase>;

/// The element type of an expression.
template <Expression E>
inline constexpr DType kTypeOf = std::remove_cvref_t<E>::kType;
/// The level of an expression.
template <Expression E>
inline constexpr Level kLevelOf = std::remove_cvref_t<E>::kLevel;

/// The most nodes that the tree of one expression may have.
inline constexpr int kMaxNodes = 2000;
/// The most operations that may lie inside one another, e.g. in a sum written x + y + z + ...
inline constexpr int kMaxDepth = 256;

namespace dsl {

/// One walk from expressions into a graph.
struct Walk {
  codegen::GraphBuilder builder;
  std::unordered_map<const void*, codegen::NodeId> lets;               ///< what is written already
  std::map<std::pair<const void*, DType>, codegen::NodeId> wide_lets;  ///< the same, as wider types
};

/// What every expression class has: N nodes, at most D of them inside one another.
/// `let_depth`: how many cf::let lie inside one another. `kFolds`: whether a fold makes it a value
/// of the segment. `kScans`: whether it depends on a scan.
template <DType T, Level L, int N, int D>
struct Node : ExpressionBase {
  static_assert(N <= kMaxNodes,
                "chainfold: this expression has more than 2000 nodes; write `auto part = "
                "cf::let(...)` for a part of it, which then counts as one node");
  static_assert(
      D <= kMaxDepth,
      "chainfold: more than 256 operations of this expression lie inside one another; write "
      "`auto part = cf::let(...)` for a part of it, which then counts as one node");
  explicit Node(int depth = 0) noexcept : let_depth(depth) {}
  static constexpr DType kType = T;
  static constexpr Level kLevel = L;
  static constexpr int kNodes = N <= kMaxNodes ? N : 1;  // one message is enough
  static constexpr int kDepth = D <= kMaxDepth ? D : 1;
  static constexpr bool kFolds = false;
  static constexpr bool kScans = false;
  int let_depth;
};
template <DType T, Level L>
using Leaf = Node<T, L, 1, 1>;
/// An operation on A...: one more node than they have together.
template <DType T, Level L, class... A>
struct Operation : Node<T, L, (1 + ... + A::kNodes), 1 + std::max({A::kDepth...})> {
  using Node<T, L, (1 + ... + A::kNodes), 1 + std::max({A::kDepth...})>::Node;
  static constexpr bool kFolds = (A::kFolds || ...);
  static constexpr bool kScans = (A::kScans || ...);
};

// Directly below a sum, a mean, a dot product or a norm of integers, `+ - *` and fma are computed
// in the sum's type. They count as directly below through one another, through cf::let and through
// the values of a select. Casts, comparisons, divisions, shifts and operations on bits keep their
// type, and so end it.

/// Whether an operation is one of those.
constexpr bool is_exact_wide(codegen::Op op) noexcept {
  return op == codegen::Op::add || op == codegen::Op::sub || op == codegen::Op::mul ||
         op == codegen::Op::neg || op == codegen::Op::fma || op == codegen::Op::select;
}
/// More bits than any type has.
inline constexpr int kAnyBits = 65;
/// Bits that hold every value of `t` as a signed integer.
constexpr int signed_bits(DType t) noexcept { return 8 * size_of(t) + (is_signed(t) ? 0 : 1); }
/// The same of what an operation gives, wherever it is computed.
constexpr int signed_bits(codegen::Op op, int a, int b, int c = 0) noexcept {
  switch (op) {
    case codegen::Op::mul: return std::min(a + b, kAnyBits);
    case codegen::Op::fma: return std::min(std::max(a + b, c) + 1, kAnyBits);
    case codegen::Op::select: return std::max(b, c);
    default: return std::min(std::max(a, b) + 1, kAnyBits);
  }
}
template <class E>
constexpr int exact_bits() noexcept {
  if constexpr (requires { E::kExactBits; }) {
    return E::kExactBits;
  } else {
    return signed_bits(E::kType);
  }
}
/// Whether the types of an expression show that none of its values is below zero.
template <class E>
constexpr bool is_unsigned() noexcept {
  if constexpr (requires { E::kUnsigned; }) {
    return E::kUnsigned;
  } else {
    return !is_float(E::kType) && !is_signed(E::kType);
  }
}
/// Sums of unsigned numbers and of their sums and products are u64, of other integers i64.
template <class E>
inline constexpr DType kSumOf = is_float(E::kType) ? sum_type(E::kType)
                                : is_unsigned<E>() ? DType::u64
                                                   : DType::i64;
/// Whether a sum's operand would wrap in its own type. Others are computed there, which costs less.
template <class E>
inline constexpr bool kNeedsWide = is_integer(E::kType) && size_of(E::kType) < 8 &&
                                   exact_bits<E>() > 8 * size_of(E::kType) &&
                                   requires(const E& e, Walk& walk) {
                                     e.write_wide(walk, E::kType);
                                   };

/// `e` as a `to`, an integer of 64 bits, without wrapping in its own type.
template <class E>
codegen::NodeId write_as(const E& e, Walk& walk, DType to) {
  if constexpr (kNeedsWide<E>) {
    return e.write_wide(walk, to);
  } else {
    return walk.builder.convert(e.write(walk), to);
  }
}
/// The same in its own type where that holds it, else in that of its sum.
template <class E>
codegen::NodeId write_exact(const E& e, Walk& walk) {
  if constexpr (kNeedsWide<E>) {
    return e.write_wide(walk, kSumOf<E>);
  } else {
    return e.write(walk);
  }
}

template <class... A>
inline constexpr Level kJoined = std::max({A::kLevel...});

/// An operation on one expression, computed in P, of type T.
template <codegen::Op O, DType T, DType P, class A>
struct Unary : Operation<T, A::kLevel, A> {
  static constexpr int kExactBits =
      O == codegen::Op::neg ? signed_bits(O, exact_bits<A>(), 0) : signed_bits(T);
  explicit Unary(A operand)
      : Operation<T, A::kLevel, A>(operand.let_depth), a(std::move(operand)) {}
  codegen::NodeId write(Walk& walk) const {
    const codegen::NodeId x = a.write(walk);
    if constexpr (O == codegen::Op::convert) {
      return walk.builder.convert(x, T);
    } else {
      return walk.builder.compute(O, {walk.builder.convert(x, P)});
    }
  }
  codegen::NodeId write_wide(Walk& walk, DType to) const
    requires(is_exact_wide(O))
  {
    return walk.builder.compute(O, {write_as(a, walk, to)});
  }
  A a;
};

/// An operation on two expressions, both computed in P, of type T.
template <codegen::Op O, DType T, DType P, class A, class B>
struct Binary : Operation<T, kJoined<A, B>, A, B> {
  static constexpr int kExactBits =
      is_exact_wide(O) ? signed_bits(O, exact_bits<A>(), exact_bits<B>()) : signed_bits(T);
  static constexpr bool kUnsigned =
      is_integer(T) && (!is_signed(T) || ((O == codegen::Op::add || O == codegen::Op::mul) &&
                                          is_unsigned<A>() && is_unsigned<B>()));
  Binary(A x, B y)
      : Operation<T, kJoined<A, B>, A, B>(std::max(x.let_depth, y.let_depth)),
        a(std::move(x)),
        b(std::move(y)) {}
  codegen::NodeId write(Walk& walk) const {
    const codegen::NodeId x = walk.builder.convert(a.write(walk), P);
    const codegen::NodeId y = walk.builder.convert(b.write(walk), P);
    return walk.builder.compute(O, {x, y});
  }
  codegen::NodeId write_wide(Walk& walk, DType to) const
    requires(is_exact_wide(O))
  {
    const codegen::NodeId x = write_as(a, walk, to);
    return walk.builder.compute(O, {x, write_as(b, walk, to)});
  }
  A a;
  B b;
};

/// fma, or select with a boolean first operand; the others are computed in T.
template <codegen::Op O, DType T, class A, class B, class C>
struct Ternary : Operation<T, kJoined<A, B, C>, A, B, C> {
  static constexpr int kExactBits =
      signed_bits(O, exact_bits<A>(), exact_bits<B>(), exact_bits<C>());
  static constexpr bool kUnsigned =
      is_integer(T) && (!is_signed(T) || ((O == codegen::Op::select || is_unsigned<A>()) &&
                                          is_unsigned<B>() && is_unsigned<C>()));
  Ternary(A x, B y, C z)
      : Operation<T, kJoined<A, B, C>, A, B, C>(std::max({x.let_depth, y.let_depth, z.let_depth})),
        a(std::move(x)),
        b(std::move(y)),
        c(std::move(z)) {}
  codegen::NodeId write(Walk& walk) const {
    codegen::NodeId x = a.write(walk);
    if (O != codegen::Op::select) x = walk.builder.convert(x, T);
    const codegen::NodeId y = walk.builder.convert(b.write(walk), T);
    const codegen::NodeId z = walk.builder.convert(c.write(walk), T);
    return walk.builder.compute(O, {x, y, z});
  }
  codegen::NodeId write_wide(Walk& walk, DType to) const {
    codegen::NodeId x = codegen::kNoNode;
    if constexpr (O == codegen::Op::select) {
      x = a.write(walk);
    } else {
      x = write_as(a, walk, to);
    }
    const codegen::NodeId y = write_as(b, walk, to);
    return walk.builder.compute(O, {x, y, write_as(c, walk, to)});
  }
  A a;
  B b;
  C c;
};

}  // namespace dsl
}  // namespace chainfold
