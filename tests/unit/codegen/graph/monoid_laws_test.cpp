// The laws of monoids: which break one is told with the states that do, and lawful ones, also those
// that are so up to rounding or for their states alone, are accepted.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/graph/monoid_laws.hpp"
#include "chainfold/tests/support/expect_error.hpp"
#include "chainfold/tests/support/monoids.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

using I = std::int64_t;

/// Refused with these words, by the fold of these operands; the same is accepted unchecked.
template <class Make, class... E>
void expect_refused(Make make, const std::vector<std::string>& words, const E&... operands) {
  std::vector<std::string> all = words;
  all.emplace_back("cf::unchecked");
  expect_error<UserError>([&] { (void)fold(make(), operands...); }, ErrorCode::invalid_argument,
                          "m", all);
  EXPECT_NO_THROW((void)fold(make(unchecked), operands...));
}

// --- what is refused

TEST(MonoidLaws, AMaximumFromZeroOnIsNoneOfNegativeNumbers) {
  const auto make = [](auto... last) {
    return monoid(
        "m", state<float>(0), [](auto v) { return v; },
        [](auto a, auto b) { return max(get<0>(a), get<0>(b)); }, [](auto s) { return get<0>(s); },
        last...);
  };
  const std::vector<std::string> words{"monoid m breaks a law", "initial state (0) is no identity",
                                       "it gives (0), not that state", "lowest number"};
  expect_refused(make, words, input<float>("x"));
  expect_refused(make, words, input<f16>("h"));
  expect_refused(make, words, input<std::int8_t>("i"));
  EXPECT_NO_THROW((void)fold(make(), input<std::uint8_t>("u"))) << "no element is negative";
}

TEST(MonoidLaws, TheFirstStateOnTheWrongSide) {
  // Keeps the later one: nothing is an identity behind.
  expect_refused(
      [](auto... last) {
        return monoid(
            "m", state<I>(0), [](auto v) { return cast<I>(v); },
            [](auto, auto b) { return get<0>(b); }, [](auto s) { return get<0>(s); }, last...);
      },
      {"initial state (0) is no identity", "merged behind the state"}, input<std::int32_t>("x"));
}

TEST(MonoidLaws, MeansOfMeans) {
  expect_refused(
      [](auto... last) {
        return monoid(
            "m", state<float, I>(0, 0), [](auto v) { return fields(v, 1); },
            [](auto a, auto b) {
              const auto none_a = get<1>(a) == 0, none_b = get<1>(b) == 0;
              const auto mean = (get<0>(a) + get<0>(b)) * 0.5F;
              return fields(select(none_a, get<0>(b), select(none_b, get<0>(a), mean)),
                            get<1>(a) + get<1>(b));
            },
            [](auto s) { return get<0>(s); }, last...);
      },
      {"merge is not associative", "merge(merge(a, b), c) is (", "but merge(a, merge(b, c)) is (",
       "the sum and the count"},
      input<float>("x"));
}

TEST(MonoidLaws, DifferencesAndClippedSums) {
  expect_refused(
      [](auto... last) {
        return monoid(
            "m", state<I, bool>(0, false), [](auto v) { return fields(cast<I>(v), true); },
            [](auto a, auto b) {
              return fields(
                  select(get<1>(a), select(get<1>(b), get<0>(a) - get<0>(b), get<0>(a)), get<0>(b)),
                  get<1>(a) || get<1>(b));
            },
            [](auto s) { return get<0>(s); }, last...);
      },
      {"not associative"}, input<std::int16_t>("x"));
  expect_refused(
      [](auto... last) {
        return monoid(
            "m", state<std::int32_t>(0), [](auto v) { return max(min(v, 10), -10); },
            [](auto a, auto b) { return max(min(get<0>(a) + get<0>(b), 10), -10); },
            [](auto s) { return get<0>(s); }, last...);
      },
      {"not associative"}, input<std::int32_t>("x"));
}

