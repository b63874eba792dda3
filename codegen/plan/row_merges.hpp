// RowMerges: in which order the lanes of rows are merged while rows are merged in pairs, and which
// lane each result ends up in.
//
// A row is one value a lane. The lowest bits of its lanes' numbers are element bits, which tell the
// lanes that share a segment; those above them are segment bits. A pair's merge takes two rows,
// merges the lanes that differ in one element bit, and puts a row bit in its place or elsewhere.
// Half of the result's lanes belong to one row, half to the other. After one merge for each bit of
// a row's number, what is left of the element bits is merged within the one value.
//
// Any order serves a fold that is commutative. Where lanes exchange values on their own (GPUs) it
// is from the lowest bit up, and each bit stays where it is. Where lanes are elements of vector
// registers, a pair's sides are two patterns of lanes, each taken from both rows. A pattern is one
// instruction where runs of 128 bits stay in place or move as a whole. So the bits that tell
// registers apart come first, whose exchange is none, then those within a run, then those of runs.
#pragma once

#include <cstdint>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

/// Bytes within which loads of vectors may go to and fro: a processor's prefetchers do not follow
/// them over more (docs/tuned-values.md#rows).
inline constexpr std::int64_t kReachBytes = 1024;

/// Bytes of the segments that lie side by side in a row where `lanes` lanes share one.
std::int64_t reach_of_row(const Graph& graph, std::int64_t segment, int lanes);

/// Merges lanes of two rows that differ in bit `merged` of their number. Bit `row` of a result's
/// lane tells which row it belongs to, and the bits between them move by one place.
struct LanePair {
  int merged = 0;
  int row = 0;

  /// Where a result's lane takes its left (`half` 0) or right side from: 32 and more are lanes of
  /// the second row.
  [[nodiscard]] int source(int lane, int half) const;
};

class RowMerges {
 public:
  /// Of `rows` rows (a power of two, at most the plan's lanes a segment).
  RowMerges(const Graph& graph, const Plan& plan, int rows);

  /// The first merge first.
  [[nodiscard]] const std::vector<LanePair>& pairs() const { return pairs_; }
  /// What the two sides of a merge differ in: a bit of the row's number. These bits are such that
  /// rows lie in the order of their lanes. Of rows that reach over more than kReachBytes,
  /// neighbours are merged first, and rows are read in the order of memory.
  [[nodiscard]] int row_bit(int merge) const;
  /// Bits of lanes that still share a segment when all rows are merged, in the order in which they
  /// are to be merged.
  [[nodiscard]] std::vector<int> left() const;
  /// The lane that holds the result of a row's k-th segment.
  [[nodiscard]] int lane_of(int row, int k) const;

 private:
  /// What a bit of the lane's number tells; `index` counts segment bits, or merges.
  struct Label {
    enum class Kind : std::uint8_t { element, segment, row };
    Kind kind;
    int index = 0;
  };
  [[nodiscard]] bool is_element(int bit) const;
  /// The lowest, or highest, element bit in [from, to); -1: there is none.
  [[nodiscard]] int lowest(int from, int to) const;
  [[nodiscard]] int highest(int from, int to) const;
  [[nodiscard]] LanePair next_pattern() const;
  void merge(LanePair pair);

  std::vector<Label> labels_;  // of the bits of a lane's number
  std::vector<LanePair> pairs_;
  bool ordered_;
  bool reads_in_order_;
  bool patterns_;
  int run_bits_ = 0, register_bits_ = 0;  // of lanes within 128 bits, and within a register
};

}  // namespace chainfold::codegen
