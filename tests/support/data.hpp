// Columns of test data: typed host memory of an exact size, and generators for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::test {

using codegen::Bits;

/// Every type, in order.
std::vector<DType> all_types();

/// `count` elements of `type` in memory that begins `offset` bytes behind a multiple of 256, with a
/// sentinel behind the last element.
class Column {
 public:
  Column() = default;
  Column(DType type, std::int64_t count, int offset = 0);
  [[nodiscard]] DType type() const { return type_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] std::byte* data() { return memory_.get() + offset_; }
  [[nodiscard]] const std::byte* data() const { return memory_.get() + offset_; }
  [[nodiscard]] Bits get(std::int64_t i) const;
  void set(std::int64_t i, Bits bits);
  void set_double(std::int64_t i, double value) { set(i, codegen::bits_of_double(type_, value)); }
  /// Every byte of the elements becomes `value`.
  void fill(std::byte value);
  /// Booleans as bits in bytes, from bit `first` of the first byte on; other bits are noise. They
  /// live as long as the column does, or until it gives others.
  [[nodiscard]] const Column& packed(int first) const;
  /// Whether the bytes behind the last element are as they were made.
  [[nodiscard]] bool sentinel_intact() const;
  /// Bytes of the sentinel.
  static constexpr int kSentinel = 64;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  DType type_ = DType::f32;
  std::int64_t count_ = 0;
  int offset_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
  mutable std::unique_ptr<Column> packed_;
};

/// What kind of numbers a column holds. Each is defined for every type; a float's kind falls back
/// to `uniform` on integers where it makes no sense there.
enum class Fill : std::uint8_t {
  uniform,      ///< floats in (-1, 1), integers over the middle of the type's range, bools evenly
  normal,       ///< floats from N(0, 1), integers as uniform
  whole,        ///< whole numbers from -8 to 8 (0 to 16 where unsigned): sums are exact in floats
  adversarial,  ///< floats: the first of every 4096 is 32768, the others 2^-10 (1 - 2^-11)
  nonfinite,    ///< floats: uniform with some NaN and infinities; others as uniform
  subnormal,    ///< floats: subnormals and the smallest normals; others small numbers
  extremes,     ///< the ends of the type's range, 0, -0, 1, -1 and neighbours
  constant,     ///< the same anywhere in the type's range
  near_ends,  ///< floats of any sign within 2^8 of the largest or the smallest normal one, integers
              ///< within 16 of an end
};
std::string_view name_of(Fill fill);

Column make_column(DType type, std::int64_t count, Fill fill, std::uint64_t seed, int offset = 0);

/// One column for each input of the graph. `alignment` (1 to 256): no column is aligned to more,
/// except to its element size.
std::vector<Column> make_inputs(const codegen::Graph& graph, std::int64_t count, Fill fill,
                                std::uint64_t seed, int alignment = 256);

/// The bit at which tests let the bits of an input begin.
int first_bit(std::size_t input, std::uint64_t seed);

/// The same elements in rows of `row`, `stride` apart: NaN or noise between them, nothing behind
/// the last. `offset` as in Column.
Column spread(const Column& dense, std::int64_t row, std::int64_t stride, int offset = 0);

}  // namespace chainfold::test
