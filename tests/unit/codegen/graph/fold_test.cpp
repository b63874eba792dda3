// Folds: their lambdas, evaluated over sequences cut at random places, against exact references.
#include "chainfold/codegen/graph/fold.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/literal.hpp"
#include "chainfold/codegen/graph/fold_print.hpp"
#include "chainfold/codegen/graph/fold_recurrence.hpp"
#include "chainfold/codegen/graph/fold_sum.hpp"
#include "chainfold/codegen/graph/fold_variance.hpp"
#include "chainfold/codegen/graph/lambda.hpp"
#include "chainfold/codegen/plan/published.hpp"

namespace chainfold::codegen {
namespace {

using State = std::vector<Bits>;
using Random = std::mt19937_64;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

State lift(const Fold& fold, Bits x) { return evaluate(fold.lift, std::vector<Bits>{x}); }

State merge(const Fold& fold, const State& a, const State& b) {
  State both = a;
  both.insert(both.end(), b.begin(), b.end());
  return evaluate(fold.merge, both);
}

Bits finalize(const Fold& fold, const State& state) { return evaluate(fold.finalize, state)[0]; }

/// Merges the elements' states over a tree of random cuts, empty states among the leaves; `depth`
/// becomes the tree's height.
State merge_randomly(const Fold& fold, std::span<const Bits> x, Random& random, int& depth) {
  if (x.empty()) {
    depth = 0;
    return fold.init;
  }
  if (x.size() == 1 && random() % 8 != 0) {
    depth = 0;
    return lift(fold, x[0]);
  }
  const std::size_t cut = random() % (x.size() + 1);
  int left = 0, right = 0;
  const State a = merge_randomly(fold, x.first(cut), random, left);
  const State b = merge_randomly(fold, x.subspan(cut), random, right);
  depth = 1 + std::max(left, right);
  return merge(fold, a, b);
}

State merge_in_order(const Fold& fold, std::span<const Bits> x) {
  State state = fold.init;
  for (const Bits e : x) state = merge(fold, state, lift(fold, e));
  return state;
}

double run(const Fold& fold, const std::vector<double>& values) {
  std::vector<Bits> x;
  for (const double v : values) x.push_back(bits_of_double(fold.operands[0], v));
  return double_of_bits(fold.result(), finalize(fold, merge_in_order(fold, x)));
}

/// A sum without rounding: wide enough for every bit of every double.
class ExactSum {
 public:
  ExactSum() {
    mpfr_init2(sum_, 4400);
    mpfr_init2(magnitude_, 4400);
    mpfr_set_zero(sum_, 1);
    mpfr_set_zero(magnitude_, 1);
  }
  ExactSum(const ExactSum&) = delete;
  ExactSum& operator=(const ExactSum&) = delete;
  ~ExactSum() {
    mpfr_clear(sum_);
    mpfr_clear(magnitude_);
  }
  void add(double x) {
    mpfr_add_d(sum_, sum_, x, MPFR_RNDN);
    mpfr_add_d(magnitude_, magnitude_, std::fabs(x), MPFR_RNDN);
  }
  /// |got - sum|, rounded up.
  double error(double got) const {
    mpfr_t difference;
    mpfr_init2(difference, 4400);
    mpfr_d_sub(difference, got, sum_, MPFR_RNDN);
    mpfr_abs(difference, difference, MPFR_RNDN);
    const double out = mpfr_get_d(difference, MPFR_RNDU);
    mpfr_clear(difference);
    return out;
  }
  double sum() const { return mpfr_get_d(sum_, MPFR_RNDN); }
  double magnitude() const { return mpfr_get_d(magnitude_, MPFR_RNDU); }

