#include "chainfold/codegen/graph/vector_cost.hpp"

#include <algorithm>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/base/machine.hpp"
#include "chainfold/codegen/base/op_table.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"
#include "chainfold/codegen/graph/queries.hpp"

namespace chainfold::codegen {

namespace {

/// What an operation on a CPU's vectors takes, in additions; about.
std::int64_t additions_of(Op op, DType type) {
  switch (op) {
    case Op::min:
    case Op::max: return is_float(type) ? 2 : 1;
    default: return row_of(op).additions;
  }
}

/// Loads of a tile of whatever takes few instructions.
constexpr int kTileLoads = 128;
/// Instructions of a tile, of which a kernel has up to four copies. Compilers take more than twice
/// the time for twice of them, and rows gain nothing from so many (docs/tuned-values.md#cpu).
constexpr std::int64_t kTileInstructions = 4 * 1024;
/// From so many on memory waits for what is computed, whatever way results take.
constexpr std::int64_t kSlowInstructions = 256;

/// What a register is taken to hold.
constexpr int kRegisterBytes = 32;
/// Instructions for each lane of a call of the C library, and of an integer division. A call
/// includes what brings its operand there and its result back. Where the library has functions of
/// vectors the calls are fewer. But larger tiles gain nothing and compile for longer
/// (docs/tuned-values.md#cpu).
constexpr int kCall = 4, kDivision = 4;
/// Those of a float's minimum or maximum, which let NaN through and tell zeros apart.
constexpr int kExtreme = 4;
/// Those of products of 64-bit integers, and of conversions between those and floats, which not all
/// vectors have.
constexpr int kWideInteger = 6;
/// Those of a comparison or a choice, for masks that are packed and spread again where they are
/// vectors. Those of a shift by any number of bits. Those of a float that becomes an integer, since
/// what is out of range becomes the integers' ends.
constexpr int kMask = 2, kShift = 3, kSaturated = 4;
/// Operations for each element of moments.
constexpr int kMomentOps = 4;

/// Instructions of an operation on a warp's vectors of `type`, the widest of operands and result.
std::int64_t instructions_of(Op op, DType type) {
  const std::int64_t registers = std::max(1, kWarpWidth * size_of(type) / kRegisterBytes);
  if (row_of(op).cpu == CpuForm::library) return kWarpWidth * kCall;
  switch (op) {
    case Op::reinterpret: return 0;
    case Op::div:
    case Op::rem: return is_integer(type) ? kWarpWidth * kDivision : registers;
    case Op::min:
    case Op::max: return is_float(type) ? registers * kExtreme : registers;
    case Op::shl:
    case Op::shr: return registers * kShift;
    case Op::select: return registers * kMask;
    case Op::mul:
      return is_integer(type) && size_of(type) == 8 ? registers * kWideInteger : registers;
    default: return registers * (is_test(op) ? kMask : std::max(1, row_of(op).additions));
  }
}

DType wider(DType a, DType b) { return size_of(a) >= size_of(b) ? a : b; }

std::int64_t instructions_of_conversion(DType from, DType to) {
  const DType integer = is_integer(from) ? from : to;
  const std::int64_t plain = instructions_of(Op::convert, wider(from, to));
  if (is_float(from) == is_float(to)) return plain;
  return plain * (size_of(integer) == 8 ? kWideInteger : is_float(from) ? kSaturated : 1);
}

/// Instructions of an operation with a result of `type`; `type_of` tells the operands' types.
template <class Operands, class TypeOf>
std::int64_t instructions_of(Op op, DType type, const Operands& operands, TypeOf&& type_of) {
  if (op == Op::convert) return instructions_of_conversion(type_of(operands[0]), type);
  for (const auto operand : operands) type = wider(type, type_of(operand));
  return instructions_of(op, type);
}

std::int64_t instructions_of(const Lambda& lambda) {
  std::int64_t sum = 0;
  for (const Lambda::Step& step : lambda.steps) {
    if (step.operands.empty()) continue;  // a constant
    sum += instructions_of(step.op, step.type, step.operands,
                           [&](int operand) { return lambda.type(operand); });
  }
  return sum;
}

}  // namespace

std::int64_t additions_of(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Node& node : graph.nodes) {
    if (node.kind == NodeKind::compute && node.level == Level::element)
      sum += additions_of(node.op, node.type);
    if (node.kind != NodeKind::fold && node.kind != NodeKind::scan) continue;
    // What a scan shares is there with it.
    if (node.kind == NodeKind::fold && is_scanned(graph, node.index)) continue;
    const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    std::int64_t merge = 0;
    if (fold.tile) {
      merge = additions_of(*fold.tile, fold.operands[0]);
    } else {
      for (const Lambda::Step& step : (fold.accumulate ? *fold.accumulate : fold.merge).steps) {
        if (!step.operands.empty()) merge += additions_of(step.op, step.type);
      }
    }
    sum += node.kind == NodeKind::scan ? kRowMerges * merge : merge;
  }
  return std::max(kRowMerges, sum);
}

std::int64_t instructions_of(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Node& node : graph.nodes) {
    if (node.kind == NodeKind::compute && node.level == Level::element)
      sum += instructions_of(node.op, node.type, node.operands,
                             [&](NodeId operand) { return graph.node(operand).type; });
    if (node.kind != NodeKind::fold) continue;
    const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    if (fold.moments) {  // deviations from the mean of many, which are summed up
      sum += kMomentOps * instructions_of(Op::sub, carried_fields(fold)[1]);
      continue;
    }
    if (fold.accumulate && !fold.tile) {
      sum += instructions_of(*fold.accumulate);
      continue;
    }
    // A sum's lift is one of a batch.
    sum += fold.linear && is_float(fold.operands[0]) ? instructions_of(Op::add, fold.operands[0])
                                                     : instructions_of(fold.lift);
    sum += fold.tile ? instructions_of(*fold.tile, fold.operands[0]) : instructions_of(fold.merge);
  }
  return std::max<std::int64_t>(1, sum);
}

bool computes_slowly(const Graph& graph) { return instructions_of(graph) >= kSlowInstructions; }

int tile_loads(const Graph& graph, int width) {
  return floor_power_of_two(
      std::min<std::int64_t>(kTileLoads, kTileInstructions / (width * instructions_of(graph))));
}

}  // namespace chainfold::codegen
