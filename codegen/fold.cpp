#include "chainfold/codegen/fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <limits>

#include "chainfold/codegen/error.hpp"

namespace chainfold::codegen {

// --- Lambda

DType Lambda::type(int value) const {
  const auto v = static_cast<std::size_t>(value);
  return v < params.size() ? params[v] : steps[v - params.size()].type;
}

int Lambda::constant(DType type, Bits bits) {
  steps.push_back({.op = Op::add, .type = type, .operands = {}, .bits = bits});
  return static_cast<int>(params.size() + steps.size()) - 1;
}

int Lambda::apply(Op op, std::vector<int> operands) {
  const int values = static_cast<int>(params.size() + steps.size());
  bool legal = !is_cast(op) && static_cast<int>(operands.size()) == arity(op);
  for (int operand : operands) legal = legal && operand >= 0 && operand < values;
  if (!legal) throw InternalError(fmt::format("a lambda applies {} wrongly", name_of(op)));
  const DType in = type(operands.back());
  for (std::size_t i = op == Op::select ? 1 : 0; i < operands.size(); ++i) {
    legal = legal && type(operands[i]) == in;
  }
  if (op == Op::select) legal = legal && type(operands[0]) == DType::boolean;
  if (!legal || !is_defined(op, in)) {
    throw InternalError(fmt::format("a lambda applies {} to {}", name_of(op), name_of(in)));
  }
  const DType out = is_comparison(op) || op == Op::is_finite ? DType::boolean : in;
  steps.push_back({.op = op, .type = out, .operands = std::move(operands), .bits = 0});
  return values;
}

int Lambda::convert(int value, DType to) {
  if (type(value) == to) return value;
  steps.push_back({.op = Op::convert, .type = to, .operands = {value}, .bits = 0});
  return static_cast<int>(params.size() + steps.size()) - 1;
}

std::vector<Bits> evaluate(const Lambda& lambda, std::span<const Bits> arguments) {
  if (arguments.size() != lambda.params.size()) {
    throw InternalError(fmt::format("a lambda of {} parameters is called with {}",
                                    lambda.params.size(), arguments.size()));
  }
  std::vector<Bits> values(arguments.begin(), arguments.end());
  for (const Lambda::Step& step : lambda.steps) {
    if (step.operands.empty()) {
      values.push_back(step.bits);
      continue;
    }
    Bits in[3] = {};
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      in[i] = values[static_cast<std::size_t>(step.operands[i])];
    }
    const DType type = lambda.type(step.operands.back());
    values.push_back(evaluate(step.op, type, step.type, in[0], in[1], in[2]));
  }
  std::vector<Bits> results;
  for (int result : lambda.results) results.push_back(values[static_cast<std::size_t>(result)]);
  return results;
}

// --- the built-in folds