 private:
  mpfr_t sum_, magnitude_;
};

double unit(DType type) { return type == DType::f32 ? 0x1p-24 : 0x1p-53; }

/// Sequences that make naive sums fail in different ways.
std::vector<std::vector<double>> float_sequences(Random& random) {
  std::uniform_real_distribution<double> uniform(0, 1), sides(-1, 1);
  std::vector<std::vector<double>> all;
  for (const int n : {0, 1, 2, 3, 7, 32, 100, 1000}) {
    std::vector<double> positive, mixed, wide, paired, spike;
    for (int i = 0; i < n; ++i) {
      positive.push_back(uniform(random));
      mixed.push_back(sides(random));
      wide.push_back(std::ldexp(sides(random), static_cast<int>(random() % 80) - 40));
      paired.push_back(i % 2 == 0 || paired.empty() ? wide.back() : -paired.back());
      spike.push_back(i == 0 ? 32768 : 0x1p-10 * (1 - 0x1p-11));
    }
    std::shuffle(paired.begin(), paired.end(), random);
    all.insert(all.end(), {positive, mixed, wide, paired, spike});
  }
  return all;
}

TEST(FoldSum, FloatsStayWithinTheBound) {
  Random random(1);
  for (const DType type : {DType::f32, DType::f64}) {
    const Fold fold = make_sum(type);
    const double u = unit(type);
    for (const std::vector<double>& values : float_sequences(random)) {
      std::vector<Bits> x;
      ExactSum exact;
      for (const double v : values) {
        x.push_back(bits_of_double(type, v));
        exact.add(double_of_bits(type, x.back()));
      }
      const auto n = static_cast<double>(values.size());
      const double bound = u * std::fabs(exact.sum()) + 4 * n * u * u * exact.magnitude();
      for (int round = 0; round < 20; ++round) {
        int depth = 0;
        const State state =
            round == 0 ? merge_in_order(fold, x) : merge_randomly(fold, x, random, depth);
        const double got = double_of_bits(type, finalize(fold, state));
        EXPECT_LE(exact.error(got), bound * (1 + 1e-12))
            << fold.name << " of " << values.size() << ", round " << round << ": " << got << " for "
            << exact.sum();
      }
    }
  }
}

State accumulate(const Fold& fold, State state, Bits x) {
  state.push_back(x);
  return evaluate(fold.accumulate.value(), state);
}

/// A state is what merge makes one: high + low rounds to high, no field is -0, and low is 0 where
/// high is not finite. States of one f64 are never -0.
void expect_normal(const Fold& fold, const State& state) {
  const DType type = fold.state[0];
  if (fold.state.size() == 1) {
    const double sum = double_of_bits(type, state[0]);
    EXPECT_FALSE(sum == 0 && std::signbit(sum)) << fold.name;
    return;
  }
  const double high = double_of_bits(type, state[0]), low = double_of_bits(type, state[1]);
  EXPECT_FALSE(high == 0 && std::signbit(high)) << fold.name;
  EXPECT_FALSE(low == 0 && std::signbit(low)) << fold.name;
  EXPECT_TRUE(std::isfinite(low)) << fold.name << ": " << high << ", " << low;
  if (!std::isfinite(high)) {
    EXPECT_EQ(low, 0) << fold.name << ": " << high;
  } else {
    EXPECT_EQ(double_of_bits(type, finalize(fold, state)), high) << fold.name << ", " << low;
  }
}

TEST(FoldSum, ValuesByThemselvesCostOneRoundingEach) {
  Random random(11);
  for (const DType type : {DType::f32, DType::f64}) {
    const Fold fold = make_running_sum(type);
    const double u = unit(type);
    for (const std::vector<double>& values : float_sequences(random)) {
      State state = fold.init;
      ExactSum exact;
      std::vector<State> pieces;
      for (const double v : values) {
        const Bits x = bits_of_double(type, v);
        exact.add(double_of_bits(type, x));
        state = accumulate(fold, state, x);
        expect_normal(fold, state);
        if (random() % 16 == 0) {  // what merge makes of such states is one, too
          pieces.push_back(state);
          state = fold.init;
        }
      }
      for (const State& piece : pieces) state = merge(fold, piece, state);
      expect_normal(fold, state);
      const auto n = static_cast<double>(values.size());
      const double bound =
          u * (std::fabs(exact.sum()) + exact.magnitude()) + 4 * n * u * u * exact.magnitude();
      EXPECT_LE(exact.error(double_of_bits(type, finalize(fold, state))), bound * (1 + 1e-12))
          << fold.name << " of " << values.size() << " for " << exact.sum();
    }
    for (const Bits x : {bits_of_double(type, 0.0), bits_of_double(type, -0.0),
                         bits_of_double(type, 3.5), bits_of_double(type, -0x1p-100)})
      EXPECT_EQ(accumulate(fold, fold.init, x), lift(fold, x));
  }
}

TEST(FoldSum, ValuesByThemselvesKeepInfinitiesAndNaN) {
  for (const DType type : {DType::f32, DType::f64}) {
    const Fold fold = make_running_sum(type);
    const double big =
        type == DType::f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    auto add_up = [&](const std::vector<double>& values) {
      State state = fold.init;
      for (const double v : values) {
        state = accumulate(fold, state, bits_of_double(type, v));
        expect_normal(fold, state);
      }
      return double_of_bits(type, finalize(fold, state));
    };
    EXPECT_EQ(add_up({1, kInf, 2, 3}), kInf);
    EXPECT_EQ(add_up({0x1p-60, 1, -kInf, -kInf, 2}), -kInf);
    EXPECT_EQ(add_up({big, big, 1, -3}), kInf);
    EXPECT_EQ(add_up({big, -big, 1}), 1);
    EXPECT_TRUE(std::isnan(add_up({kInf, 1, -kInf, 4})));
    EXPECT_TRUE(std::isnan(add_up({1, kNaN, 2})));
  }
}

TEST(FoldSum, KeepsWhatPlainSumsLose) {
  const Fold fold = make_sum(DType::f32);
  std::vector<double> tiny(65537, 0x1p-25);
  tiny[0] = 1;
  EXPECT_EQ(run(fold, tiny), 1 + 0x1p-9);  // each of them alone rounds to nothing beside 1
  EXPECT_EQ(run(fold, {0x1p50, 1, -0x1p50}), 1);
  EXPECT_EQ(run(fold, {16777216, 1, 1, -16777216, 0.25}), 2.25);
  EXPECT_EQ(run(make_sum(DType::f64), {1e300, 3, -1e300}), 3);
}

TEST(FoldSum, InfinitiesAndNaN) {
  for (const DType type : {DType::f32, DType::f64}) {
    const Fold fold = make_sum(type);
    const double big =
        type == DType::f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    EXPECT_EQ(run(fold, {kInf}), kInf);
    EXPECT_EQ(run(fold, {1, kInf, 2, 3}), kInf);
    EXPECT_EQ(run(fold, {-kInf, 2, -kInf, 1e-30}), -kInf);
    EXPECT_EQ(run(fold, {big, big}), kInf);
    EXPECT_EQ(run(fold, {big, big, 1, -3}), kInf);
    EXPECT_EQ(run(fold, {-big, -big, 7}), -kInf);
    EXPECT_TRUE(std::isnan(run(fold, {kInf, 1, -kInf})));
    EXPECT_TRUE(std::isnan(run(fold, {1, kNaN, 2})));
    EXPECT_TRUE(std::isnan(run(fold, {kNaN, kInf})));
    Random random(2);
    for (int round = 0; round < 100; ++round) {  // an infinity stays one wherever the cuts are
      std::vector<Bits> x;
      for (int i = 0; i < 20; ++i)
        x.push_back(bits_of_double(type, static_cast<double>(random() % 100) - 50));
      x[random() % x.size()] = bits_of_double(type, kInf);
      x[random() % x.size()] = bits_of_double(type, kInf);
      int depth = 0;
      EXPECT_EQ(double_of_bits(type, finalize(fold, merge_randomly(fold, x, random, depth))), kInf);
    }
  }
}

TEST(FoldSum, IsNeverNegativeZero) {
  for (const DType type : {DType::f32, DType::f64}) {
    const Fold fold = make_sum(type);
    for (const std::vector<double>& x :
         {std::vector<double>{}, {-0.0}, {-0.0, -0.0}, {1, -1}, {-0.0, 0.0}}) {
      EXPECT_EQ(run(fold, x), 0);
      EXPECT_FALSE(std::signbit(run(fold, x)));
    }
  }
}

TEST(FoldSum, OfFloatsHasOneDouble) {
  const Fold sum = make_sum(DType::f32);
  EXPECT_EQ(sum.state, std::vector{DType::f64});
  EXPECT_EQ(sum.result(), DType::f32);
  EXPECT_EQ(sum.result(1), DType::f64);
  Bits state = sum.init[0];
  for (const double value : {16777216.0, 1.0, -0.0, 0.0}) {
    const Bits lifted = evaluate(sum.lift, std::array{bits_of_double(DType::f32, value)})[0];
    state = evaluate(sum.merge, std::array{state, lifted})[0];
  }
  EXPECT_EQ(double_of_bits(DType::f64, state), 16777217.0);
  const State values = evaluate(sum.finalize, std::array{state});
  EXPECT_EQ(double_of_bits(DType::f32, values[0]), 16777216.0);
  EXPECT_EQ(double_of_bits(DType::f64, values[1]), 16777217.0) << "not rounded";
  const Bits zero = evaluate(sum.lift, std::array{bits_of_double(DType::f32, -0.0)})[0];
  EXPECT_EQ(zero, 0U) << "no state is -0";
}

/// Whatever is merged with what, no part's sum leaves the range.
TEST(FoldSum, PartsBeyondTheRange) {
  Random random(21);
  for (const DType type : {DType::f32, DType::f64}) {
    const double big =
        type == DType::f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    for (const double rest : {0.0, 1.0, big, -big / 4}) {
      std::vector<double> values(40, big);
      values.resize(80, -big);
      values.push_back(rest);
      std::vector<Bits> x;
      for (const double v : values) x.push_back(bits_of_double(type, v));
      for (int round = 0; round < 50; ++round) {
        if (round > 1) std::shuffle(x.begin(), x.end(), random);
        int depth = 0;
        const Fold fold = by_elements(make_sum(type));
        const State state =
            round == 0 ? merge_in_order(fold, x) : merge_randomly(fold, x, random, depth);
        const double got = double_of_bits(type, finalize(fold, state));
        EXPECT_LE(std::fabs(got - rest), 4 * unit(type) * big) << fold.name << ", " << rest;
      }
    }
    EXPECT_EQ(run(by_elements(make_sum(type)), {big, big, -big}), big);
    EXPECT_EQ(run(by_elements(make_sum(type)), {-big, -big, 1, big / 4}), -kInf);
  }
}

TEST(FoldMean, IsTheMeanOfAnyNumbers) {
  const Fold fold = make_mean();
  constexpr double kBig = std::numeric_limits<double>::max();
  const auto both_ways = [&](const std::vector<double>& values) {
    const double by_lift = run(by_elements(fold), values);
    State state = fold.init;
    bool is_large = false;
    for (const double v : values) {
      is_large = is_large || std::fabs(v) > 0x1p900;
      state = accumulate(fold, state, bits_of_double(DType::f64, v));
    }
    const double accumulated = double_of_bits(DType::f64, finalize(fold, state));
    if (!is_large && !std::isnan(by_lift)) {
      EXPECT_EQ(accumulated, by_lift);
    }
    EXPECT_TRUE(!std::isnan(by_lift) || std::isnan(accumulated));
    return by_lift;
  };
  EXPECT_TRUE(std::isnan(both_ways({})));
  EXPECT_FALSE(std::signbit(both_ways({})));
  for (const double x : {0.1, 1e-310, 5e-324, 1e308, kBig, -1.0 / 3, 0x1p899, 0x1p901}) {
    for (const int n : {1, 2, 3, 5, 7, 10, 1000, 1001})
      EXPECT_EQ(both_ways(std::vector<double>(static_cast<std::size_t>(n), x)), x)
          << x << ", " << n;
  }
  EXPECT_EQ(both_ways({kBig, -kBig, 3}), 1);
  EXPECT_EQ(both_ways({1, 1, 1 + 0x1p-52}), 1);
  EXPECT_EQ(both_ways({1e16, 1, -1e16}), 1.0 / 3);
  Random random(16);
  for (int i = 0; i < 1000; ++i) {  // a little above the subnormals, and among them
    const auto number = [&] {
      const double size = std::ldexp(1 + std::ldexp(static_cast<double>(random() >> 12), -52),
                                     -1023 + static_cast<int>(random() % 6));
      return random() % 2 == 0 ? size : -size;
    };
    const double x = number(), y = number();
    const long double mean = (static_cast<long double>(x) + y) / 2;  // exact
    EXPECT_EQ(both_ways({x, y}), static_cast<double>(mean)) << x << ", " << y;
  }
  for (int i = 0; i < 1000; ++i) {  // whose mean is subnormal
    const auto k = [&] {
      return (std::int64_t{1} << 50) + static_cast<std::int64_t>(random() >> 14);
    };
    const std::int64_t a = k(), b = k(), c = k(), total = a + b + c;
    const auto of = [](std::int64_t units) {
      return std::ldexp(static_cast<double>(units), -1074);
    };
    EXPECT_EQ(both_ways({of(a), of(b), of(c)}), of(total / 3 + (total % 3 == 2 ? 1 : 0)));
  }
  EXPECT_EQ(both_ways({1, kInf}), kInf);
  EXPECT_TRUE(std::isnan(both_ways({kInf, -kInf})));
  EXPECT_TRUE(std::isnan(both_ways({1, kNaN})));
}

TEST(FoldSum, IntegersAreExactAndWrap) {
  Random random(3);
  for (const DType type : {DType::i64, DType::u64}) {
    const Fold fold = make_sum(type);
    for (int round = 0; round < 100; ++round) {
      std::vector<Bits> x(random() % 50);
      Bits expected = 0;
      for (Bits& e : x) expected += e = random();
      int depth = 0;
      EXPECT_EQ(finalize(fold, merge_randomly(fold, x, random, depth)), expected);
    }
  }
}

std::vector<Fold> all_folds() {
  std::vector<Fold> folds = {make_any(),
                             make_all(),
                             make_variance(DType::f32),
                             make_variance(DType::f64),
                             make_variance(DType::i64),
                             make_mean(),
                             make_running_sum(DType::f64)};
  for (const DType type : {DType::f32, DType::f64, DType::i64, DType::u64})
    folds.push_back(make_sum(type));
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto type = static_cast<DType>(t);
    if (!is_defined(Op::min, type)) continue;
    folds.push_back(make_min(type));
    folds.push_back(make_max(type));
  }
  return folds;
}

std::vector<Bits> interesting_values(DType type, Random& random) {
  std::vector<Bits> values;
  if (type == DType::boolean) return {0, 1, 1, 0, 1};
  if (is_float(type)) {
    for (const double v :
         {0.0, -0.0, 1.0, -1.0, kInf, -kInf, kNaN, 1e30, -1e30, 1e-40, -1e-40, 1.0 / 3}) {
      values.push_back(bits_of_double(type, v));
    }
    for (int i = 0; i < 40; ++i) {
      values.push_back(bits_of_double(type, std::ldexp(static_cast<double>(random()) * 0x1p-64,
                                                       static_cast<int>(random() % 200) - 100)));
    }
    return values;
  }
  for (int i = 0; i < 40; ++i) values.push_back(evaluate(Op::convert, DType::u64, type, random()));
  return values;
}

TEST(Fold, InitIsTheIdentityBitForBit) {
  Random random(4);
  for (const Fold& fold : all_folds()) {
    EXPECT_EQ(merge(fold, fold.init, fold.init), fold.init) << fold.name;
    const std::vector<Bits> values = interesting_values(fold.operands[0], random);
    std::vector<State> states;
    for (const Bits x : values) states.push_back(lift(fold, x));
    for (int i = 0; i < 300; ++i) {
      const State a = states[random() % states.size()], b = states[random() % states.size()];
      states.push_back(merge(fold, a, b));
    }
    for (const State& state : states) {
      EXPECT_EQ(merge(fold, fold.init, state), state) << fold.name;
      EXPECT_EQ(merge(fold, state, fold.init), state) << fold.name;
    }
  }
}

TEST(FoldRecurrence, InitIsTheIdentityBitForBitOfNumbersOfAnySize) {
  Random random(14);
  for (const DType type : {DType::f32, DType::f64}) {
    for (const bool reverse : {false, true}) {
      const Fold fold = codegen::make_recurrence(type, {.reverse = reverse, .initial = false});
      std::vector<State> states;
      const std::vector<Bits> values = interesting_values(type, random);
      const auto any = [&] { return values[random() % values.size()]; };
      const auto is_finite = [&](Bits x) { return std::isfinite(double_of_bits(type, x)); };
      for (int i = 0; i < 200; ++i) {
        const Bits a = any(), x = any();
        if (is_finite(a) && is_finite(x)) states.push_back(evaluate(fold.lift, std::vector{a, x}));
      }
      for (int i = 0; i < 2000; ++i) {
        const State a = states[random() % states.size()], b = states[random() % states.size()];
        states.push_back(merge(fold, a, b));
      }
      for (const State& state : states) {
        EXPECT_EQ(merge(fold, fold.init, state), state) << fold.name;
        EXPECT_EQ(merge(fold, state, fold.init), state) << fold.name;
        for (std::size_t field = 0; field < state.size(); ++field) {
          if (fold.state[field] != DType::f64) continue;
          EXPECT_TRUE(std::isfinite(double_of_bits(DType::f64, state[field]))) << fold.name;
        }
      }
    }
  }
}

// Of f32 whose factors are at most 1, one by one by either fold.
TEST(FoldRecurrence, TheQuickOneGivesTheSame) {
  Random random(15);
  for (const bool initial : {false, true}) {
    const Fold fold = codegen::make_recurrence(DType::f32, {.reverse = false, .initial = initial});
    const codegen::QuickFold& quick = *fold.quick;
    std::vector<Bits> first;
    if (initial) first.push_back(bits_of_double(DType::f32, 3));
    const auto value = [&](const Fold& of, State state) {
      state.insert(state.end(), first.begin(), first.end());
      return double_of_bits(DType::f32, evaluate(of.finalize, state)[0]);
    };
    State state = fold.init, narrow = quick.scans.init, rest = quick.rest.init;
    for (int i = 0; i < 3000; ++i) {
      const auto number = [&] { return std::ldexp(static_cast<double>(random()), -64); };
      const std::vector<Bits> element = {bits_of_double(DType::f32, number() * 2 - 1),
                                         bits_of_double(DType::f32, number())};
      EXPECT_EQ(evaluate(quick.serves, element)[0], 1u);
      state = merge(fold, state, evaluate(fold.lift, element));
      narrow = merge(quick.scans, narrow, evaluate(quick.scans.lift, element));
      rest = merge(quick.rest, rest, evaluate(quick.rest.lift, element));
      State total = narrow;
      total.insert(total.end(), rest.begin(), rest.end());
      EXPECT_NEAR(value(fold, state), value(quick.scans, narrow), 0x1p-22);
      EXPECT_EQ(evaluate(quick.holds, total)[0], 1u);
      EXPECT_NEAR(value(fold, state), value(fold, evaluate(quick.widen, total)), 0x1p-22);
      State given = state;
      given.insert(given.end(), first.begin(), first.end());
      EXPECT_EQ(value(fold, state), value(quick.scans, evaluate(quick.narrow, given)));
    }
  }
  const Fold fold = codegen::make_recurrence(DType::f32, {});
  const auto serves = [&](double a) {
    const std::vector<Bits> element = {bits_of_double(DType::f32, a), 0};
    return evaluate(fold.quick->serves, element)[0] != 0;
  };
  EXPECT_TRUE(serves(1) && serves(-1) && serves(0));
  EXPECT_FALSE(serves(1.0000002) || serves(-HUGE_VAL) || serves(std::nan("")));
}

// A product that is below every f64 is there again where the run is scaled up; a value is told to
// be lost.
TEST(FoldRecurrence, TotalsKeepWhatVanishes) {
  const Fold fold = codegen::make_recurrence(DType::f32, {});
  const codegen::QuickFold& quick = *fold.quick;
  const auto of = [](const Fold& f, double a, double x) {
    return evaluate(
        f.lift, std::vector<Bits>{bits_of_double(DType::f32, a), bits_of_double(DType::f32, x)});
  };
  // A state of `scans`, and behind it one of `rest`.
  const auto behind = [](State all, const State& rest) {
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  };
  const auto total = [&](double a, double x) {
    return behind(of(quick.scans, a, x), of(quick.rest, a, x));
  };
  const auto merged = [&](const State& a, const State& b) {
    const auto part = [&](const State& state, bool rest) {
      const auto middle = state.begin() + static_cast<std::ptrdiff_t>(quick.scans.state.size());
      return rest ? State(middle, state.end()) : State(state.begin(), middle);
    };
    return behind(merge(quick.scans, part(a, false), part(b, false)),
                  merge(quick.rest, part(b, true), part(a, true)));
  };
  State down = behind(quick.scans.init, quick.rest.init), up = fold.init;
  for (int i = 0; i < 5001; ++i) {
    down = merged(down, total(i % 2 == 0 ? 0.5 : -0.25, 0));
    up = merge(fold, up, of(fold, i % 2 == 0 ? -2 : 4, 0));
    EXPECT_EQ(evaluate(quick.holds, down)[0], 1u);
  }
  const State back = merge(fold, merge(fold, of(fold, 1, 3), evaluate(quick.widen, down)), up);
  EXPECT_EQ(double_of_bits(DType::f32, evaluate(fold.finalize, back)[0]), -3);
  EXPECT_EQ(evaluate(quick.holds, merged(total(1, 3), down))[0], 0u);
  const State some = merged(down, total(0.5, 0x1p-149));
  EXPECT_EQ(evaluate(quick.holds, merged(total(1, 3), some))[0], 1u);
  EXPECT_EQ(evaluate(quick.holds, total(1, std::nan("")))[0], 0u);
  EXPECT_EQ(evaluate(quick.holds, total(1, HUGE_VAL))[0], 0u);
  const auto serves_alone = [&](double x) {
    const std::vector<Bits> element = {bits_of_double(DType::f32, 0.5),
                                       bits_of_double(DType::f32, x)};
    return evaluate(quick.serves_alone, element)[0] != 0;
  };
  EXPECT_TRUE(serves_alone(3e38));
  EXPECT_FALSE(serves_alone(-HUGE_VAL) || serves_alone(std::nan("")));
}

TEST(Fold, TilesMayBeCombinedFirst) {
  Random random(5);
  for (const Fold& fold : all_folds()) {
    const DType type = fold.operands[0];
    if (!fold.tile) {
      EXPECT_TRUE(fold.moments || fold.accumulate) << fold.name;
      continue;
    }
    for (int i = 0; i < 50; ++i) {
      const Bits x = evaluate(Op::convert, DType::i64, type, random() % 200);
      const Bits y = evaluate(Op::convert, DType::i64, type, random() % 200);
      const State apart = merge(fold, lift(fold, x), lift(fold, y));
      EXPECT_EQ(finalize(fold, lift(fold, evaluate(*fold.tile, type, type, x, y))),
                finalize(fold, apart))
          << fold.name;
      EXPECT_EQ(evaluate(*fold.tile, type, type, x, fold.tile_identity), x) << fold.name;
    }
  }
}

TEST(Fold, MinAndMax) {
  EXPECT_EQ(run(make_min(DType::f32), {3, -2, 5}), -2);
  EXPECT_EQ(run(make_max(DType::f64), {3, -2, 5}), 5);
  EXPECT_EQ(run(make_min(DType::f32), {}), kInf);
  EXPECT_EQ(run(make_max(DType::f32), {}), -kInf);
  EXPECT_TRUE(std::isnan(run(make_min(DType::f32), {1, kNaN, -kInf})));
  EXPECT_TRUE(std::isnan(run(make_max(DType::f32), {1, kNaN, kInf})));
  EXPECT_TRUE(std::signbit(run(make_min(DType::f32), {0.0, -0.0, 0.0})));
  EXPECT_FALSE(std::signbit(run(make_max(DType::f32), {-0.0, 0.0, -0.0})));
  EXPECT_EQ(make_min(DType::i8).init, State{0x7f});
  EXPECT_EQ(make_max(DType::i8).init, State{0x80});
  EXPECT_EQ(make_min(DType::u16).init, State{0xffff});
  EXPECT_EQ(make_max(DType::u32).init, State{0});
  EXPECT_EQ(make_min(DType::i64).init, State{0x7fffffffffffffff});
  EXPECT_EQ(make_max(DType::i64).init, State{0x8000000000000000});
  EXPECT_EQ(make_min(DType::u64).init, State{~Bits{0}});
  EXPECT_EQ(run(make_max(DType::i8), {-5, -128, -100}), -5);
}

TEST(Fold, AnyAndAll) {
  EXPECT_EQ(run(make_any(), {}), 0);
  EXPECT_EQ(run(make_all(), {}), 1);
  EXPECT_EQ(run(make_any(), {0, 0, 1}), 1);
  EXPECT_EQ(run(make_any(), {0, 0}), 0);
  EXPECT_EQ(run(make_all(), {1, 1}), 1);
  EXPECT_EQ(run(make_all(), {1, 0}), 0);
}

TEST(FoldVariance, StaysWithinTheBoundOfChanGolubLeVeque) {
  Random random(6);
  for (const DType type : {DType::f32, DType::f64}) {
    const Fold fold = make_variance(type);
    for (const double mean : {0.0, 1.0, 3e3, -1e4}) {
      for (const int n : {1, 2, 3, 33, 1000}) {
        std::normal_distribution<double> normal(mean, 1);
        std::vector<Bits> x;
        for (int i = 0; i < n; ++i) x.push_back(bits_of_double(type, normal(random)));
        long double total = 0, squares = 0;
        for (const Bits b : x) total += double_of_bits(type, b);
        const long double centre = total / n;
        for (const Bits b : x) {
          const long double d = double_of_bits(type, b) - centre;
          squares += d * d;
        }
        const auto expected = static_cast<double>(squares / n);
        for (int round = 0; round < 10; ++round) {
          int depth = 0;
          const double got =
              double_of_bits(type, finalize(fold, merge_randomly(fold, x, random, depth)));
          if (n == 1) {
            EXPECT_EQ(got, 0);
            continue;
          }
          const double condition = std::sqrt(1 + static_cast<double>(centre * centre) / expected);
          const double bound = 8 * (depth + 1) * unit(type) * condition;
          EXPECT_LE(std::fabs(got - expected), bound * expected)
              << fold.name << " of " << n << " around " << mean << ": " << got << " for "
              << expected;
        }
      }
    }
  }
}

TEST(FoldVariance, EdgeCases) {
  for (const DType type : {DType::f32, DType::f64}) {
    const Fold fold = make_variance(type);
    EXPECT_TRUE(std::isnan(run(fold, {})));
    EXPECT_EQ(run(fold, {7}), 0);
    EXPECT_EQ(run(fold, {5, 5, 5, 5}), 0);
    EXPECT_EQ(run(fold, {1, 3}), 1);
    EXPECT_NEAR(run(fold, {2, 4, 4, 4, 5, 5, 7, 9}), 4, 64 * unit(type));
    EXPECT_TRUE(std::isnan(run(fold, {kInf})));
    EXPECT_TRUE(std::isnan(run(fold, {1, kInf, 2})));
    EXPECT_TRUE(std::isnan(run(fold, {1, kNaN})));
  }
}

TEST(Fold, RefusesTypesItIsNotDefinedOn) {
  EXPECT_THROW(make_sum(DType::f16), InternalError);
  EXPECT_THROW(make_sum(DType::u32), InternalError);
  EXPECT_THROW(make_min(DType::boolean), InternalError);
  EXPECT_THROW(make_max(DType::bf16), InternalError);
  EXPECT_THROW(make_variance(DType::i32), InternalError);
}

TEST(Lambda, ChecksWhatIsWritten) {
  Lambda lambda;
  lambda.params = {DType::f32, DType::i64, DType::boolean};
  EXPECT_EQ(lambda.type(lambda.apply(Op::lt, {0, 0})), DType::boolean);
  EXPECT_EQ(lambda.type(lambda.apply(Op::select, {2, 1, 1})), DType::i64);
  EXPECT_EQ(lambda.convert(1, DType::i64), 1);
  EXPECT_EQ(lambda.type(lambda.convert(1, DType::f64)), DType::f64);
  EXPECT_THROW(lambda.apply(Op::add, {0, 1}), InternalError);
  EXPECT_THROW(lambda.apply(Op::add, {0}), InternalError);
  EXPECT_THROW(lambda.apply(Op::sqrt, {1}), InternalError);
  EXPECT_THROW(lambda.apply(Op::add, {0, 99}), InternalError);
  EXPECT_THROW(lambda.apply(Op::select, {0, 1, 1}), InternalError);
  EXPECT_THROW(evaluate(lambda, std::vector<Bits>{1}), InternalError);
}

TEST(Fold, Prints) {
  EXPECT_EQ(print(make_max(DType::i8)),
            "fold max.i8 (i8) -> state (i8) init (-128) -> i8\n"
            "  tile max identity -128\n"
            "  not linear, commutative\n"
            "  lift(%0: i8)\n"
            "    yield %0\n"
            "  merge(%0: i8, %1: i8)\n"
            "    %2 = max %0, %1 : i8\n"
            "    yield %2\n"
            "  finalize(%0: i8)\n"
            "    yield %0\n");
  const std::string sum = print(make_sum(DType::f32));
  EXPECT_NE(sum.find("  linear, commutative\n"), std::string::npos) << sum;
  EXPECT_NE(sum.find("  accumulate(%0: f64, %1: f32)\n"), std::string::npos) << sum;
  EXPECT_NE(sum.find("  guard state 0 below inf\n"), std::string::npos) << sum;
}

// --- literals
// -----------------------------------------------------------------------------------------

TEST(Literal, IsRepresentableMeansTheSameValue) {
  auto fits = [](DType target, auto value) {
    return is_representable(target, kDType<decltype(value)>, bits_of(value));
  };
  EXPECT_TRUE(fits(DType::i8, 127));
  EXPECT_FALSE(fits(DType::i8, 128));
  EXPECT_TRUE(fits(DType::i8, -128));
  EXPECT_FALSE(fits(DType::i8, -129));
  EXPECT_FALSE(fits(DType::u64, -1));
  EXPECT_TRUE(fits(DType::u64, std::uint64_t{1} << 63));
  EXPECT_FALSE(fits(DType::i64, std::uint64_t{1} << 63));
  EXPECT_TRUE(fits(DType::i64, std::numeric_limits<std::int64_t>::min()));
  EXPECT_TRUE(fits(DType::u32, 4294967295u));
  EXPECT_FALSE(fits(DType::i32, 4294967295u));
  EXPECT_TRUE(fits(DType::f32, 16777216));
  EXPECT_FALSE(fits(DType::f32, 16777217));
  EXPECT_TRUE(fits(DType::f32, 16777218));
  EXPECT_TRUE(fits(DType::f64, std::int64_t{1} << 53));
  EXPECT_FALSE(fits(DType::f64, (std::int64_t{1} << 53) + 1));
  EXPECT_FALSE(fits(DType::f64, std::numeric_limits<std::int64_t>::max()));
  EXPECT_TRUE(fits(DType::f32, std::numeric_limits<std::int64_t>::min()));
  EXPECT_TRUE(fits(DType::f32, 0));
  EXPECT_TRUE(fits(DType::f16, 65504));
  EXPECT_FALSE(fits(DType::f16, 65536));
  EXPECT_TRUE(fits(DType::f32, 0.5));
  EXPECT_FALSE(fits(DType::f32, 0.1));
  EXPECT_TRUE(fits(DType::f64, 0.1f));
  EXPECT_FALSE(fits(DType::f32, 1e300));
  EXPECT_TRUE(fits(DType::f32, kInf));
  EXPECT_TRUE(fits(DType::f32, kNaN));
  EXPECT_FALSE(fits(DType::i32, 1.0));
  EXPECT_FALSE(fits(DType::i32, true));
  EXPECT_FALSE(fits(DType::boolean, 1));
  EXPECT_TRUE(fits(DType::boolean, true));
}

}  // namespace
}  // namespace chainfold::codegen