TEST(MonoidLaws, NotANumberInOneOrderAlone) {
  expect_refused(
      [](auto... last) {
        return monoid(
            "m", state<float, bool>(0, false), [](auto v) { return fields(v, true); },
            [](auto a, auto b) {
              const auto both = (get<0>(a) + get<0>(b)) / (get<0>(b) - get<0>(b) * 0.5F);
              return fields(select(get<1>(a), select(get<1>(b), both, get<0>(a)), get<0>(b)),
                            get<1>(a) || get<1>(b));
            },
            [](auto s) { return get<0>(s); }, last...);
      },
      {"not associative"}, input<float>("x"));
}

TEST(MonoidLaws, WhatIsMarkedCommutativeIsTried) {
  const auto last_of = monoid(
      "m", state<float, bool>(0, false), [](auto v) { return fields(v, true); },
      [](auto a, auto b) {
        return fields(select(get<1>(b), get<0>(b), get<0>(a)), get<1>(a) || get<1>(b));
      },
      [](auto s) { return get<0>(s); });
  EXPECT_NO_THROW((void)fold(last_of, input<float>("x")));
  expect_error<UserError>([&] { (void)fold(last_of.commutative(), input<float>("x")); },
                          ErrorCode::invalid_argument, "m",
                          {"marked commutative", "merge(b, a) is (", ".commutative()"});
}

TEST(MonoidLaws, ErrorsOfAPartInManyAreFound) {
  // Lawful but where sums pass 100, which small elements never do.
  expect_refused(
      [](auto... last) {
        return monoid(
            "m", state<I>(0), [](auto v) { return cast<I>(v); },
            [](auto a, auto b) {
              const auto sum = get<0>(a) + get<0>(b);
              return select(sum > 100, sum - 1, sum);
            },
            [](auto s) { return get<0>(s); }, last...);
      },
      {"breaks a law"}, input<std::int32_t>("x"));
}

// --- what is accepted

template <class M, class... E>
void expect_lawful(const M& m, const E&... operands) {
  EXPECT_NO_THROW((void)fold(m, operands...)) << m.name;
}

TEST(MonoidLaws, TheTestsOwnAreLawful) {
  const auto b = input<bool>("b");
  const auto n = input<std::int32_t>("n");
  expect_lawful(longest_run(), b);
  expect_lawful(brackets(), b);
  expect_lawful(continuant(), input<std::uint32_t>("u"));
  expect_lawful(first_and_last(), input<double>("d"));
  expect_lawful(first_and_last(), input<float>("f"));
  expect_lawful(horner(), n);
  expect_lawful(horner(), input<std::uint8_t>("v"));
  expect_lawful(last_even(), n, index());
  expect_lawful(magnitudes(), input<std::int8_t>("c"));
}

/// Sums, products and maxima in every type, of states of that type.
template <class T>
class MonoidLawsOf : public testing::Test {};
using Types = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                             std::uint32_t, std::int64_t, std::uint64_t, f16, bf16, float, double>;
TYPED_TEST_SUITE(MonoidLawsOf, Types);

TYPED_TEST(MonoidLawsOf, SumsProductsAndExtremesAreLawful) {
  using T = TypeParam;
  const auto x = input<T>("x");
  const auto of = [](int value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(value);
    } else {
      return T(static_cast<float>(value));
    }
  };
  const auto lift = [](auto v) { return v; };
  const auto end = [](auto s) { return get<0>(s); };
  expect_lawful(monoid(
                    "total", state(of(0)), lift,
                    [](auto a, auto b) { return cast<T>(get<0>(a) + get<0>(b)); }, end)
                    .commutative(),
                x);
  expect_lawful(monoid(
                    "product", state(of(1)), lift,
                    [](auto a, auto b) { return cast<T>(get<0>(a) * get<0>(b)); }, end)
                    .commutative(),
                x);
  const auto lowest = [] {
    if constexpr (std::is_integral_v<T>) {
      return std::numeric_limits<T>::lowest();
    } else if constexpr (std::is_floating_point_v<T>) {
      return -std::numeric_limits<T>::infinity();
    } else {
      return T(-std::numeric_limits<float>::infinity());
    }
  }();
  expect_lawful(monoid(
                    "highest", state(lowest), lift,
                    [](auto a, auto b) { return cast<T>(max(get<0>(a), get<0>(b))); }, end)
                    .commutative(),
                x);
}

