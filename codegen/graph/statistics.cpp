// GraphBuilder's statistics of deviations from the mean: variance, its root, and those of higher
// order and of two variables.
#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/fold_statistics.hpp"
#include "chainfold/codegen/graph/fold_variance.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

namespace {

/// Results of make_variance(), make_comoments() and make_shape() (fold.hpp).
constexpr int kWideVariance = 1, kCovariance = 0, kCorrelation = 1, kSkewness = 0, kKurtosis = 1;

bool is_of_64_bits(DType type) { return is_integer(type) && size_of(type) == 8; }
/// What statistics of elements of a type are computed of.
DType statistic_type(DType type) { return is_of_64_bits(type) ? DType::i64 : mean_type(type); }

}  // namespace

NodeId GraphBuilder::deviating(NodeId value, DType type) {
  if (type != DType::i64 || this->type(value) != DType::u64) return convert(value, type);
  // All moved by 2^63, which deviations do not see.
  const NodeId top = constant(DType::u64, Bits{1} << 63);
  return convert(compute(Op::bit_xor, {value, top}), DType::i64);
}

NodeId GraphBuilder::with_freedom(NodeId statistic, NodeId ddof, NodeId filter, bool root) {
  if (ddof == kNoNode || is_constant(ddof, 0)) return statistic;
  const NodeId n = count(filter), free = compute(Op::sub, {n, convert(ddof, DType::i64)});
  NodeId factor = compute(Op::div, {convert(n, DType::f64), convert(free, DType::f64)});
  if (root) factor = compute(Op::sqrt, {factor});
  const NodeId none = compute(Op::le, {free, constant(DType::i64, 0)});
  return nan_where(none, compute(Op::mul, {statistic, factor}));
}

NodeId GraphBuilder::wide_variance(NodeId value, NodeId filter) {
  const DType in = statistic_type(type(value));
  return fold(make_variance(in), {deviating(value, in)}, filter,
              in == DType::f32 ? kWideVariance : 0);
}

NodeId GraphBuilder::variance(NodeId value, NodeId filter, NodeId ddof) {
  if (ddof == kNoNode || is_constant(ddof, 0)) {
    const DType in = statistic_type(type(value));
    return fold(make_variance(in), {deviating(value, in)}, filter);
  }
  const NodeId variance = with_freedom(wide_variance(value, filter), ddof, filter, false);
  return convert(variance, mean_type(type(value)));
}

NodeId GraphBuilder::stddev(NodeId value, NodeId filter, NodeId ddof) {
  const DType from = type(value), in = statistic_type(from);
  // Squares of deviations below 2^-75 are 0 in f32, while their root is far from it.
  const bool far = from == DType::f32 || from == DType::bf16;
  const NodeId deviation =
      in == DType::f64
          ? fold(make_deviation(), {convert(value, in)}, filter)
          : compute(Op::sqrt, {wide_variance(far ? convert(value, DType::f64) : value, filter)});
  return convert(with_freedom(deviation, ddof, filter, true), mean_type(from));
}

NodeId GraphBuilder::comoment(NodeId x, NodeId y, NodeId filter, int part) {
  const DType of_x = type(x), of_y = type(y);
  const bool wide_integers =
      is_integer(of_x) && is_integer(of_y) && (is_of_64_bits(of_x) || is_of_64_bits(of_y));
  const DType in = wide_integers ? DType::i64 : promote(mean_type(of_x), mean_type(of_y));
  return fold(make_comoments(in), {deviating(x, in), deviating(y, in)}, filter, part);
}

NodeId GraphBuilder::covariance(NodeId x, NodeId y, NodeId filter, NodeId ddof) {
  const DType to = promote(mean_type(type(x)), mean_type(type(y)));
  return convert(with_freedom(comoment(x, y, filter, kCovariance), ddof, filter, false), to);
}

NodeId GraphBuilder::correlation(NodeId x, NodeId y, NodeId filter) {
  const DType to = promote(mean_type(type(x)), mean_type(type(y)));
  return convert(comoment(x, y, filter, kCorrelation), to);
}

NodeId GraphBuilder::shape(NodeId value, NodeId filter, int part) {
  const DType from = type(value), in = statistic_type(from);
  return convert(fold(make_shape(in), {deviating(value, in)}, filter, part), mean_type(from));
}

NodeId GraphBuilder::skewness(NodeId value, NodeId filter) {
  return shape(value, filter, kSkewness);
}

NodeId GraphBuilder::kurtosis(NodeId value, NodeId filter) {
  return shape(value, filter, kKurtosis);
}

}  // namespace chainfold::codegen
