// What is measured: computations and their inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chainfold/bench/op.hpp"
#include "chainfold/bench/random_data.hpp"
#include "chainfold/chainfold.hpp"

namespace chainfold::bench {

/// Some elements of an input: `count` of them, `step` apart.
struct Elements {
  std::int64_t first = 0, count = 0, step = 1;
};

/// Segments whose lengths data decide.
struct RaggedSegments {
  std::string lengths;                ///< what they are like: "geometric"
  std::int64_t mean = 1;              ///< elements a segment, about
  std::vector<std::int64_t> offsets;  ///< one more than there are segments
  /// Of segments that begin where a flag is true, one an element; empty: the offsets tell them.
  std::vector<std::uint8_t> flags{};

  [[nodiscard]] bool has_flags() const { return !flags.empty(); }
  [[nodiscard]] std::int64_t segments() const {
    return static_cast<std::int64_t>(offsets.size()) - 1;
  }
  /// What tells the segments to a kernel, as it is bound.
  [[nodiscard]] const char* name() const { return has_flags() ? "begins" : "offsets"; }
  [[nodiscard]] DType type() const { return has_flags() ? DType::boolean : DType::i64; }
  [[nodiscard]] const void* data() const {
    return has_flags() ? static_cast<const void*>(flags.data()) : offsets.data();
  }
  [[nodiscard]] std::int64_t count() const {
    return static_cast<std::int64_t>(has_flags() ? flags.size() : offsets.size());
  }
  [[nodiscard]] std::int64_t bytes() const { return count() * size_of(type()); }
  [[nodiscard]] std::int64_t longest() const {
    std::int64_t most = 0;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
      most = std::max(most, offsets[s + 1] - offsets[s]);
    return most;
  }
  /// The number of its segment for each element, of those that flags tell.
  [[nodiscard]] std::vector<std::int32_t> keys() const {
    std::vector<std::int32_t> keys(flags.size());
    std::int32_t segment = -1;
    for (std::size_t i = 0; i < flags.size(); ++i) keys[i] = segment += flags[i] != 0 ? 1 : 0;
    return keys;
  }
  [[nodiscard]] Binding binding(const void* memory) const {
    return {name(), memory, type(), count()};
  }
};

/// One computation at one size.
struct Case {
  Op op;
  DType in, out;
  std::int64_t elements;  ///< a multiple of the segment size
  /// Elements of a segment, 0: whole; of columns rows, which each folds; of `ragged` about.
  std::int64_t segment;
  Computation computation;
  Source source;             ///< what the first input holds
  std::int64_t columns = 0;  ///< 0: segments follow each other; else those of a matrix
  bool cached = false;       ///< launches are to find the inputs in the caches
  bool in_place = false;     ///< of scans: the output is the input's memory
  std::int64_t offset = 0;   ///< inputs and outputs begin so many elements behind a line of memory
  std::shared_ptr<const RaggedSegments> ragged{};  ///< null: segments are of one length

  struct Input {
    std::string name;
    Source source;
    DType type;
  };
  [[nodiscard]] std::vector<Input> inputs() const;
  [[nodiscard]] std::int64_t segments() const {
    return ragged ? ragged->segments() : segment > 0 ? elements / segment : 1;
  }
  /// Values of each output: one a segment, of scans one an element.
  [[nodiscard]] std::int64_t output_size() const { return is_scan(op) ? elements : segments(); }
  [[nodiscard]] std::vector<Source> sources() const;
  /// Where the elements of a segment (or column) are.
  [[nodiscard]] Elements elements_of(std::int64_t index) const;
  /// The elements of the segment that an element is of, where each is of one.
  [[nodiscard]] Elements segment_around(std::int64_t element) const;
  /// What a plan is asked for: the segment size, or the number of columns.
  [[nodiscard]] std::int64_t plan_size() const {
    return ragged ? 0 : columns > 0 ? columns : segment;
  }
  /// "sum", "sum_axis0" for columns, or "inclusive_sum_in_place".
  [[nodiscard]] std::string op_name() const;
  [[nodiscard]] std::int64_t bytes_read() const;
  [[nodiscard]] std::int64_t bytes_written() const;
  /// e.g. "sum f16->f16 S=64"; what --only of the suite `first` matches, with the target behind it.
  [[nodiscard]] std::string name() const;
};

/// A case over as many whole segments as fit into `elements`. Throws std::logic_error where there
/// is no such benchmark.
Case make_case(Op op, DType in, DType out, std::int64_t elements, std::int64_t segment);
/// The same with the type that the expression has.
Case make_case(Op op, DType in, std::int64_t elements, std::int64_t segment);
/// A case over segments that data tell.
Case make_ragged_case(Op op, DType in, DType out,
                      const std::shared_ptr<const RaggedSegments>& segments);
/// A case over the columns of a matrix of as many whole rows as fit into `elements`.
Case make_columns_case(Op op, DType in, DType out, std::int64_t elements, std::int64_t columns);

}  // namespace chainfold::bench
