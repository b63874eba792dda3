// Partitions: how the elements are cut into segments.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "chainfold/codegen/error.hpp"
#include "chainfold/dsl/input.hpp"

namespace chainfold {

/// What happens where the number of elements is no multiple of the segment size: a run is refused
/// with UserError(not_a_multiple), or the last segment is shorter.
enum class Tail : std::uint8_t { error, partial };

namespace dsl {

/// The first argument of cf::over.
struct Partition {
  codegen::Partition::Kind kind = codegen::Partition::Kind::whole;
  std::int64_t size = 0;        ///< segments: 0 where a parameter gives it
  std::string size_param = {};  ///< segments: the name of that parameter
  DType size_type = DType::i64;
  Tail tail = Tail::error;

  codegen::Partition write(Walk& walk) const {
    codegen::Partition out;
    out.kind = kind;
    out.size = size;
    out.tail = tail == Tail::partial;
    if (kind == codegen::Partition::Kind::segments && size == 0) {
      out.size_param = walk.builder.param_index(walk.builder.param(size_param, size_type));
    }
    return out;
  }
};

}  // namespace dsl

/// All elements are one segment.
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

}  // namespace chainfold
