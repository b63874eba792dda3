// Partitions: how the elements are cut into segments.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/dsl/input.hpp"

namespace chainfold {

/// What happens where the number of elements is no multiple of the segment size. `error`: a run is
/// refused with UserError(not_a_multiple). `partial`: the last segment is shorter.
enum class Tail : std::uint8_t { error, partial };

namespace dsl {

/// The first argument of cf::over.
struct Partition {
  codegen::Partition::Kind kind = codegen::Partition::Kind::whole;
  std::int64_t size = 0;        ///< segments, columns: 0 where a parameter gives it
  std::string size_param = {};  ///< segments, columns: the name of that parameter
  DType size_type = DType::i64;
  Tail tail = Tail::error;

  codegen::Partition write(Walk& walk) const {
    codegen::Partition out;
    out.kind = kind;
    out.size = size;
    out.tail = tail == Tail::partial;
    if (kind != codegen::Partition::Kind::whole && size == 0) {
      out.size_param = walk.builder.param_index(walk.builder.param(size_param, size_type));
    }
    return out;
  }
};

}  // namespace dsl

namespace dsl {

template <class S>
struct IsSize : std::bool_constant<std::integral<S>> {};
template <DType T>
struct IsSize<Param<T>> : std::true_type {};
/// What cuts the elements: a number, or a parameter.
template <class S>
concept Size = IsSize<std::remove_cvref_t<S>>::value;

template <bool Columns, bool IsExpression>
struct SizeRule {
  static_assert(Columns || !IsExpression,
                "chainfold: the segment size is an expression; it is one number for all segments, "
                "cf::segments(64) or cf::segments(cf::param<std::int64_t>(\"S\")): segments of "
                "sizes that an input tells are not supported yet");
  static_assert(!Columns || !IsExpression,
                "chainfold: the number of columns is an expression; write cf::columns(1024) or "
                "cf::columns(cf::param<std::int64_t>(\"C\"))");
  static_assert(Columns || IsExpression,
                "chainfold: the segment size is an integer, e.g. cf::segments(64), or a parameter, "
                "cf::segments(cf::param<std::int64_t>(\"S\"))");
  static_assert(!Columns || IsExpression,
                "chainfold: the number of columns is an integer, e.g. cf::columns(1024), or a "
                "parameter, cf::columns(cf::param<std::int64_t>(\"C\"))");
};

}  // namespace dsl

/// The whole input is one segment.
inline dsl::Partition whole() { return {}; }

/// Segments of `size` consecutive elements, e.g. segments(64) or segments(64, cf::Tail::partial).
/// Throws UserError(invalid_argument) if size < 1.
template <std::integral I>
dsl::Partition segments(I size, Tail tail = Tail::error) {
  static_assert(!std::same_as<I, bool>, "chainfold: the segment size is a number of elements");
  if (std::cmp_less(size, 1) || std::cmp_greater(size, std::numeric_limits<std::int64_t>::max())) {
    throw UserError(ErrorCode::invalid_argument, "the segment size is " + std::to_string(size) +
                                                     "; it must be at least 1 and below 2^63");
  }
  return {.kind = codegen::Partition::Kind::segments,
          .size = static_cast<std::int64_t>(size),
          .tail = tail};
}

/// Segments of a size given at launch, e.g. segments(cf::param<std::int64_t>("S")); every size gets
/// a kernel of its own.
template <DType T>
dsl::Partition segments(const dsl::Param<T>& size, Tail tail = Tail::error) {
  static_assert(T == DType::i64 || T == DType::i32,
                "chainfold: the segment size must be a cf::param<std::int64_t> or <std::int32_t>");
  return {.kind = codegen::Partition::Kind::segments,
          .size_param = size.name,
          .size_type = T,
          .tail = tail};
}

/// Refused: sizes are numbers or parameters.
template <class S>
  requires(!dsl::Size<S>)
dsl::Partition segments(const S&, Tail = Tail::error) {
  (void)dsl::SizeRule<false, Expression<S>>{};
  return {};
}

/// The columns of a matrix of `count` columns whose rows follow each other in memory. Each column
/// is a segment. Its elements are in the order of the rows, so that cf::index() is the row's
/// number. A binding's stride gives the distance of rows that are padded, in elements. Throws
/// UserError(invalid_argument) if count < 1.
template <std::integral I>
dsl::Partition columns(I count) {
  static_assert(!std::same_as<I, bool>, "chainfold: the number of columns is a number");
  if (std::cmp_less(count, 1) ||
      std::cmp_greater(count, std::numeric_limits<std::int64_t>::max())) {
    throw UserError(ErrorCode::invalid_argument, "the number of columns is " +
                                                     std::to_string(count) +
                                                     "; it must be at least 1 and below 2^63");
  }
  return {.kind = codegen::Partition::Kind::columns, .size = static_cast<std::int64_t>(count)};
}

/// A number of columns given at launch, e.g. columns(cf::param<std::int64_t>("C")); every number
/// gets a kernel of its own.
template <DType T>
dsl::Partition columns(const dsl::Param<T>& count) {
  static_assert(
      T == DType::i64 || T == DType::i32,
      "chainfold: the number of columns must be a cf::param<std::int64_t> or <std::int32_t>");
  return {.kind = codegen::Partition::Kind::columns, .size_param = count.name, .size_type = T};
}

/// Refused: numbers of columns are numbers or parameters.
template <class S>
  requires(!dsl::Size<S>)
dsl::Partition columns(const S&) {
  (void)dsl::SizeRule<true, Expression<S>>{};
  return {};
}

}  // namespace chainfold