TEST(MonoidLaws, RoundedOnesAreLawful) {
  for (int type = 0; type < 2; ++type) {
    const auto check = [](auto x, auto zero) {
      using T = decltype(zero);
      // Sums with what rounding took away: their low parts differ with the order.
      expect_lawful(
          monoid(
              "two_sum", state<T, T>(0, 0), [](auto v) { return fields(cast<T>(v), T{0}); },
              [](auto a, auto b) {
                const auto [high_a, low_a] = a;
                const auto [high_b, low_b] = b;
                const auto sum = high_a + high_b;
                const auto right = sum - high_a;
                return fields(sum, (high_a - (sum - right)) + (high_b - right) + (low_a + low_b));
              },
              [](auto s) { return get<0>(s) + get<1>(s); }),
          x);
      // Moments by Chan, Golub and LeVeque.
      expect_lawful(monoid(
                        "moments", state<I, T, T>(0, 0, 0),
                        [](auto v) { return fields(I{1}, cast<T>(v), T{0}); },
                        [](auto a, auto b) {
                          const auto [n_a, mean_a, squares_a] = a;
                          const auto [n_b, mean_b, squares_b] = b;
                          const auto n = n_a + n_b;
                          const auto share = cast<T>(n_b) / cast<T>(n);
                          const auto delta = mean_b - mean_a;
                          const auto mean = select(n == 0, T{0}, mean_a + delta * share);
                          const auto squares =
                              select(n == 0, T{0},
                                     squares_a + squares_b + delta * delta * cast<T>(n_a) * share);
                          return fields(n, cast<T>(mean), cast<T>(squares));
                        },
                        [](auto s) { return get<2>(s) / cast<T>(get<0>(s)); })
                        .commutative(),
                    x);
      // Linear recurrences y = a x + b, one after the other.
      expect_lawful(monoid(
                        "linear", state<T, T>(1, 0),
                        [](auto v) { return fields(cast<T>(v) * T{0.5}, cast<T>(v)); },
                        [](auto a, auto b) {
                          return fields(get<0>(a) * get<0>(b), get<0>(b) * get<1>(a) + get<1>(b));
                        },
                        [](auto s) { return get<1>(s); }),
                    x);
      // log(sum(exp(x))).
      expect_lawful(monoid(
                        "logsumexp", state<T, T>(-std::numeric_limits<T>::infinity(), 0),
                        [](auto v) { return fields(cast<T>(v), T{1}); },
                        [](auto a, auto b) {
                          const auto top = max(get<0>(a), get<0>(b));
                          const auto scaled = [&](auto s) {
                            return select(get<0>(s) == top, get<1>(s),
                                          get<1>(s) * exp(get<0>(s) - top));
                          };
                          return fields(top, scaled(a) + scaled(b));
                        },
                        [](auto s) { return get<0>(s) + log(get<1>(s)); })
                        .commutative(),
                    x);
      // The greatest sum of neighbours.
      expect_lawful(monoid(
                        "best_run", state<T, T, T, T>(0, 0, 0, 0),
                        [](auto v) {
                          const auto w = cast<T>(v);
                          const auto up = max(w, T{0});
                          return fields(w, up, up, up);
                        },
                        [](auto a, auto b) {
                          const auto [sum_a, first_a, best_a, last_a] = a;
                          const auto [sum_b, first_b, best_b, last_b] = b;
                          return fields(sum_a + sum_b, max(first_a, sum_a + first_b),
                                        max(max(best_a, best_b), last_a + first_b),
                                        max(last_b, last_a + sum_b));
                        },
                        [](auto s) { return get<2>(s); }),
                    x);
      // Products that overflow in one order sooner than in the other.
      expect_lawful(monoid(
                        "power", state<T>(1),
                        [](auto v) {
                          const auto w = cast<T>(v);
                          const auto p = w * w * w * w;
                          return p * p * p * p;
                        },
                        [](auto a, auto b) { return get<0>(a) * get<0>(b); },
                        [](auto s) { return get<0>(s); }),
                    x);
    };
    if (type == 0) {
      check(input<float>("x"), 0.0F);
      check(input<f16>("x"), 0.0F);
      check(input<std::int32_t>("x"), 0.0);
    } else {
      check(input<double>("x"), 0.0);
    }
  }
}

