// GraphBuilder: writes canonical graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"

namespace chainfold::codegen {

/// Writes a canonical graph: constants are evaluated, commutative operands ordered, equal nodes
/// found. Throws UserError for one name with two types and for operations undefined on their type.
class GraphBuilder {
 public:
  NodeId input(std::string_view name, DType type, InputAccess access = InputAccess::elements);
  NodeId param(std::string_view name, DType type);
  /// The value `distance` elements before in the input, or `initial` (uniform, of its type) where
  /// there is none. Throws UserError for a distance below 1, and for a value with a lag of its own.
  NodeId lag(NodeId value, int distance, NodeId initial);
  /// An array that tells where segments begin or end (Partition::bounds), a name of its own.
  GraphInput bound(std::string_view name, DType type);
  NodeId literal(DType type, Bits bits);  ///< 0, 1 and -1 become constants
  NodeId constant(DType type, Bits bits);
  NodeId extent();  ///< i64, segment level
  NodeId index();   ///< i64, element level
  /// Parameter `index` of the Lambda that is being written.
  NodeId field(int index, DType type);
  /// What `results` compute from fields, as a Lambda of these parameters; literals become
  /// constants. Throws UserError, naming `what`, for anything but fields and literals below them.
  [[nodiscard]] Lambda lambda(std::string_view what, std::vector<DType> params,
                              const std::vector<NodeId>& results) const;
  /// Operands must have one type (select: the last two); no implicit conversion happens here.
  NodeId compute(Op op, std::vector<NodeId> operands);
  NodeId convert(NodeId value, DType type);
  /// `filter` is a boolean element- or uniform-level node, or kNoNode. `part`: which of the fold's
  /// results.
  NodeId fold(Fold fold, std::vector<NodeId> operands, NodeId filter = kNoNode, int part = 0);
  /// The same fold of the elements so far, for each of them.
  NodeId scan(Fold fold, std::vector<NodeId> operands, ScanForm form, NodeId filter = kNoNode);
  /// The segment-level `value` as a running one: what it would be for every element if the segment
  /// ended with it (inclusive) or before it (exclusive). Reverse, the segment would begin with the
  /// element, or behind it. Its folds become scans, and its extent the number of those elements.
  /// `index` stays the position in the segment. Throws UserError for a value without a fold.
  NodeId running(NodeId value, ScanForm form);

  /// Sum in `to`, by default sum_type of the operand's type.
  NodeId sum(NodeId value, NodeId filter = kNoNode);
  NodeId sum(NodeId value, NodeId filter, DType to);
  /// Elements that pass the filter, i64; without one, the extent of the segment.
  NodeId count(NodeId filter = kNoNode);
  /// sum / count in `to` (f32 or f64), by default mean_type of the operand's type. Of integers it
  /// is rounded once, of floats of equal elements it is that element.
  NodeId mean(NodeId value, NodeId filter = kNoNode);
  NodeId mean(NodeId value, NodeId filter, DType to);
  /// The variance, its root, and the covariance of two values, over n - ddof; NaN where that is not
  /// positive. `ddof` is i64 and uniform; kNoNode stands for 0. Correlation, skewness and excess
  /// kurtosis are a population's, and NaN of values that are all the same. All are in mean_type of
  /// the operands' types.
  NodeId variance(NodeId value, NodeId filter = kNoNode, NodeId ddof = kNoNode);
  NodeId stddev(NodeId value, NodeId filter = kNoNode, NodeId ddof = kNoNode);
  NodeId covariance(NodeId x, NodeId y, NodeId filter = kNoNode, NodeId ddof = kNoNode);
  NodeId correlation(NodeId x, NodeId y, NodeId filter = kNoNode);
  NodeId skewness(NodeId value, NodeId filter = kNoNode);
  NodeId kurtosis(NodeId value, NodeId filter = kNoNode);
  /// sqrt(sum(value * value)) in `to`, by default mean_type of the operand's type.
  NodeId norm(NodeId value, NodeId filter = kNoNode);
  NodeId norm(NodeId value, NodeId filter, DType to);
  /// Smallest and largest; they keep the type (f16 and bf16 compare in f32).
  NodeId min(NodeId value, NodeId filter = kNoNode);
  NodeId max(NodeId value, NodeId filter = kNoNode);
  /// The index of the first smallest or largest element, i64; -1 of nothing.
  NodeId argmin(NodeId value, NodeId filter = kNoNode);
  NodeId argmax(NodeId value, NodeId filter = kNoNode);
  /// The product in sum_type of the operand's type.
  NodeId product(NodeId value, NodeId filter = kNoNode);
  /// log(sum(exp(value))) of a float in its compute type.
  NodeId logsumexp(NodeId value, NodeId filter = kNoNode);
  /// For each element y = factor * y + value in `to` (f32 or f64). The y on the right is that of
  /// the element before, or, reverse, of the one behind. At first it is `initial` (uniform;
  /// kNoNode: 0).
  NodeId recurrence(NodeId factor, NodeId value, NodeId initial, bool reverse, DType to);

