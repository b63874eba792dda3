// Partitions: how the elements are cut into segments.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  std::vector<codegen::GraphInput> bounds = {};  ///< offsets: names and types
  /// heads: writes the condition.
  std::function<codegen::NodeId(Walk&)> condition = {};

  codegen::Partition write(Walk& walk) const {
    codegen::Partition out;
    out.kind = kind;
    out.size = size;
    out.tail = tail == Tail::partial;
    for (const codegen::GraphInput& bound : bounds)
      out.bounds.push_back(walk.builder.bound(bound.name, bound.type));
    if (out.has_size() && size == 0) {
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
                "cf::segments(64) or cf::segments(cf::param<std::int64_t>(\"S\")); where an array "
                "tells the segments write cf::offsets(\"row_ptr\")");
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

namespace dsl {
template <class T>
struct OffsetsRule {
  static constexpr bool kInteger = std::same_as<T, std::int64_t> || std::same_as<T, std::int32_t>;
  static_assert(kInteger,
                "chainfold: offsets are std::int64_t or std::int32_t, e.g. "
                "cf::offsets<std::int32_t>(\"row_ptr\")");
  static constexpr DType kType = std::same_as<T, std::int32_t> ? DType::i32 : DType::i64;
};
}  // namespace dsl

/// Segments that an array tells: of m + 1 offsets o, segment i is the elements [o_i, o_(i+1)), as
/// the row pointers of a CSR matrix or the offsets of an Arrow list have it. Segments may be empty;
/// a fold of one is that of nothing. Elements before the first offset and from the last one on
/// belong to none. cf::index(), argmin and argmax are positions in the segment.
///
///     auto x = cf::input<float>("x");
///     auto rows = cf::over(cf::offsets("row_ptr"), cf::sum(x), cf::max(x));
///     auto [sum, largest] = cf::compile(rows).run({{"x", values}, {"row_ptr", offsets}});
///
/// T is the offsets' type, std::int64_t or std::int32_t. They are bound by name with their count,
/// and lie where the inputs do. Offsets that decrease, are negative, or lie behind the elements
/// make run() throw UserError(wrong_offset); a launch writes no output then and tells its
/// LaunchStatus. Time: of elements and segments together, however they are shared out (by a merge
/// path; Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", 2016).
template <class T = std::int64_t>
dsl::Partition offsets(std::string_view name) {
  return {.kind = codegen::Partition::Kind::offsets,
          .bounds = {{std::string(name), dsl::OffsetsRule<T>::kType}}};
}

/// Segments with gaps between them: segment i is the elements [begin_i, end_i), and each ends
/// before or where the next one begins. Elements of the gaps belong to none.
template <class T = std::int64_t>
dsl::Partition offsets(std::string_view begin, std::string_view end) {
  constexpr DType kType = dsl::OffsetsRule<T>::kType;
  return {.kind = codegen::Partition::Kind::offsets,
          .bounds = {{std::string(begin), kType}, {std::string(end), kType}}};
}

namespace dsl {

template <DType T, Level L>
struct HeadsRule {
  static_assert(L == Level::element || L == Level::uniform,
                "chainfold: the condition of cf::heads is computed from inputs, parameters and "
                "cf::lag, not from folds or scans");
  static_assert(T == DType::boolean,
                "chainfold: the condition of cf::heads is a bool, e.g. "
                "cf::heads(key != cf::lag(key, 1, 0))");
};

}  // namespace dsl

/// Segments that begin at the first element and wherever the condition is true, such as sessions
/// of an event log:
///
///     auto t = cf::input<std::int64_t>("t");
///     auto sessions = cf::over(cf::heads(t - cf::lag(t, 1, 0) > 1800), cf::count(), cf::max(t));
///
/// The data tell how many there are. run() returns as many values; a launch writes no more than its
/// outputs have room for, and tells LaunchStatus::segments. Time: one read of the folds'
/// inputs and two of the condition's.
template <Expression E>
dsl::Partition heads(const E& condition) {
  (void)dsl::HeadsRule<E::kType, E::kLevel>{};
  return {.kind = codegen::Partition::Kind::heads,
          .condition = [condition](dsl::Walk& walk) { return condition.write(walk); }};
}

}  // namespace chainfold
