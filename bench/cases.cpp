#include "chainfold/bench/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "chainfold/bench/query6.hpp"
#include "chainfold/bench/typed_folds.hpp"

namespace chainfold::bench {
namespace {

/// The expression in the type Out, converted only where it has another one.
template <class Out, class E>
auto as(E&& e) {
  if constexpr (kTypeOf<E> == kDType<Out>) {
    return std::forward<E>(e);
  } else {
    return cast<Out>(std::forward<E>(e));
  }
}

template <class T, class Out>
Computation sum_of(const dsl::Partition& partition) {
  return over(partition, as<Out>(sum(input<T>("x"))));
}

/// What is measured of one floating-point type besides its sums.
template <class T, class Out>
Computation float_fold(Op op, const dsl::Partition& partition) {
  const auto x = input<T>("x");
  switch (op) {
    case Op::mean_var: return over(partition, as<Out>(mean(x)), as<Out>(variance(x)));
    case Op::dot: return over(partition, as<Out>(dot(x, input<T>("y"))));
    case Op::filtered_sum: return over(partition, as<Out>(sum(x, where(x > 0))));
    case Op::mean_rms: return over(partition, mean(x), sqrt(mean(x * x)));
    default: return sum_of<T, Out>(partition);
  }
}

template <class T, class Out>
Computation running_sum_of(const dsl::Partition& partition) {
  return over(partition, as<Out>(inclusive_sum(input<T>("x"))));
}

template <class T, class Out>
Computation scan_that_knows_all(Op op, const dsl::Partition& partition) {
  const auto x = input<T>("x");
  if (op == Op::sum_behind) return over(partition, as<Out>(inclusive_sum(x) - sum(x)));
  return over(partition, as<Out>(inclusive_sum(x) + exclusive_sum(x, backward)));
}

Computation half_scan(Op op, const dsl::Partition& partition) {
  const auto x = input<f16>("x");
  if (op == Op::exclusive_sum) return over(partition, as<f16>(exclusive_sum(x)));
  return running_sum_of<f16, f16>(partition);
}

Computation query6(const dsl::Partition& partition) {
  const auto ship = input<std::int32_t>("shipdate");
  const auto disc = input<std::int64_t>("discount");
  const auto qty = input<std::int64_t>("quantity");
  const auto price = input<std::int64_t>("extendedprice");
  const auto hit = ship >= static_cast<std::int32_t>(query6_limits::kShipFrom) &&
                   ship < static_cast<std::int32_t>(query6_limits::kShipTo) &&
                   disc >= query6_limits::kDiscountFrom && disc <= query6_limits::kDiscountTo &&
                   qty < query6_limits::kQuantityBelow;
  return over(partition, sum(price * disc, where(hit)));
}

std::logic_error no_benchmark(Op op, DType in, DType out) {
  return std::logic_error(fmt::format("there is no benchmark of {} from {} to {}", name_of(op),
                                      chainfold::name_of(in), chainfold::name_of(out)));
}

Computation computation_of(Op op, DType in, DType out, const dsl::Partition& partition) {
  const auto types = [&](DType a, DType b) { return in == a && out == b; };
  if (op == Op::q6) return query6(partition);
  if (has_every_type(op, in)) {
    Computation computation = typed_fold(op, in, partition);
    if (computation.output_type(0) == out) return computation;
    throw no_benchmark(op, in, out);
  }
  if (op == Op::decay && types(DType::f32, DType::f32))
    return over(partition, linear_recurrence(kDecay, input<float>("x")));
  if (knows_all(op)) {
    if (types(DType::f16, DType::f16)) return scan_that_knows_all<f16, f16>(op, partition);
    if (types(DType::f32, DType::f32)) return scan_that_knows_all<float, float>(op, partition);
  } else if (is_scan(op) && types(DType::f16, DType::f16)) {
    return half_scan(op, partition);
  }
  if (op == Op::inclusive_sum) {
    if (types(DType::f16, DType::f32)) return running_sum_of<f16, float>(partition);
    if (types(DType::bf16, DType::bf16)) return running_sum_of<bf16, bf16>(partition);
    if (types(DType::f32, DType::f32)) return running_sum_of<float, float>(partition);
    if (types(DType::f64, DType::f64)) return running_sum_of<double, double>(partition);
    if (types(DType::i32, DType::i32)) return running_sum_of<std::int32_t, std::int32_t>(partition);
    if (types(DType::i8, DType::i32)) return running_sum_of<std::int8_t, std::int32_t>(partition);
  }
  if (!is_scan(op) && types(DType::f16, DType::f16)) return float_fold<f16, f16>(op, partition);
  if (!is_scan(op) && types(DType::f16, DType::f32)) return float_fold<f16, float>(op, partition);
  if (op == Op::sum) {
    if (types(DType::bf16, DType::bf16)) return sum_of<bf16, bf16>(partition);
    if (types(DType::bf16, DType::f32)) return sum_of<bf16, float>(partition);
    if (types(DType::f32, DType::f32)) return sum_of<float, float>(partition);
    if (types(DType::f64, DType::f64)) return sum_of<double, double>(partition);
    if (types(DType::i32, DType::i32)) return sum_of<std::int32_t, std::int32_t>(partition);
    if (types(DType::i8, DType::i32)) return sum_of<std::int8_t, std::int32_t>(partition);
    if (types(DType::i8, DType::i64)) return sum_of<std::int8_t, std::int64_t>(partition);
  }
  throw no_benchmark(op, in, out);
}

/// Running sums of f16 leave the type's range sooner or later unless the mean is zero. The
/// reference adds the squares of integers exactly, of up to 32 bits.
Source source_of(Op op, DType type) {
  if (is_scan(op) && type == DType::f16) return Source::balanced;
  switch (type) {
    case DType::f16: return Source::f16;
    case DType::bf16: return Source::bf16;
    case DType::f32: return Source::f32;
    case DType::f64: return op == Op::variance ? Source::f64_short : Source::f64;
    case DType::i32: return Source::i32;
    default: return Source::i8;
  }
}

}  // namespace

const char* name_of(Op op) {
  switch (op) {
    case Op::sum: return "sum";
    case Op::mean_rms: return "mean+rms";
    case Op::max: return "max";
    case Op::q6: return "q6";
    case Op::mean_var: return "mean_var";
    case Op::dot: return "dot";
    case Op::min_max: return "min_max";
    case Op::filtered_sum: return "filtered_sum";
    case Op::argmax: return "argmax";
    case Op::any: return "any";
    case Op::count_above: return "count_above";
    case Op::variance: return "variance";
    case Op::sum_abs: return "sum_abs";
    case Op::logsumexp: return "logsumexp";
    case Op::inclusive_sum: return "inclusive_sum";
    case Op::exclusive_sum: return "exclusive_sum";
    case Op::inclusive_max: return "inclusive_max";
    case Op::inclusive_argmax: return "inclusive_argmax";
    case Op::sum_behind: return "sum_behind";
    case Op::sum_both_ways: return "sum_both_ways";
    case Op::decay: return "decay";
  }
  return "?";
}

std::vector<Case::Input> Case::inputs() const {
  if (op == Op::dot) return {{"x", source, in}, {"y", Source::other, in}};
  if (op != Op::q6) return {{"x", source, in}};
  return {{"shipdate", Source::shipdate, DType::i32},
          {"discount", Source::discount, DType::i64},
          {"quantity", Source::quantity, DType::i64},
          {"extendedprice", Source::price, DType::i64}};
}

std::vector<Source> Case::sources() const {
  std::vector<Source> result;
  for (const Input& input : inputs()) result.push_back(input.source);
  return result;
}

Elements Case::elements_of(std::int64_t index) const {
  if (ragged) {
    const auto at = static_cast<std::size_t>(index);
    return {.first = ragged->offsets[at], .count = ragged->offsets[at + 1] - ragged->offsets[at]};
  }
  const std::int64_t count = elements / segments();
  if (columns > 0) return {.first = index, .count = count, .step = columns};
  return {.first = index * count, .count = count, .step = 1};
}

Elements Case::segment_around(std::int64_t element) const {
  if (!ragged) return elements_of(element / (elements / segments()));
  const auto behind = std::upper_bound(ragged->offsets.begin(), ragged->offsets.end(), element);
  return elements_of(behind - ragged->offsets.begin() - 1);
}

std::string Case::op_name() const {
  if (ragged)
    return fmt::format("{}_{}{}", bench::name_of(op), ragged->has_flags() ? "heads_" : "",
                       ragged->lengths);
  return std::string(bench::name_of(op)) + (columns > 0 ? "_axis0" : in_place ? "_in_place" : "");
}

std::int64_t Case::bytes_read() const {
  std::int64_t bytes = 0;
  for (const Input& input : inputs()) bytes += elements * size_of(input.type);
  if (ragged) bytes += ragged->bytes();
  return bytes;
}

std::int64_t Case::bytes_written() const {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < computation.outputs(); ++i)
    bytes += output_size() * size_of(computation.output_type(i));
  return bytes;
}