/// Fields that are rounded to 16 bits at every merge are lawful up to that.
TEST(MonoidLaws, StatesOf16BitsAreLawful) {
  const auto check = [](auto x, auto zero) {
    using T = decltype(zero);
    const T one(1.0F);
    expect_lawful(monoid(
                      "linear", state(one, zero),
                      [](auto v) { return fields(cast<T>(v * 0.25F), cast<T>(v * 0.375F)); },
                      [](auto a, auto b) {
                        return fields(cast<T>(get<0>(a) * get<0>(b)),
                                      cast<T>(cast<T>(get<0>(b) * get<1>(a)) + get<1>(b)));
                      },
                      [](auto s) { return get<1>(s); }),
                  x);
  };
  check(input<f16>("x"), f16(0.0F));
  check(input<bf16>("x"), bf16(0.0F));
  check(input<float>("x"), f16(0.0F));
  check(input<float>("x"), bf16(0.0F));
}

TEST(MonoidLaws, StatesThatFollowOneAnotherAreLawful) {
  // The position of the last record so far, which merges tell by positions that rise.
  expect_lawful(monoid(
                    "where", state<float, I>(-std::numeric_limits<float>::infinity(), -1),
                    [](auto v, auto i) { return fields(v, i); },
                    [](auto a, auto b) {
                      const auto later = get<0>(b) >= get<0>(a) && get<1>(b) > get<1>(a);
                      return fields(select(later, get<0>(b), get<0>(a)),
                                    select(later, get<1>(b), get<1>(a)));
                    },
                    [](auto s) { return get<1>(s); }),
                input<float>("x"), index());
  // How often neighbours differ.
  expect_lawful(monoid(
                    "changes", state<bool, I, I, I>(false, 0, 0, 0),
                    [](auto v) { return fields(true, cast<I>(v), cast<I>(v), I{0}); },
                    [](auto a, auto b) {
                      const auto [any_a, first_a, last_a, n_a] = a;
                      const auto [any_b, first_b, last_b, n_b] = b;
                      return fields(any_a || any_b, select(any_a, first_a, first_b),
                                    select(any_b, last_b, last_a),
                                    n_a + n_b + cast<I>(any_a && any_b && last_a != first_b));
                    },
                    [](auto s) { return get<3>(s); }),
                input<std::int32_t>("x"));
}

// --- how

TEST(MonoidLaws, TheSameStatesAreTriedEachTimeAndInAnyEnvironment) {
  const auto words = [] {
    try {
      (void)fold(monoid(
                     "m", state<float>(0), [](auto v) { return v; },
                     [](auto a, auto b) { return get<0>(a) + get<0>(b) * 1.125F; },
                     [](auto s) { return get<0>(s); }),
                 input<float>("x"));
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string first = words();
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(words(), first);
}

TEST(MonoidLaws, UncheckedOnesRun) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  const auto highest = monoid(
      "highest", state<float>(0), [](auto v) { return v; },
      [](auto a, auto b) { return max(get<0>(a), get<0>(b)); }, [](auto s) { return get<0>(s); },
      unchecked);
  const std::vector<float> prices{3, 1, 4, 1, 5, 9, 2, 6};
  const auto kernel =
      compile(over(segments(4), fold(highest, input<float>("x"))), {.target = target("cpu")});
  EXPECT_EQ(std::get<0>(kernel.run({{"x", prices}})), (std::vector<float>{4, 9}));
  EXPECT_NO_THROW((void)fold(highest.commutative(), input<float>("x")));
}

}  // namespace
}  // namespace chainfold::test