namespace {

Lambda identity(DType type) { return {.params = {type}, .steps = {}, .results = {0}}; }

/// A fold whose state is the value itself and whose merge is one operation.
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

/// The end of the type's range at which max (lowest) or min (highest) starts.
Bits range_end(DType type, bool highest) {
  if (is_float(type)) {
    const double inf = std::numeric_limits<double>::infinity();
    return bits_of_double(type, highest ? inf : -inf);
  }
  const int width = 8 * size_of(type);
  const Bits ones = width == 64 ? ~Bits{0} : (Bits{1} << width) - 1;
  const Bits top = Bits{1} << (width - 1);
  if (is_signed(type)) return highest ? ones ^ top : top;
  return highest ? ones : 0;
}

void require(bool legal, std::string_view fold, DType type) {
  if (!legal) throw InternalError(fmt::format("no {} in {}", fold, name_of(type)));
}

/// a + b, rounded, and what rounding took away (Knuth's TwoSum).
struct TwoSum {
  int sum, error;
};
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

/// Two floats (high, low) with high + low the sum and |low| at most half an ulp of high. A field is
/// never -0 and low is 0 where high is not finite; lift establishes that and merge keeps it. Then
/// (0, 0) is an identity bit for bit.
Fold float_sum(DType type) {
  Fold fold;
  fold.name = fmt::format("sum.{}", name_of(type));
  fold.operands = {type};
  fold.state = {type, type};
  fold.init = {0, 0};

  Lambda& lift = fold.lift;
  lift.params = {type};
  const int zero = lift.constant(type, 0);
  lift.results = {lift.apply(Op::add, {0, zero}), zero};

  Lambda& m = fold.merge;
  m.params = {type, type, type, type};
  const TwoSum both = two_sum(m, 0, 2);
  // Where the sum is not finite its error is NaN, which must not reach the high part.
  const int rest = m.apply(Op::add, {both.error, m.apply(Op::add, {1, 3})});
  const int low = if_finite(m, rest);
  // Renormalised, so that the low parts' own rounding errors stay of second order.
  const int high = m.apply(Op::add, {both.sum, low});
  const int taken = m.apply(Op::sub, {high, both.sum});
  m.results = {high, if_finite(m, m.apply(Op::sub, {low, taken}))};

  Lambda& a = fold.accumulate.emplace();
  a.params = {type, type, type};
  const TwoSum next = two_sum(a, 0, a.apply(Op::add, {2, 1}));
  a.results = {next.sum, if_finite(a, next.error)};

  fold.finalize.params = {type, type};
  fold.finalize.results = {fold.finalize.apply(Op::add, {0, 1})};
  fold.tile = Op::add;
  fold.tile_identity = 0;
  fold.linear = true;
  return fold;
}

}  // namespace

Fold make_sum(DType type) {
  require(type == sum_type(type) || type == DType::i32, "sum", type);
  if (is_float(type)) return float_sum(type);
  Fold fold = plain("sum", type, Op::add, 0);
  fold.linear = true;
  return fold;
}

std::optional<Fold> widened(const Fold& sum) {
  if (sum.name != make_sum(DType::f32).name) return std::nullopt;
  Fold wide = sum;
  wide.name += ".wide";
  wide.state = {DType::f64};
  wide.init = {0};
  wide.accumulate.reset();
  wide.lift = {};
  wide.lift.params = {DType::f32};
  const int zero = wide.lift.constant(DType::f64, 0);  // no state is -0
  wide.lift.results = {wide.lift.apply(Op::add, {wide.lift.convert(0, DType::f64), zero})};
  wide.merge = {};
  wide.merge.params = {DType::f64, DType::f64};
  wide.merge.results = {wide.merge.apply(Op::add, {0, 1})};
  wide.finalize = {};
  wide.finalize.params = {DType::f64};
  wide.finalize.results = {wide.finalize.convert(0, DType::f32)};
  return wide;
}

Fold make_min(DType type) {
  require(is_defined(Op::min, type), "min", type);
  return plain("min", type, Op::min, range_end(type, true));
}

Fold make_max(DType type) {
  require(is_defined(Op::max, type), "max", type);
  return plain("max", type, Op::max, range_end(type, false));
}

Fold make_any() { return plain("any", DType::boolean, Op::bit_or, 0); }
Fold make_all() { return plain("all", DType::boolean, Op::bit_and, 1); }

