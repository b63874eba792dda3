// Folds of one operation, those that take the best of their elements or its index, logsumexp, and a
// user's own. Sums are in fold_sum.cpp, the variance is in fold_variance.cpp.
#include "chainfold/codegen/graph/fold.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/fold_parts.hpp"
#include "chainfold/codegen/graph/fold_print.hpp"
#include "chainfold/codegen/graph/lambda.hpp"

namespace chainfold::codegen {

namespace {

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

  fold.place = largest ? Op::max : Op::min;

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

Fold in_order(const Fold& fold) {
  if (!fold.place) return fold;
  const DType type = fold.operands[0];
  constexpr DType kIndex = DType::i64;
  const Bits nothing = bits_of_int(kIndex, -1);
  Fold ordered = fold;
  ordered.name += ".in_order";
  ordered.init[1] = nothing;
  ordered.commutative = false;

  Lambda& m = ordered.merge = {};
  m.params = {type, kIndex, type, kIndex};
  constexpr int kA = 0, kIndexA = 1, kB = 2, kIndexB = 3;
  // NaN is not worse than anything, and nothing is better than it.
  const int worse = m.apply(*fold.place == Op::max ? Op::le : Op::ge, {kB, kA});
  int later = m.apply(Op::bit_not, {worse});
  if (is_float(type)) later = m.apply(Op::bit_and, {later, m.apply(Op::eq, {kA, kA})});
  const int none = m.apply(Op::lt, {kIndexA, m.constant(kIndex, 0)});
  const int take = m.apply(Op::bit_or, {later, none});
  m.results = {m.apply(Op::select, {take, kB, kA}), m.apply(Op::select, {take, kIndexB, kIndexA})};

  ordered.finalize = {};
  ordered.finalize.params = ordered.state;
  ordered.finalize.results = {1};
  return ordered;
}

Fold by_elements(Fold fold) {
  fold.name += ".by_elements";
  fold.tile.reset();
  fold.accumulate.reset();
  fold.guard.reset();
  fold.place.reset();
  fold.relative.reset();
  fold.moments = fold.linear = false;
  return fold;
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

  // Exponentials relative to 0 of infinite elements are 0 or infinite, and so is the logarithm
  // then.
  Fold::Relative& relative = fold.relative.emplace();
  relative.top = Op::max;
  Lambda& base = relative.base;
  base.params = {type};
  const int infinite =
      base.apply(Op::eq, {base.apply(Op::abs, {0}), base.constant(type, range_end(type, true))});
  base.results = {base.apply(Op::select, {infinite, base.constant(type, 0), 0})};
  Lambda& term = relative.term;
  term.params = {type, type};
  // What this product is rounded by counts with the term, which is small where the product is not.
  const int log2_of_e = term.constant(type, bits_of_double(type, 1.4426950408889634));
  term.results = {
      term.apply(Op::exp2, {term.apply(Op::mul, {term.apply(Op::sub, {0, 1}), log2_of_e})})};

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
