// Scans in the language: their types, which graphs they become, and what is told at run time.
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/tests/support/expect_error.hpp"
#include "chainfold/tests/support/monoids.hpp"

namespace cf = chainfold;

namespace {

using cf::DType;
using cf::Level;
using cf::codegen::print_expression;

template <class T>
using In = decltype(cf::input<T>("x"));
template <class T>
constexpr DType kSum = decltype(cf::inclusive_sum(std::declval<In<T>>()))::kType;

static_assert(kSum<cf::f16> == DType::f32 && kSum<double> == DType::f64);
static_assert(kSum<std::int8_t> == DType::i64 && kSum<bool> == DType::u64);
using Running = decltype(cf::inclusive(cf::mean(std::declval<In<double>>())));
static_assert(Running::kType == DType::f64 && Running::kLevel == Level::element);
static_assert(Running::kScans && !Running::kFolds);
static_assert(decltype(cf::let(std::declval<Running>()) * 2)::kScans);
static_assert(decltype(cf::sqrt(cf::max(std::declval<In<float>>())))::kFolds);
static_assert(!decltype(cf::count() * 2)::kFolds);

template <class... E>
std::string expression(const E&... outputs) {
  return print_expression(cf::over(cf::segments(256), outputs...).graph());
}
template <class... E>
std::string graph(const E&... outputs) {
  return print(cf::over(cf::whole(), outputs...).graph());
}

TEST(DslScan, TheProgramOfTheDesign) {
  auto x = cf::input<cf::f16>("x");
  auto running = cf::over(cf::segments(256), cf::inclusive_sum(x));
  EXPECT_EQ(print(running.graph()),
            "graph over segments 256\n"
            "%0 = input \"x\" : f16 element\n"
            "%1 = convert %0 : f32 element\n"
            "%2 = scan inclusive sum.f32 %1 : f32 element\n"
            "output %2\n");
  EXPECT_EQ(running.output_level(0), Level::element);
  EXPECT_EQ(running.output_type(0), DType::f32);
  EXPECT_EQ(cf::over(cf::segments(256), cf::sum(x)).output_level(0), Level::segment);
}

TEST(DslScan, ShorthandsAreScansOfSums) {
  auto x = cf::input<float>("x");
  auto hit = cf::where(x > 0);
  EXPECT_EQ(graph(cf::inclusive_sum(x)), graph(cf::inclusive(cf::sum(x))));
  EXPECT_EQ(graph(cf::inclusive_sum(x, cf::backward)),
            graph(cf::inclusive(cf::sum(x), cf::backward)));
  EXPECT_EQ(graph(cf::inclusive_sum(x, hit)), graph(cf::inclusive(cf::sum(x, hit))));
  EXPECT_EQ(graph(cf::inclusive_sum(x, hit, cf::backward)),
            graph(cf::inclusive(cf::sum(x, hit), cf::backward)));
  EXPECT_EQ(graph(cf::exclusive_sum(x)), graph(cf::exclusive(cf::sum(x))));
  EXPECT_EQ(graph(cf::exclusive_sum(x, cf::backward)),
            graph(cf::exclusive(cf::sum(x), cf::backward)));
  EXPECT_EQ(graph(cf::exclusive_sum(x, hit)), graph(cf::exclusive(cf::sum(x, hit))));
  EXPECT_EQ(graph(cf::exclusive_sum(x, hit, cf::backward)),
            graph(cf::exclusive(cf::sum(x, hit), cf::backward)));
  EXPECT_EQ(expression(cf::exclusive_sum(x, hit, cf::backward)),
            "over(segments(256), exclusive(sum(x, where(x > 0)), backward))");
}

TEST(DslScan, InitialValues) {
  auto x = cf::input<std::int32_t>("x");
  auto start = cf::param<std::int64_t>("start");
  EXPECT_EQ(graph(cf::exclusive_sum(x, start)), graph(cf::exclusive_sum(x) + start));
  EXPECT_EQ(expression(cf::exclusive_sum(x, start * 2)),
            "over(segments(256), exclusive(sum(i64(x))) + (start * 2))");
  EXPECT_EQ(graph(cf::exclusive_sum(x, 0)), graph(cf::exclusive_sum(x) + 0));
  EXPECT_EQ(graph(cf::exclusive_sum(x, 5)), graph(cf::exclusive_sum(x, 7)));  // an argument
  EXPECT_NE(graph(cf::exclusive_sum(x, cf::constant(5))), graph(cf::exclusive_sum(x, 5)));
  cf::test::expect_error<cf::UserError>([] { (void)cf::exclusive_sum(cf::input<float>("x"), 0.1); },
                                        cf::ErrorCode::type_mismatch, "", {"0.1", "float"});
}

TEST(DslScan, InitialValuesEnterEveryForm) {
  auto x = cf::input<std::int32_t>("x");
  auto hit = cf::where(x > 0);
  auto p = cf::param<std::int32_t>("p");
  EXPECT_EQ(graph(cf::inclusive_sum(x, hit, p, cf::backward)),
            graph(cf::inclusive_sum(x, hit, cf::backward) + p));
  EXPECT_EQ(graph(cf::inclusive_sum(x, 3)), graph(cf::inclusive_sum(x) + 3));
  EXPECT_EQ(graph(cf::exclusive(cf::min(x, hit), p, cf::backward)),
            graph(cf::min(cf::exclusive(cf::min(x, hit), cf::backward), p)));
  EXPECT_EQ(graph(cf::inclusive(cf::max(x), 7)), graph(cf::max(cf::inclusive(cf::max(x)), 7)));
  EXPECT_EQ(graph(cf::inclusive(cf::count(hit), 7)), graph(cf::inclusive(cf::count(hit)) + 7));
  EXPECT_EQ(graph(cf::exclusive(cf::product(x), 2)), graph(cf::exclusive(cf::product(x)) * 2));
  EXPECT_EQ(graph(cf::inclusive(cf::any(x > 0), cf::param<bool>("b"))),
            graph(cf::inclusive(cf::any(x > 0)) || cf::param<bool>("b")));
  EXPECT_EQ(graph(cf::inclusive(cf::all(x > 0), cf::param<bool>("b"))),
            graph(cf::inclusive(cf::all(x > 0)) && cf::param<bool>("b")));
  EXPECT_EQ(graph(cf::inclusive(cf::bit_and(x), p)), graph(cf::inclusive(cf::bit_and(x)) & p));
  EXPECT_EQ(graph(cf::inclusive(cf::bit_or(x), p)), graph(cf::inclusive(cf::bit_or(x)) | p));
  EXPECT_EQ(graph(cf::inclusive(cf::bit_xor(x), p)), graph(cf::inclusive(cf::bit_xor(x)) ^ p));
}

TEST(DslScan, WholeExpressionsOfFoldsRun) {
  auto x = cf::input<float>("x"), y = cf::input<float>("y");
  EXPECT_EQ(expression(cf::inclusive(cf::mean(x))),
            "over(segments(256), f32(inclusive(sum(f64(x))) / f64(index() + 1)))");
  EXPECT_EQ(expression(cf::inclusive(cf::norm(x) / cf::dot(x, y))),
            "over(segments(256), f32(sqrt(inclusive(sum(f64(x) * f64(x))))) / "
            "inclusive(sum(x * y)))");
  EXPECT_EQ(expression(cf::exclusive(cf::count(cf::where(x > y)))),
            "over(segments(256), exclusive(sum(i64(x > y))))");
  EXPECT_EQ(expression(cf::inclusive(cf::argmin(x), cf::backward)),
            "over(segments(256), inclusive(argmin(x, index()), backward))");
  const auto longest = cf::test::longest_run();
  EXPECT_EQ(expression(cf::inclusive(cf::fold(longest, x > 0))),
            "over(segments(256), inclusive(longest_run(x > 0)))");
}

TEST(DslScan, ScansComputeOn) {
  auto x = cf::input<float>("x"), p = cf::input<float>("p");
  auto total = cf::let(cf::inclusive_sum(x));
  const cf::Computation mixed = cf::over(cf::segments(256), total * p, total / 2, cf::max(x));
  EXPECT_EQ(mixed.graph().folds.size(), 2U);
  EXPECT_EQ(print_expression(mixed.graph()),
            "over(segments(256), inclusive(sum(x)) * p, inclusive(sum(x)) / 2, max(x))");
  // An expression that is let is scanned as if it stood there.
  EXPECT_EQ(graph(cf::inclusive(cf::let(cf::mean(x)) * 2)), graph(cf::inclusive(cf::mean(x) * 2)));
  EXPECT_EQ(expression(cf::inclusive_sum(x) / cf::cast<float>(cf::count() - cf::index())),
            "over(segments(256), inclusive(sum(x)) / f32(count() - index()))");
}

TEST(DslScan, ExplainTellsTheTrafficAnElement) {
  auto x = cf::input<cf::f16>("x");
  const std::string text =
      cf::explain(cf::over(cf::segments(256), cf::inclusive_sum(x)), cf::target("sm_90"));
  for (const char* words :
       {"over(segments(256), inclusive(sum(f32(x))))", "scan inclusive sum.f32",
        "2 bytes read an element, 4 bytes written an element\n", "it is a scan"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << " is missing in:\n" << text;
  }
}

template <class A, class X>
constexpr DType kRecurrence =
    decltype(cf::linear_recurrence(std::declval<A>(), std::declval<X>()))::kType;
static_assert(kRecurrence<float, In<cf::f16>> == DType::f32);
static_assert(kRecurrence<double, In<float>> == DType::f32);  // a number takes the other's type
static_assert(kRecurrence<In<double>, In<float>> == DType::f64);
static_assert(kRecurrence<In<std::int16_t>, In<std::uint8_t>> == DType::f32);
static_assert(kRecurrence<In<float>, In<std::int32_t>> == DType::f64);
static_assert(kRecurrence<In<float>, float> == DType::f32);
using Recurrence =
    decltype(cf::linear_recurrence(std::declval<In<float>>(), 1.0F, 2.0F, cf::backward));
static_assert(Recurrence::kLevel == Level::element && Recurrence::kScans && !Recurrence::kFolds);

TEST(DslScan, Recurrences) {
  auto x = cf::input<cf::f16>("x"), a = cf::input<cf::f16>("a");
  auto p = cf::param<float>("p");
  EXPECT_EQ(print(cf::over(cf::segments(8), cf::linear_recurrence(a, x)).graph()),
            "graph over segments 8\n"
            "%0 = input \"a\" : f16 element\n"
            "%1 = convert %0 : f32 element\n"
            "%2 = input \"x\" : f16 element\n"
            "%3 = convert %2 : f32 element\n"
            "%4 = scan inclusive recurrence.f32 %1, %3 : f32 element\n"
            "output %4\n");
  EXPECT_EQ(print(cf::over(cf::whole(), cf::linear_recurrence(p, x, 2 * p, cf::backward)).graph()),
            "graph over whole\n"
            "%0 = param \"p\" : f32 uniform\n"
            "%1 = input \"x\" : f16 element\n"
            "%2 = convert %1 : f32 element\n"
            "%3 = literal 0 : f32 uniform\n"
            "%4 = mul %0, %3 : f32 uniform\n"
            "%5 = scan inclusive reverse recurrence.f32.backward.initial %0, %2, %4 : f32 "
            "element\n"
            "output %5\n");
  // One computation where it is written twice, and beside other values of elements and folds.
  auto level = cf::linear_recurrence(0.5F, x);
  EXPECT_EQ(cf::over(cf::whole(), level, level * 2 - x, cf::sum(x)).graph().folds.size(), 2u);
  cf::test::expect_error<cf::UserError>(
      [] { (void)cf::linear_recurrence(0.5, cf::input<float>("x"), 16777217); },
      cf::ErrorCode::type_mismatch, "", {"16777217", "float"});
}

TEST(DslScan, WhatOnlyTheGraphSees) {
  auto x = cf::input<float>("x");
  using Error = cf::UserError;
  const auto code = cf::ErrorCode::unsupported;
  cf::test::expect_error<Error>(
      [&] { (void)cf::over(cf::whole(), cf::sum(x * cf::cast<float>(cf::count()))); }, code, "",
      {"sum.f32", "cf::count()", "parameter"});
  auto on = cf::param<bool>("on");
  EXPECT_EQ(expression(cf::inclusive(cf::count(cf::where(on)) + cf::argmin(x))),
            "over(segments(256), select(on, index() + 1, 0) + inclusive(argmin(x, index())))");
}

}  // namespace
