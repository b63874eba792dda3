// GraphBuilder's folds of the language, each in the type that it is computed in, and what graphs
// tell about their folds.
#include <limits>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_recurrence.hpp"
#include "chainfold/codegen/graph/fold_sum.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/value_range.hpp"

namespace chainfold::codegen {

NodeId GraphBuilder::sum(NodeId value, NodeId filter) {
  return sum(value, filter, sum_type(type(value)));
}

NodeId GraphBuilder::sum(NodeId value, NodeId filter, DType to) {
  return fold(make_sum(to), {convert(value, to)}, filter);
}

NodeId GraphBuilder::count(NodeId filter) {
  if (filter == kNoNode || is_constant(filter, 1)) return extent();
  if (level(filter) == Level::uniform) {
    return compute(Op::select, {filter, extent(), constant(DType::i64, 0)});
  }
  return fold(make_sum(DType::i64), {convert(filter, DType::i64)});
}

NodeId GraphBuilder::mean(NodeId value, NodeId filter) {
  return mean(value, filter, mean_type(type(value)));
}

NodeId GraphBuilder::mean(NodeId value, NodeId filter, DType to) {
  const DType from = type(value);
  if (from == DType::f64) return convert(fold(make_mean(), {value}, filter), to);
  const NodeId elements = count(filter);
  if (!is_float(from)) {
    const Digits total =
        size_of(from) < 8 ? digits_of(sum(value, filter)) : sum_digits(value, filter);
    return convert(quotient(total, elements), to);
  }
  // The f32 sum of equal f16 (bf16) is exact up to 2^13 (2^16) of them, and so is its state. So
  // only its value must not be rounded before it is divided. That sum also serves what is made of
  // f16 alone: its products are a matrix instruction's. Others are added up as f64.
  constexpr int kShort = 64;
  const bool is_short = size_of(from) == 2 || exponent_bound(graph_, value) <= kShort;
  const NodeId total = is_short
                           ? fold(make_sum(DType::f32), {convert(value, DType::f32)}, filter, 1)
                           : fold(make_sum(DType::f64), {convert(value, DType::f64)}, filter);
  const NodeId mean = compute(Op::div, {total, convert(elements, DType::f64)});
  return convert(unless_nothing(elements, mean), to);
}

GraphBuilder::Digits GraphBuilder::digits_of(NodeId integer) {
  constexpr DType kIn = DType::f64;
  const NodeId rounded = convert(integer, kIn);
  const NodeId left = compute(Op::sub, {integer, convert(rounded, type(integer))});
  return {.value = rounded, .rest = convert(convert(left, DType::i64), kIn)};
}

GraphBuilder::Digits GraphBuilder::sum_digits(NodeId value, NodeId filter) {
  constexpr DType kIn = DType::f64;
  const DType from = type(value);
  // Neither half's sum wraps up to 2^32 elements, whatever they are.
  const NodeId half = constant(from, 32), mask = constant(DType::u64, 0xffffffff);
  const NodeId low =
      sum(compute(Op::bit_and, {convert(value, DType::u64), mask}), filter, DType::u64);
  const NodeId high = sum(compute(Op::shr, {value, half}), filter, from);
  const NodeId carry = convert(compute(Op::shr, {low, constant(DType::u64, 32)}), from);
  const Digits top = digits_of(compute(Op::add, {high, carry}));
  const NodeId scale = constant(kIn, bits_of_double(kIn, 0x1p32));
  const NodeId scaled = compute(Op::mul, {top.value, scale});
  const NodeId below = convert(compute(Op::bit_and, {low, mask}), kIn);
  const NodeId small = compute(Op::add, {compute(Op::mul, {top.rest, scale}), below});
  const NodeId total = compute(Op::add, {scaled, small});
  return {.value = total, .rest = compute(Op::sub, {small, compute(Op::sub, {total, scaled})})};
}

/// The remainder of a first division, exact by fma, gives the quotient twice the digits of an f64
/// before it is rounded. Up to n = 2^50 no quotient of an integer by n comes so close to the middle
/// of two f64 without being it. Up to n = 2^28 rounding the quotient to f64 first does not change
/// its f32.
NodeId GraphBuilder::quotient(const Digits& total, NodeId elements) {
  const NodeId n = convert(elements, DType::f64), first = compute(Op::div, {total.value, n});
  const NodeId remainder = compute(Op::fma, {compute(Op::neg, {first}), n, total.value});
  const NodeId more = compute(Op::div, {compute(Op::add, {remainder, total.rest}), n});
  return unless_nothing(elements, compute(Op::add, {first, more}));
}

NodeId GraphBuilder::unless_nothing(NodeId elements, NodeId value) {
  return nan_where(compute(Op::eq, {elements, constant(DType::i64, 0)}), value);
}

/// NaN as programs write it: what 0 / 0 gives has another sign on some processors.
NodeId GraphBuilder::nan_where(NodeId condition, NodeId value) {
  const DType in = type(value);
  const NodeId nothing = constant(in, bits_of_double(in, std::numeric_limits<double>::quiet_NaN()));
  return compute(Op::select, {condition, nothing, value});
}

NodeId GraphBuilder::norm(NodeId value, NodeId filter) {
  return norm(value, filter, mean_type(type(value)));
}

NodeId GraphBuilder::norm(NodeId value, NodeId filter, DType to) {
  const DType from = type(value);
  const auto squares = [&](NodeId v) { return sum(compute(Op::mul, {v, v}), filter); };
  const auto root = [&](NodeId v) { return compute(Op::sqrt, {v}); };
  if (!is_float(from) && size_of(from) <= 2) {
    const DType in = from == DType::u16 ? DType::i64 : DType::i32;
    return convert(root(convert(squares(convert(value, in)), DType::f32)), to);
  }
  if (from == DType::f16) return convert(root(squares(convert(value, DType::f32))), to);
  if (is_integer(from) && size_of(from) == 4) {
    // Exact squares, and a step of Newton's from the rounded root.
    const DType in = sum_type(from);
    const NodeId v = convert(value, in),
                 half = constant(DType::f64, bits_of_double(DType::f64, 0.5));
    const Digits total = sum_digits(compute(Op::mul, {v, v}), filter);
    const NodeId first = root(total.value);
    const NodeId left = compute(
        Op::add, {compute(Op::fma, {compute(Op::neg, {first}), first, total.value}), total.rest});
    const NodeId more = compute(Op::div, {compute(Op::mul, {left, half}), first});
    const NodeId zero = constant(DType::f64, 0);
    const NodeId some = compute(Op::ne, {first, zero});
    return convert(compute(Op::select, {some, compute(Op::add, {first, more}), zero}), to);
  }
  const NodeId wide = convert(value, DType::f64);
  if (from != DType::f64) return convert(root(squares(wide)), to);  // none leaves the range
  // Squares of small, ordinary and large elements have sums of their own (Blue, 1978). Elements
  // near the ends of the range are scaled by 2^600 or 2^-600 first. Sums of 2^63 squares are far
  // from the range's end.
  const auto real = [&](double v) { return constant(DType::f64, bits_of_double(DType::f64, v)); };
  const NodeId size = compute(Op::abs, {wide}), zero = real(0), up = real(0x1p600),
               down = real(0x1p-600);
  const NodeId is_large = compute(Op::ge, {size, real(0x1p480)}),
               is_small = compute(Op::lt, {size, real(0x1p-500)});
  const NodeId ordinary = compute(
      Op::select, {compute(Op::bit_or, {is_large, is_small}), zero, wide});  // NaN among them
  const auto scaled = [&](NodeId which, NodeId by) {
    return squares(compute(Op::select, {which, compute(Op::mul, {wide, by}), zero}));
  };
  const NodeId large = scaled(is_large, down), small = scaled(is_small, up),
               middle = squares(ordinary);
  const auto with_smaller = [&](NodeId larger, NodeId smaller) {
    return root(compute(Op::fma, {compute(Op::mul, {smaller, down}), down, larger}));
  };
  const NodeId of_large = compute(Op::mul, {with_smaller(large, middle), up});
  const NodeId of_middle = with_smaller(middle, small);
  const NodeId of_small = compute(Op::mul, {root(small), down});
  const auto some = [&](NodeId v) { return compute(Op::ne, {v, zero}); };
  return convert(compute(Op::select, {some(large), of_large,
                                      compute(Op::select, {some(middle), of_middle, of_small})}),
                 to);
}

NodeId GraphBuilder::min(NodeId value, NodeId filter) {
  const DType kept = type(value), in = is_float(kept) ? compute_type(kept) : kept;
  return convert(fold(make_min(in), {convert(value, in)}, filter), kept);
}

NodeId GraphBuilder::max(NodeId value, NodeId filter) {
  const DType kept = type(value), in = is_float(kept) ? compute_type(kept) : kept;
  return convert(fold(make_max(in), {convert(value, in)}, filter), kept);
}

NodeId GraphBuilder::argmin(NodeId value, NodeId filter) {
  const DType kept = type(value), in = is_float(kept) ? compute_type(kept) : kept;
  return fold(make_argmin(in), {convert(value, in), index()}, filter);
}

NodeId GraphBuilder::argmax(NodeId value, NodeId filter) {
  const DType kept = type(value), in = is_float(kept) ? compute_type(kept) : kept;
  return fold(make_argmax(in), {convert(value, in), index()}, filter);
}

NodeId GraphBuilder::product(NodeId value, NodeId filter) {
  const DType wide = sum_type(type(value));
  return fold(make_product(wide), {convert(value, wide)}, filter);
}

NodeId GraphBuilder::logsumexp(NodeId value, NodeId filter) {
  const DType in = compute_type(type(value));
  return fold(make_logsumexp(in), {convert(value, in)}, filter);
}

NodeId GraphBuilder::recurrence(NodeId factor, NodeId value, NodeId initial, bool reverse,
                                DType to) {
  std::vector<NodeId> operands = {convert(factor, to), convert(value, to)};
  const bool given = initial != kNoNode;
  if (given) operands.push_back(convert(initial, to));
  return scan(make_recurrence(to, {.reverse = reverse, .initial = given}), std::move(operands),
              {.exclusive = false, .reverse = reverse});
}

}  // namespace chainfold::codegen
