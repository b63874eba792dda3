#include "chainfold/codegen/plan/row_merges.hpp"

#include <algorithm>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kLaneBits = 5;
constexpr int kRunBytes = 16;
/// Bytes of the largest registers. Where registers have less, some exchanges between runs are none.
constexpr int kRegisterBytes = 64;

/// Bytes of a lane of the widest state; floats of 16 bits are computed as f32. Counts of moments
/// are left out: they are mostly known while compiling.
int widest_state(const Graph& graph) {
  constexpr int kFloat = 4;
  int bytes = 1;
  for (const Fold& fold : graph.folds) {
    const std::vector<DType> fields = carried_fields(fold);
    for (std::size_t i = fold.moments ? 1 : 0; i < fields.size(); ++i)
      bytes = std::max({bytes, size_of(fields[i]), is_float(fields[i]) ? kFloat : 1});
  }
  return bytes;
}

}  // namespace

std::int64_t reach_of_row(const Graph& graph, std::int64_t segment, int lanes) {
  return kWarpWidth / lanes * segment * widest_input(graph);
}

int LanePair::source(int lane, int half) const {
  const auto below = [](int bit) { return (1 << bit) - 1; };
  const int which = lane >> row & 1;
  const int rest = (lane & below(row)) | (lane >> 1 & ~below(row));
  const int from = (rest & below(merged)) | (rest & ~below(merged)) << 1 | half << merged;
  return which * kWarpWidth + from;
}

RowMerges::RowMerges(const Graph& graph, const Plan& plan, int rows)
    : ordered_(needs_order(graph)), patterns_(plan.vector_lanes && rows > 1) {
  reads_in_order_ =
      patterns_ && rows * reach_of_row(graph, plan.segment, plan.lanes_per_segment) > kReachBytes;
  const int elements = ceil_log2(plan.lanes_per_segment);
  for (int bit = 0; bit < kLaneBits; ++bit) {
    if (bit < elements) {
      labels_.push_back({Label::Kind::element});
    } else {
      labels_.push_back({Label::Kind::segment, bit - elements});
    }
  }
  const int bytes = widest_state(graph);
  run_bits_ = std::min(kLaneBits, ceil_log2(kRunBytes / bytes));
  register_bits_ = std::min(kLaneBits, ceil_log2(kRegisterBytes / bytes));
  while (1 << pairs_.size() < rows) {
    const int low = lowest(0, kLaneBits);
    merge(patterns_ ? next_pattern() : LanePair{low, low});
  }
}

bool RowMerges::is_element(int bit) const {
  return labels_[static_cast<std::size_t>(bit)].kind == Label::Kind::element;
}

int RowMerges::lowest(int from, int to) const {
  for (int bit = from; bit < to; ++bit)
    if (is_element(bit)) return bit;
  return -1;
}

int RowMerges::highest(int from, int to) const {
  for (int bit = to - 1; bit >= from; --bit)
    if (is_element(bit)) return bit;
  return -1;
}

LanePair RowMerges::next_pattern() const {
  const int far = highest(register_bits_, kLaneBits), near = lowest(0, run_bits_);
  if (!ordered_ && far >= 0) return {far, far};
  if (near >= 0) {
    // One instruction tells neighbours of 32 and 64 bits apart. Of 16 and 8 bits one puts the
    // halves of a run together.
    const int top = run_bits_ - 1;
    if (!ordered_ && run_bits_ > 2 && is_element(top)) return {top, 0};
    return {near, top};
  }
  if (const int run = lowest(run_bits_, register_bits_); run >= 0) return {run, register_bits_ - 1};
  const int bit = lowest(register_bits_, kLaneBits);
  return {bit, bit};
}

void RowMerges::merge(LanePair pair) {
  labels_.erase(labels_.begin() + pair.merged);
  labels_.insert(labels_.begin() + pair.row, {Label::Kind::row, static_cast<int>(pairs_.size())});
  pairs_.push_back(pair);
}

int RowMerges::row_bit(int merge) const {
  if (reads_in_order_) return merge;
  int bit = 0;
  for (const Label& label : labels_) {
    if (label.kind != Label::Kind::row) continue;
    if (label.index == merge) return bit;
    ++bit;
  }
  return bit;
}

std::vector<int> RowMerges::left() const {
  std::vector<int> bits;
  for (int bit = 0; bit < kLaneBits; ++bit)
    if (is_element(bit)) bits.push_back(bit);
  if (patterns_ && !ordered_) std::reverse(bits.begin(), bits.end());
  return bits;
}

int RowMerges::lane_of(int row, int k) const {
  int lane = 0;
  for (int bit = 0; bit < kLaneBits; ++bit) {
    const Label& label = labels_[static_cast<std::size_t>(bit)];
    int value = 0;
    if (label.kind == Label::Kind::segment) value = k >> label.index & 1;
    if (label.kind == Label::Kind::row) value = row >> row_bit(label.index) & 1;
    lane |= value << bit;
  }
  return lane;
}

}  // namespace chainfold::codegen
