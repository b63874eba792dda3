// Segments that offsets tell, for tests: lengths of every kind, and what offsets are bound for
// them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/data.hpp"

namespace chainfold::test {

/// How long segments are.
enum class Lengths : std::uint8_t {
  empty,      ///< all of none
  ones,       ///< all of one
  tiny,       ///< 0 to 3
  short_,     ///< 0 to 65
  geometric,  ///< of mean 100
  giant,      ///< one of most elements among tiny ones
  last,       ///< none but one, somewhere
  constant,   ///< 32 each
};
inline constexpr Lengths kAllLengths[] = {Lengths::empty,  Lengths::ones,      Lengths::tiny,
                                          Lengths::short_, Lengths::geometric, Lengths::giant,
                                          Lengths::last,   Lengths::constant};

/// Segments [begin, end), and how many elements there are.
struct Ragged {
  std::vector<std::pair<std::int64_t, std::int64_t>> segments;
  std::int64_t elements = 0;
  bool heads = false;  ///< told by an input of the graph, "begins", that is true where one begins
  bool pairs = false;  ///< told by two arrays, with gaps between segments
  DType type = DType::i64;  ///< of what tells them

  [[nodiscard]] dsl::Partition partition() const;
  /// One array, or two, named as the partition has them.
  [[nodiscard]] std::vector<Column> bounds() const;
};

/// Of segments told by heads, what the input says that tells them.
void set_heads(const codegen::Graph& graph, const Ragged& ragged, std::vector<Column>& inputs);

/// The same elements as segments that heads tell: without empty ones and gaps.
Ragged by_heads(const Ragged& ragged);

/// The elements of segments, one behind the other, of a value an element.
Column of_segments(const Column& all, const Ragged& ragged);
/// Which of the others does not hold the bytes `held`; empty if none.
std::string touched_between(const Column& all, const Ragged& ragged, std::byte held);

/// About `elements` elements; segments of no elements are at most as many. Some come before the
/// first segment and behind the last one.
Ragged make_ragged(Lengths lengths, std::int64_t elements, std::uint64_t seed, bool pairs = false,
                   DType type = DType::i64);

}  // namespace chainfold::test