  [[nodiscard]] DType type(NodeId id) const { return graph_.node(id).type; }
  [[nodiscard]] Level level(NodeId id) const { return graph_.node(id).level; }
  /// The position of a parameter's node among the parameters, for Partition::size_param.
  [[nodiscard]] int param_index(NodeId id) const { return graph_.node(id).index; }
  /// Ends the writing: sets outputs and partition, computes sums no wider than they are read,
  /// drops unused nodes, verifies. `condition`: of a partition by heads.
  Graph finish(std::vector<NodeId> outputs, Partition partition, NodeId condition = kNoNode);

 private:
  NodeId add(Node node);
  NodeId name(NodeKind kind, std::string_view name, DType type,
              InputAccess access = InputAccess::elements);
  [[nodiscard]] bool before(NodeId a, NodeId b) const;
  [[nodiscard]] bool is_constant(NodeId id, Bits bits) const;
  /// For every node whether one of these is computed of it, what folds and scans read left out.
  [[nodiscard]] std::vector<bool> computed_from(const std::vector<NodeId>& values) const;
  /// The nodes that stand for these now.
  static std::vector<NodeId> renamed(const std::vector<NodeId>& ids,
                                     const std::vector<NodeId>& now);
  /// A computation of what stands for its operands now.
  NodeId recomputed(NodeId id, const std::vector<NodeId>& now);
  /// What a fold's node folds beside scans, and how.
  struct Running {
    Fold fold;
    std::vector<NodeId> operands;
  };
  Running as_running(const Node& node);
  /// The outputs with folds as they are beside scans. Lowerings of scans know one result a fold,
  /// and sums beside scans have states of their own (as_running). A sum of the wider type takes the
  /// place of a sum's second result.
  std::vector<NodeId> single_results(const std::vector<NodeId>& outputs);
  /// The outputs with sums no wider than they are read (narrow.cpp).
  std::vector<NodeId> narrow_sums(const std::vector<NodeId>& outputs);
  /// The low 32 bits of an integer, computed in 32 bits as far as that is the same.
  NodeId low_bits(NodeId value);
  NodeId fold_node(Node node, Fold fold, std::vector<NodeId> operands, NodeId filter);
  /// A number of more digits than an f64 has: value + rest, where value is their sum as an f64.
  struct Digits {
    NodeId value = kNoNode, rest = kNoNode;
  };
  Digits digits_of(NodeId integer);
  /// The exact sum of integers of 64 bits.
  Digits sum_digits(NodeId value, NodeId filter);
  /// `total` / `elements` (i64), rounded once; NaN of nothing.
  NodeId quotient(const Digits& total, NodeId elements);
  /// A value whose deviations are those of `value`, as a `type` of statistics (f32, f64, i64).
  NodeId deviating(NodeId value, DType type);
  /// The variance in f64.
  NodeId wide_variance(NodeId value, NodeId filter);
  /// A statistic over n (of its `root`) as one over n - ddof, in f64.
  NodeId with_freedom(NodeId statistic, NodeId ddof, NodeId filter, bool root);
  /// A result of make_comoments() and of make_shape().
  NodeId comoment(NodeId x, NodeId y, NodeId filter, int part);
  NodeId shape(NodeId value, NodeId filter, int part);
  /// NaN where the condition is true.
  NodeId nan_where(NodeId condition, NodeId value);
  NodeId unless_nothing(NodeId elements, NodeId value);
  [[nodiscard]] bool depends(NodeId id, NodeKind kind) const {
    return (depends_[static_cast<std::size_t>(id)] >> static_cast<int>(kind) & 1U) != 0;
  }
  Graph graph_;
  std::map<std::string, NodeId> known_;
  std::vector<std::uint64_t> shapes_;   ///< one a node: a hash of its tree without literals' values
  std::vector<std::uint32_t> depends_;  ///< one a node: a bit a kind that it is or depends on
};

}  // namespace chainfold::codegen
