#include "chainfold/codegen/graph/fold_parts.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::codegen {

namespace {

Lambda identity(DType type) { return {.params = {type}, .steps = {}, .results = {0}}; }

}  // namespace

Fold plain(std::string_view name, DType type, Op op, Bits neutral) {
  Fold fold;
  fold.name = fmt::format("{}.{}", name, name_of(type));
  fold.operands = fold.state = {type};
  fold.init = {neutral};
  fold.lift = fold.finalize = identity(type);
  fold.merge.params = {type, type};
  fold.merge.results = {fold.merge.apply(op, {0, 1})};
  fold.tile = op;
  fold.tile_identity = neutral;
  return fold;
}

int difference(Lambda& m, int a, int b) {
  auto apply = [&m](Op op, int x, int y) { return m.apply(op, {x, y}); };
  const int wrapped = apply(Op::sub, b, a);
  const int other_signs = apply(Op::bit_xor, a, b), left = apply(Op::bit_xor, wrapped, b);
  const int wraps = apply(Op::lt, apply(Op::bit_and, other_signs, left), m.constant(DType::i64, 0));
  const int wide = apply(Op::sub, m.convert(b, DType::f64), m.convert(a, DType::f64));
  return m.apply(Op::select, {wraps, wide, m.convert(wrapped, DType::f64)});
}

void require(bool legal, std::string_view fold, DType type) {
  if (!legal) throw InternalError(fmt::format("no {} in {}", fold, name_of(type)));
}

int real(Lambda& lambda, double value) {
  return lambda.constant(DType::f64, bits_of_double(DType::f64, value));
}

TwoSum two_sum(Lambda& lambda, int a, int b) {
  auto sub = [&lambda](int from, int v) { return lambda.apply(Op::sub, {from, v}); };
  const int sum = lambda.apply(Op::add, {a, b});
  const int right = sub(sum, a);
  const int left_error = sub(a, sub(sum, right));
  return {.sum = sum, .error = lambda.apply(Op::add, {left_error, sub(b, right)})};
}

int if_finite(Lambda& lambda, int value) {
  const int none = lambda.constant(lambda.type(value), 0);
  return lambda.apply(Op::select, {lambda.apply(Op::is_finite, {value}), value, none});
}

Pair add_pairs(Lambda& m, Pair a, Pair b) {
  const TwoSum both = two_sum(m, a.high, b.high);
  // Where the sum is not finite its error is NaN, which must not reach the high part.
  const int rest = m.apply(Op::add, {both.error, m.apply(Op::add, {a.low, b.low})});
  const int low = if_finite(m, rest);
  // Renormalised, so that the low parts' own rounding errors stay of second order.
  const int high = m.apply(Op::add, {both.sum, low});
  const int taken = m.apply(Op::sub, {high, both.sum});
  return {.high = high, .low = if_finite(m, m.apply(Op::sub, {low, taken}))};
}

}  // namespace chainfold::codegen