Fold make_variance(DType type) {
  require(type == DType::f32 || type == DType::f64, "variance", type);
  constexpr DType kCount = DType::i64;
  Fold fold;
  fold.name = fmt::format("variance.{}", name_of(type));
  fold.operands = {type};
  fold.state = {kCount, type, type};
  fold.init = {0, 0, 0};
  fold.moments = true;

  // x - x is 0, or NaN where x has no deviation from itself.
  fold.lift.params = {type};
  const int one = fold.lift.constant(kCount, 1);
  fold.lift.results = {one, 0, fold.lift.apply(Op::sub, {0, 0})};

  Lambda& m = fold.merge;
  m.params = {kCount, type, type, kCount, type, type};
  auto apply = [&m](Op op, int a, int b) { return m.apply(op, {a, b}); };
  constexpr int kCountA = 0, kMeanA = 1, kSquaresA = 2, kCountB = 3, kMeanB = 4, kSquaresB = 5;
  const int none = m.constant(kCount, 0);
  const int count = apply(Op::add, kCountA, kCountB);
  const int weight = m.convert(kCountB, type), total = m.convert(count, type);
  const int share = apply(Op::div, weight, total);
  const int factor = apply(Op::mul, m.convert(kCountA, type), share);  // of counts alone
  const int delta = apply(Op::sub, kMeanB, kMeanA);
  const int mean = m.apply(Op::fma, {delta, share, kMeanA});
  const int within = apply(Op::add, kSquaresA, kSquaresB);
  const int squares = m.apply(Op::fma, {apply(Op::mul, delta, factor), delta, within});
  const int empty_a = apply(Op::eq, kCountA, none), empty_b = apply(Op::eq, kCountB, none);
  // The formula is no exact identity for an empty side (and 0 / 0 for two): the other side counts.
  auto choose = [&](int a, int b, int both) {
    return m.apply(Op::select, {empty_b, a, m.apply(Op::select, {empty_a, b, both})});
  };
  m.results = {count, choose(kMeanA, kMeanB, mean), choose(kSquaresA, kSquaresB, squares)};

  Lambda& finalize = fold.finalize;
  finalize.params = fold.state;
  const int n = finalize.convert(0, type);
  finalize.results = {finalize.apply(Op::div, {2, n})};
  return fold;
}

Fold make_product(DType type) {
  require(type == sum_type(type), "product", type);
  Fold fold = plain("product", type, Op::mul, bits_of_int(type, 1));
  if (is_float(type)) fold.tile.reset();  // its rounding depends on the order: not exact
  return fold;
}

Fold make_bits(Op op, DType type) {
  const bool known = op == Op::bit_and || op == Op::bit_or || op == Op::bit_xor;
  require(known && is_defined(op, type), "fold of bits", type);
  const Bits ones = evaluate(Op::bit_not, type, type, 0);
  return plain(name_of(op), type, op, op == Op::bit_and ? ones : 0);
}

namespace {

/// States (best, its index); no index is above that of nothing.
Fold arg_fold(std::string_view name, DType type, bool largest) {
  constexpr DType kIndex = DType::i64;
  const Bits none = range_end(kIndex, true);
  Fold fold;
  fold.name = fmt::format("{}.{}", name, name_of(type));
  fold.operands = fold.state = {type, kIndex};
  fold.init = {range_end(type, !largest), none};
  fold.lift.params = fold.state;
  fold.lift.results = {0, 1};

  Lambda& m = fold.merge;
  m.params = {type, kIndex, type, kIndex};
  auto apply = [&m](Op op, int a, int b) { return m.apply(op, {a, b}); };
  constexpr int kA = 0, kIndexA = 1, kB = 2, kIndexB = 3;
  int better = apply(largest ? Op::gt : Op::lt, kB, kA), same = apply(Op::eq, kA, kB);
  if (is_float(type)) {
    const int number_a = apply(Op::eq, kA, kA), nan_b = apply(Op::ne, kB, kB);
    better = apply(Op::bit_or, better, apply(Op::bit_and, number_a, nan_b));
    const int nan_a = m.apply(Op::bit_not, {number_a});
    same = apply(Op::bit_or, same, apply(Op::bit_and, nan_a, nan_b));
  }
  const int earlier = apply(Op::lt, kIndexB, kIndexA);
  const int take = apply(Op::bit_or, better, apply(Op::bit_and, same, earlier));
  m.results = {m.apply(Op::select, {take, kB, kA}), m.apply(Op::select, {take, kIndexB, kIndexA})};

  Lambda& finalize = fold.finalize;
  finalize.params = fold.state;
  const int nothing = finalize.apply(Op::eq, {1, finalize.constant(kIndex, none)});
  const int minus_one = finalize.constant(kIndex, bits_of_int(kIndex, -1));
  finalize.results = {finalize.apply(Op::select, {nothing, minus_one, 1})};
  return fold;
}

}  // namespace

