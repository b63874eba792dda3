// Monoids from the notation to the graph: prints, properties and what is refused.
#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/dsl/input.hpp"
#include "chainfold/dsl/monoid.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/tests/support/expect_error.hpp"
#include "chainfold/tests/support/monoids.hpp"

namespace chainfold::test {
namespace {

template <class F>
void expect_user_error(ErrorCode code, const std::string& input, const char* words, F&& call) {
  expect_error<UserError>(call, code, input, {words});
}

auto maximum(const char* name, float start) {
  return monoid(
      name, state<float>(start), [](auto v) { return v; },
      [](auto a, auto b) { return max(get<0>(a), get<0>(b)); }, [](auto s) { return get<0>(s); },
      unchecked);  // from 0 on it is one of numbers that are not negative
}

TEST(Monoid, BecomesAFoldOfLambdas) {
  auto x = input<std::int32_t>("x");
  const Computation c = over(segments(8), fold(brackets(), x > 0, where(index() < 3)));
  const codegen::Graph& graph = c.graph();
  ASSERT_EQ(graph.folds.size(), 1U);
  codegen::Fold known = graph.folds[0];
  EXPECT_EQ(known.name.substr(0, 9), "brackets.");
  EXPECT_EQ(known.name.size(), 9U + 16U);
  EXPECT_FALSE(known.commutative);
  EXPECT_FALSE(known.linear);
  EXPECT_FALSE(known.tile.has_value());
  known.name = "brackets";
  EXPECT_EQ(print(known),
            "fold brackets (bool) -> state (i64, i64) init (0, 0) -> i64\n"
            "  not linear, not commutative\n"
            "  lift(%0: bool)\n"
            "    %1 = bit_not %0 : bool\n"
            "    %2 = convert %1 : i64\n"
            "    %3 = convert %0 : i64\n"
            "    yield %2, %3\n"
            "  merge(%0: i64, %1: i64, %2: i64, %3: i64)\n"
            "    %4 = add %0, %2 : i64\n"
            "    %5 = min %1, %2 : i64\n"
            "    %6 = sub %4, %5 : i64\n"
            "    %7 = add %1, %3 : i64\n"
            "    %8 = sub %7, %5 : i64\n"
            "    yield %6, %8\n"
            "  finalize(%0: i64, %1: i64)\n"
            "    %2 = constant 1000003 : i64\n"
            "    %3 = mul %0, %2 : i64\n"
            "    %4 = add %3, %1 : i64\n"
            "    yield %4\n");
}

TEST(Monoid, IsNamedByAllThatItIs) {
  auto x = input<float>("x");
  auto name = [&](const auto& m) { return over(whole(), fold(m, x)).graph().folds[0].name; };
  EXPECT_EQ(name(maximum("m", 0)), name(maximum("m", 0)));
  EXPECT_NE(name(maximum("m", 0)), name(maximum("m", 1)));
  EXPECT_NE(name(maximum("m", 0)), name(maximum("n", 0)));
  EXPECT_NE(name(maximum("m", 0)), name(maximum("m", 0).commutative()));
  // Equal folds of equal operands are one node.
  EXPECT_EQ(over(whole(), fold(maximum("m", 0), x), fold(maximum("m", 0), x)).graph().folds.size(),
            1U);
}

TEST(Monoid, RefusesWhatCannotWork) {
  auto x = input<float>("x");
  auto lift = [](auto v) { return fields(v); };
  auto add = [](auto a, auto b) { return fields(get<0>(a) + get<0>(b)); };
  auto end = [](auto s) { return get<0>(s); };
  expect_user_error(ErrorCode::invalid_argument, "m", "is no identity",
                    [&] { (void)monoid("m", state<float>(1), lift, add, end); });
  for (const char* name : {"m.1", "a b", ""}) {
    expect_user_error(ErrorCode::invalid_argument, name, "letters, digits and underscores",
                      [&] { (void)monoid(name, state<float>(0), lift, add, end); });
  }
  expect_user_error(ErrorCode::unsupported, "", "parameter \"p\"", [&] {
    auto p = param<float>("p");
    auto scaled = [=](auto a, auto b) { return fields(get<0>(a) + get<0>(b) * p); };
    (void)monoid("m", state<float>(0), lift, scaled, end);
  });
  expect_user_error(ErrorCode::type_mismatch, "", "0.1", [&] {
    auto off = [](auto a, auto b) { return fields(get<0>(a) + get<0>(b) * 0.1); };
    (void)monoid("m", state<float>(0), lift, off, end);
  });
  auto off = [](auto v) { return fields(v * 0.1); };  // of what type is not known before the fold
  const auto late = monoid("m", state<float>(0), off, add, end);
  expect_user_error(ErrorCode::type_mismatch, "", "0.1", [&] { (void)fold(late, x); });
}

TEST(Index, IsOneNodeOfElements) {
  auto x = input<float>("x");
  static_assert(kTypeOf<decltype(index())> == DType::i64);
  static_assert(kLevelOf<decltype(index())> == Level::element);
  const Computation c = over(segments(4), argmax(x), sum(index()));
  EXPECT_EQ(print(c.graph()),
            "graph over segments 4\n"
            "%0 = input \"x\" : f32 element\n"
            "%1 = index : i64 element\n"
            "%2 = fold argmax.f32 %0, %1 : i64 segment\n"
            "%3 = fold sum.i64 %1 : i64 segment\n"
            "output %2\n"
            "output %3\n");
}

}  // namespace
}  // namespace chainfold::test
