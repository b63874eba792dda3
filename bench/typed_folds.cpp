#include "chainfold/bench/typed_folds.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace chainfold::bench {
namespace {

template <class T>
Computation of_type(Op op, const dsl::Partition& partition) {
  const auto x = input<T>("x");
  switch (op) {
    case Op::max: return over(partition, max(x));
    case Op::min_max: return over(partition, min(x), max(x));
    case Op::argmax: return over(partition, argmax(x));
    case Op::any: return over(partition, any(x > 0));
    case Op::count_above: return over(partition, count(where(x > 0)));
    case Op::variance: return over(partition, variance(x));
    case Op::sum_abs: return over(partition, sum(abs(x)));
    case Op::inclusive_max: return over(partition, inclusive(max(x)));
    case Op::inclusive_argmax: return over(partition, inclusive(argmax(x)));
    default:
      if constexpr (is_float(kDType<T>)) return over(partition, logsumexp(x));
      throw std::logic_error("no fold of every type");
  }
}

}  // namespace

bool has_every_type(Op op, DType type) noexcept {
  switch (op) {
    case Op::max:
    case Op::min_max:
    case Op::argmax:
    case Op::any:
    case Op::count_above:
    case Op::variance:
    case Op::sum_abs:
    case Op::inclusive_max:
    case Op::inclusive_argmax: return is_measured(type);
    case Op::logsumexp: return is_measured(type) && is_float(type);
    default: return false;
  }
}

Computation typed_fold(Op op, DType type, const dsl::Partition& partition) {
  if (!has_every_type(op, type)) {
    throw std::logic_error(
        fmt::format("there is no benchmark of {} of {}", name_of(op), chainfold::name_of(type)));
  }
  switch (type) {
    case DType::f16: return of_type<f16>(op, partition);
    case DType::bf16: return of_type<bf16>(op, partition);
    case DType::f32: return of_type<float>(op, partition);
    case DType::f64: return of_type<double>(op, partition);
    case DType::i8: return of_type<std::int8_t>(op, partition);
    default: return of_type<std::int32_t>(op, partition);
  }
}

}  // namespace chainfold::bench