std::string Case::name() const {
  const std::string size = columns > 0   ? fmt::format("C={}", columns)
                           : ragged      ? fmt::format("{} {}", ragged->lengths, segment)
                           : segment > 0 ? fmt::format("S={}", segment)
                                         : "whole";
  const std::string type = op == Op::q6 ? "i64" : std::string(chainfold::name_of(in));
  return fmt::format("{} {}->{} {}", bench::name_of(op), type, chainfold::name_of(out), size);
}

Case make_case(Op op, DType in, DType out, std::int64_t elements, std::int64_t segment) {
  if (segment > 0) elements -= elements % segment;
  if (elements < 1)
    throw std::runtime_error(fmt::format("too few elements for segments of {}", segment));
  return {.op = op,
          .in = in,
          .out = out,
          .elements = elements,
          .segment = segment,
          .computation = computation_of(op, in, out, segment > 0 ? segments(segment) : whole()),
          .source = source_of(op, in)};
}

Case make_case(Op op, DType in, std::int64_t elements, std::int64_t segment) {
  return make_case(op, in, typed_fold(op, in, whole()).output_type(0), elements, segment);
}

Case make_ragged_case(Op op, DType in, DType out,
                      const std::shared_ptr<const RaggedSegments>& segments) {
  const dsl::Partition partition = segments->has_flags()
                                       ? dsl::Partition(heads(input<bool>("begins")))
                                       : dsl::Partition(offsets("offsets"));
  return {.op = op,
          .in = in,
          .out = out,
          .elements = segments->offsets.back(),
          .segment = segments->mean,
          .computation = computation_of(op, in, out, partition),
          .source = source_of(op, in),
          .ragged = segments};
}

Case make_columns_case(Op op, DType in, DType out, std::int64_t elements, std::int64_t columns) {
  const std::int64_t rows = elements / columns;
  if (rows < 1) throw std::runtime_error(fmt::format("too few elements for {} columns", columns));
  return {.op = op,
          .in = in,
          .out = out,
          .elements = rows * columns,
          .segment = rows,
          .computation = computation_of(op, in, out, chainfold::columns(columns)),
          .source = source_of(op, in),
          .columns = columns};
}

}  // namespace chainfold::bench
