// Graph: what is computed. A typed, hash-consed, canonical DAG; equal inputs and equal
// subexpressions are one node. The DSL writes it through GraphBuilder; every later pass reads it.
//
// Semantics. Every node has an element type and a level. A `uniform` node has one value a launch:
// parameters, literals, constants. A `segment` node has one a segment: folds and what is computed
// from them. An `element` node has one an element of the input. A compute node has the highest
// level of its operands.
//
// A fold node consumes operands of one segment and gives one segment-level value. The operands are
// element-level, but for some that are uniform. The fold takes the elements for which its filter (a
// boolean node) is true. What its finalize is given besides are uniform operands behind those. A
// scan node consumes the same and gives one element-level value. Forward, that is the fold from the
// segment's beginning up to this element (inclusive) or the one before it (exclusive). Reverse, it
// is the fold of this element (exclusive: the next one) and all behind it. The elements' order is
// the same either way. A fold of no elements is that of nothing. `extent` is the number of elements
// of the segment, `index` (element level) the position of the element within it.
//
// Outputs have a value a segment, or a value an element that depends on a scan. What folds and
// scans consume depends on neither scans nor extents. An element-level node takes segment-level
// operands. Those of them that depend on a fold it takes only beside an operand that depends on a
// scan. Literals are arguments of the kernel, so 2*x and 3*x share one; constants are part of it. A
// `field` (level `state`) is a parameter of a Lambda that is being written; finished graphs hold
// none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

using NodeId = std::int32_t;
inline constexpr NodeId kNoNode = -1;
enum class Level : std::uint8_t { uniform, segment, element, state };
enum class NodeKind : std::uint8_t {
  input,
  param,
  literal,
  constant,
  compute,
  fold,
  extent,
  index,
  field,
  scan,
  lag
};
struct Node {
  NodeKind kind = NodeKind::constant;
  DType type = DType::i64;
  Level level = Level::uniform;
  Op op = Op::add;  ///< compute
  int index = 0;    ///< input, param, literal, fold or scan: position in the graph's list (a scan's
                    ///< among the folds); field: which; lag: how many elements before
  Bits bits = 0;    ///< constant
  std::vector<NodeId> operands;  ///< compute, fold and scan; lag: the value and the initial one
  NodeId filter = kNoNode;       ///< fold and scan
  int part = 0;                  ///< fold and scan: which of the fold's results it is
  bool exclusive = false;        ///< scan: without the element itself
  bool reverse = false;          ///< scan: from the element to the end of the segment
};
/// Which elements of the segment a scan folds for each of them.
struct ScanForm {
  bool exclusive = false, reverse = false;
};
/// Where a launch finds an input's values: an element in memory for each, or, of booleans, a bit.
/// Bit i % 8 of byte i / 8 is value i, the lowest bit first, as in Arrow. The first value may be
/// any bit of the first byte.
enum class InputAccess : std::uint8_t { elements, bits };
struct GraphInput {
  std::string name;
  DType type;
  InputAccess access = InputAccess::elements;

  [[nodiscard]] bool is_packed() const { return access == InputAccess::bits; }
};
/// How the input is cut: as one segment, into runs of `size` elements, into columns, or where data
/// say. The rows of a matrix are such runs, which gives it `size` columns.
///
/// `offsets`: of m segments, `bounds` names one array o of m + 1 integers (i32, i64), or two of m,
/// b and e. Segment i is the elements [o_i, o_(i+1)), or [b_i, e_i). 0 <= b_i <= e_i <= b_(i+1)
/// holds for all of them, and the last ends within the elements. Where that is not so no output is
/// written. Elements of no segment are left out.
///
/// `heads`: a segment begins at element 0 and at each element for which a condition is true. How
/// many there are the launch tells. The condition is the last of `heads`, nodes of their own over
/// the graph's inputs, parameters and literals. A `lag` is the value of its first operand so many
/// elements before in the input, and of its second, which is uniform, where there is no such
/// element. Its first operand has no lag.
struct Partition {
  enum class Kind : std::uint8_t { whole, segments, columns, offsets, heads } kind = Kind::whole;
  std::int64_t size = 0;  ///< segments, columns: the constant size, 0 if a parameter gives it
  int size_param = -1;    ///< segments, columns: the parameter that gives it at launch
  bool tail = false;      ///< segments: whether the last segment may be shorter
  std::vector<GraphInput> bounds{};  ///< offsets: one array, or two
  std::vector<Node> heads{};         ///< heads: operands before users

  /// Whether a number tells how the input is cut.
  [[nodiscard]] bool has_size() const { return kind == Kind::segments || kind == Kind::columns; }
};
struct GraphParam {
  std::string name;
  DType type;
};
struct GraphLiteral {
  DType type;
  Bits bits;
};
struct Graph {
  std::vector<GraphInput> inputs;
  std::vector<GraphParam> params;
  std::vector<GraphLiteral> literals;
  std::vector<Fold> folds;      ///< those of nodes, in the order of their index (share_fold)
  std::vector<Node> nodes;      ///< operands before users
  std::vector<NodeId> outputs;  ///< in the order of `over`'s arguments
  Partition partition;
  /// The outputs' expressions as the user wrote them, where legalize has rewritten them; no part of
  /// what the graph is.
  std::vector<std::string> written{};

  [[nodiscard]] const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
};

}  // namespace chainfold::codegen