Fold make_argmin(DType type) {
  require(is_defined(Op::min, type), "argmin", type);
  return arg_fold("argmin", type, false);
}

Fold make_argmax(DType type) {
  require(is_defined(Op::max, type), "argmax", type);
  return arg_fold("argmax", type, true);
}

Fold make_logsumexp(DType type) {
  require(type == DType::f32 || type == DType::f64, "logsumexp", type);
  Fold fold;
  fold.name = fmt::format("logsumexp.{}", name_of(type));
  fold.operands = {type};
  fold.state = {type, type};
  fold.init = {range_end(type, false), 0};
  fold.lift.params = {type};
  const int one = fold.lift.constant(type, bits_of_int(type, 1));
  fold.lift.results = {0, one};

  Lambda& m = fold.merge;
  m.params = {type, type, type, type};
  constexpr int kTopA = 0, kSumA = 1, kTopB = 2, kSumB = 3;
  const int top = m.apply(Op::max, {kTopA, kTopB}), low = m.apply(Op::min, {kTopA, kTopB});
  // Equal ones scale by 1, also where they are infinite and their difference is NaN.
  const int scale =
      m.apply(Op::select, {m.apply(Op::eq, {low, top}), m.constant(type, bits_of_int(type, 1)),
                           m.apply(Op::exp, {m.apply(Op::sub, {low, top})})});
  const int first = m.apply(Op::ge, {kTopA, kTopB});
  const int larger = m.apply(Op::select, {first, kSumA, kSumB});
  const int smaller = m.apply(Op::select, {first, kSumB, kSumA});
  m.results = {top, m.apply(Op::fma, {smaller, scale, larger})};

  Lambda& finalize = fold.finalize;
  finalize.params = fold.state;
  finalize.results = {finalize.apply(Op::add, {0, finalize.apply(Op::log, {1})})};
  return fold;
}

// --- a user's own

Fold make_monoid(MonoidParts parts) {
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (parts.name.empty() || !std::all_of(parts.name.begin(), parts.name.end(), is_word)) {
    throw UserError(
        ErrorCode::invalid_argument,
        fmt::format("a monoid is named \"{}\"; use letters, digits and underscores", parts.name),
        parts.name);
  }
  std::vector<Bits> twice = parts.init;
  twice.insert(twice.end(), parts.init.begin(), parts.init.end());
  const std::vector<Bits> merged = evaluate(parts.merge, twice);
  for (std::size_t i = 0; i < merged.size(); ++i) {
    const DType type = parts.state[i];
    auto is_nan = [&](Bits bits) {
      return is_float(type) && std::isnan(double_of_bits(type, bits));
    };
    if (merged[i] == parts.init[i] || (is_nan(merged[i]) && is_nan(parts.init[i]))) continue;
    throw UserError(
        ErrorCode::invalid_argument,
        fmt::format("the initial state of the monoid {} is no identity: merged with itself its "
                    "field {} becomes {} instead of {}; merge must leave a state as it is when the "
                    "other one is the initial state",
                    parts.name, i, text_of_bits(type, merged[i]),
                    text_of_bits(type, parts.init[i])),
        parts.name);
  }
  Fold fold;
  fold.name = std::move(parts.name);
  fold.operands = std::move(parts.operands);
  fold.state = std::move(parts.state);
  fold.init = std::move(parts.init);
  fold.lift = std::move(parts.lift);
  fold.merge = std::move(parts.merge);
  fold.finalize = std::move(parts.finalize);
  fold.commutative = parts.commutative;
  // Equal names are equal folds: two monoids of one name may differ in anything else.
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, the same on every machine
  for (const char c : print(fold)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  fold.name += fmt::format(".{:016x}", hash);
  return fold;
}

}  // namespace chainfold::codegen
