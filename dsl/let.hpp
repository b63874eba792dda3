// cf::let: a part of an expression as one node.
#pragma once

#include <memory>
#include <utility>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/dsl/expr.hpp"

namespace chainfold {
namespace dsl {

/// How many cf::let may lie inside one another: writing and freeing them takes stack for each.
inline constexpr int kMaxLetDepth = 5000;

struct LetBody {
  virtual ~LetBody() = default;
  virtual codegen::NodeId write(Walk& walk) const = 0;
  /// As a `to`, by operations in that type (write_as).
  virtual codegen::NodeId write_wide(Walk& walk, DType to) const = 0;
};

template <class E>
struct LetOf final : LetBody {
  explicit LetOf(E expression) : e(std::move(expression)) {}
  codegen::NodeId write(Walk& walk) const override { return e.write(walk); }
  codegen::NodeId write_wide(Walk& walk, DType to) const override { return write_as(e, walk, to); }
  E e;
};

/// A handle of an expression of type T and level L, written once however often it is used. All
/// handles of one type and level have one C++ type, so one may be assigned to another. So the bits
/// that its body needs are unknown here (kExactBits), and write_wide asks the body for them.
template <DType T, Level L, bool Folds, bool Scans>
struct Let : Leaf<T, L> {
  static constexpr bool kFolds = Folds;
  static constexpr bool kScans = Scans;
  static constexpr int kExactBits = kAnyBits;
  template <class E>
  explicit Let(E e, int depth)
      : Leaf<T, L>(depth), body(std::make_shared<const LetOf<E>>(std::move(e))) {}
  codegen::NodeId write(Walk& walk) const {
    const auto known = walk.lets.find(body.get());
    if (known != walk.lets.end()) return known->second;
    const codegen::NodeId id = body->write(walk);
    walk.lets.emplace(body.get(), id);
    return id;
  }
  codegen::NodeId write_wide(Walk& walk, DType to) const {
    const std::pair<const void*, DType> key(body.get(), to);
    const auto known = walk.wide_lets.find(key);
    if (known != walk.wide_lets.end()) return known->second;
    const codegen::NodeId id = body->write_wide(walk, to);
    walk.wide_lets.emplace(key, id);
    return id;
  }
  std::shared_ptr<const LetBody> body;
};

}  // namespace dsl

/// The same value as `e`, of the same type and level, but one node for the compiler. So large
/// expressions are built of parts, also in a loop:
///
///     auto p = cf::let(x * 0.0f);
///     for (float c : coefficients) p = cf::let(p * x + c);
///
/// Throws UserError(unsupported) when more than 5000 lie inside one another.
template <Expression E>
auto let(E&& e) {
  const int depth = e.let_depth + 1;
  if (depth > dsl::kMaxLetDepth) {
    throw UserError(ErrorCode::unsupported,
                    "more than 5000 cf::let lie inside one another; combine the parts of the "
                    "expression as a tree instead of one by one");
  }
  using Plain = std::remove_cvref_t<E>;
  return dsl::Let<Plain::kType, Plain::kLevel, Plain::kFolds, Plain::kScans>(
      Plain(std::forward<E>(e)), depth);
}

}  // namespace chainfold
