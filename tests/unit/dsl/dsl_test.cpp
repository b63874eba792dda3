// The language: the programs of the README as graphs, the type rules as static assertions,
// literals, cf::let and partitions.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/input.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/ops.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/dsl/partition.hpp"

namespace cf = chainfold;

namespace {

using cf::DType;
using cf::kLevelOf;
using cf::kTypeOf;
using cf::Level;

template <class E>
std::string whole(const E& e) {
  return print(cf::over(cf::whole(), e).graph());
}

void expect_error(cf::ErrorCode code, const std::string& part,
                  const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown; expected: " << part;
  } catch (const cf::UserError& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// --- functions

TEST(DslFunctions, HaveTheTypesOfTheirRows) {
  auto x = cf::input<float>("x");
  auto h = cf::input<cf::f16>("h");
  auto i = cf::input<std::int16_t>("i");
  static_assert(kTypeOf<decltype(cf::tanh(x))> == DType::f32);
  static_assert(kTypeOf<decltype(cf::erf(h))> == DType::f32);
  static_assert(kTypeOf<decltype(cf::sign(i))> == DType::i32);
  static_assert(kTypeOf<decltype(cf::isnan(h))> == DType::boolean);
  static_assert(kTypeOf<decltype(cf::isinf(x))> == DType::boolean);
  EXPECT_NE(whole(cf::sum(cf::log1p(x))).find("log1p %0"), std::string::npos)
      << whole(cf::sum(cf::log1p(x)));
  EXPECT_NE(whole(cf::count(cf::where(cf::isfinite(x)))).find("is_finite %0"), std::string::npos);
}

// --- types
// ----------------------------------------------------------------------------------------------

template <class T>
using In = decltype(cf::input<T>(""));
template <class A, class B>
constexpr DType kSum = kTypeOf<decltype(std::declval<A>() + std::declval<B>())>;
template <class E>
constexpr DType kSumFold = kTypeOf<decltype(cf::sum(std::declval<E>()))>;
template <class E>
constexpr DType kMean = kTypeOf<decltype(cf::mean(std::declval<E>()))>;
template <class E>
constexpr DType kMax = kTypeOf<decltype(cf::max(std::declval<E>()))>;
template <class E>
constexpr DType kNorm = kTypeOf<decltype(cf::norm(std::declval<E>()))>;

using cf::bf16;
using cf::f16;
using i8 = std::int8_t;
using u8 = std::uint8_t;
using i16 = std::int16_t;
using u16 = std::uint16_t;
using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;

static_assert(kSum<In<f16>, In<f16>> == DType::f32);
static_assert(kSum<In<f16>, In<bf16>> == DType::f32);
static_assert(kSum<In<bf16>, In<double>> == DType::f64);
static_assert(kSum<In<float>, In<float>> == DType::f32);
static_assert(kSum<In<float>, In<double>> == DType::f64);
static_assert(kSum<In<i8>, In<i8>> == DType::i32);
static_assert(kSum<In<u8>, In<i16>> == DType::i32);
static_assert(kSum<In<u16>, In<u16>> == DType::i32);
static_assert(kSum<In<u16>, In<u32>> == DType::i64);
static_assert(kSum<In<i32>, In<i32>> == DType::i32);
static_assert(kSum<In<i32>, In<u32>> == DType::i64);
static_assert(kSum<In<u32>, In<u32>> == DType::u32);
static_assert(kSum<In<u32>, In<u64>> == DType::u64);
static_assert(kSum<In<i32>, In<i64>> == DType::i64);
static_assert(kSum<In<i8>, In<float>> == DType::f32);
static_assert(kSum<In<u16>, In<f16>> == DType::f32);
static_assert(kSum<In<i32>, In<float>> == DType::f64);
static_assert(kSum<In<u64>, In<float>> == DType::f64);
static_assert(kSum<In<i16>, In<double>> == DType::f64);
static_assert(kSum<In<f16>, int> == DType::f32);
static_assert(kSum<In<i8>, int> == DType::i32);
static_assert(kSum<float, In<double>> == DType::f64);
static_assert(kSum<In<u64>, int> == DType::u64);
static_assert(kTypeOf<decltype(-std::declval<In<u8>>())> == DType::i32);
static_assert(kTypeOf<decltype(std::declval<In<u8>>() << std::declval<In<i64>>())> == DType::i32);
static_assert(kTypeOf<decltype(std::declval<In<u64>>() >> std::declval<In<i8>>())> == DType::u64);
static_assert(kTypeOf<decltype(std::declval<In<u8>>() < 3)> == DType::boolean);
static_assert(kTypeOf<decltype(cf::cast<f16>(std::declval<In<i64>>()))> == DType::f16);
static_assert(kTypeOf<decltype(cf::sqrt(std::declval<In<f16>>()))> == DType::f32);
static_assert(kTypeOf<decltype(cf::min(std::declval<In<f16>>(), 1))> == DType::f32);

static_assert(kSumFold<In<f16>> == DType::f32 && kSumFold<In<float>> == DType::f32);
static_assert(kSumFold<In<double>> == DType::f64);
static_assert(kSumFold<In<i8>> == DType::i64 && kSumFold<In<i64>> == DType::i64);
static_assert(kSumFold<In<u8>> == DType::u64 && kSumFold<In<u64>> == DType::u64);
static_assert(kSumFold<In<bool>> == DType::u64);
static_assert(kMean<In<f16>> == DType::f32 && kMean<In<i16>> == DType::f32);
static_assert(kMean<In<float>> == DType::f32);
static_assert(kMean<In<i32>> == DType::f64 && kMean<In<double>> == DType::f64);
static_assert(kMax<In<f16>> == DType::f16 && kMax<In<i8>> == DType::i8);
static_assert(kMax<In<u64>> == DType::u64 && kMax<In<double>> == DType::f64);
static_assert(kNorm<In<i8>> == DType::f32 && kNorm<In<i32>> == DType::f64);
static_assert(kTypeOf<decltype(cf::count())> == DType::i64);

static_assert(kLevelOf<In<float>> == Level::element);
static_assert(kLevelOf<decltype(cf::param<float>(""))> == Level::uniform);
static_assert(kLevelOf<decltype(cf::sum(std::declval<In<float>>()) / cf::count())> ==
              Level::segment);
static_assert(kLevelOf<decltype(cf::sum(std::declval<In<float>>()) * 2)> == Level::segment);
static_assert(kLevelOf<decltype(cf::param<float>("") * std::declval<In<float>>())> ==
              Level::element);

// Operators of other types are left alone.
static_assert(std::is_same_v<decltype(1 + 2), int>);
template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };
static_assert(Addable<In<float>, int> && Addable<f16, In<float>>);
static_assert(!Addable<std::string, In<float>> && !Addable<int*, In<float>>);
static_assert(!Addable<In<float>, std::vector<std::string>> && !Addable<const char*, In<float>>);

// --- the programs of the README
// ---------------------------------------------------------------------------

TEST(Dsl, Frames) {
  auto x = cf::input<cf::f16>("x");
  auto frames = cf::over(cf::segments(64), cf::mean(x), cf::sqrt(cf::mean(x * x)));
  EXPECT_EQ(print(frames.graph()),
            "graph over segments 64\n"
            "%0 = extent : i64 segment\n"
            "%1 = constant 0 : i64 uniform\n"
            "%2 = eq %0, %1 : bool segment\n"
            "%3 = constant nan : f64 uniform\n"
            "%4 = input \"x\" : f16 element\n"
            "%5 = convert %4 : f32 element\n"
            "%6 = fold sum.f32 result 1 %5 : f64 segment\n"
            "%7 = convert %0 : f64 segment\n"
            "%8 = div %6, %7 : f64 segment\n"
            "%9 = select %2, %3, %8 : f64 segment\n"
            "%10 = convert %9 : f32 segment\n"
            "%11 = mul %5, %5 : f32 element\n"
            "%12 = fold sum.f32 result 1 %11 : f64 segment\n"
            "%13 = div %12, %7 : f64 segment\n"
            "%14 = select %2, %3, %13 : f64 segment\n"
            "%15 = convert %14 : f32 segment\n"
            "%16 = sqrt %15 : f32 segment\n"
            "output %10\n"
            "output %16\n");
  EXPECT_EQ(frames.outputs(), 2u);
  EXPECT_EQ(frames.output_type(1), DType::f32);
}

TEST(Dsl, TpchQ6) {
  auto ship = cf::input<int32_t>("shipdate");
  auto disc = cf::input<int64_t>("discount");
  auto qty = cf::input<int64_t>("quantity");
  auto price = cf::input<int64_t>("extendedprice");
  auto hit = ship >= 8766 && ship < 9131 && disc >= 5 && disc <= 7 && qty < 2400;
  auto q6 = cf::over(cf::whole(), cf::sum(price * disc, cf::where(hit)));
  EXPECT_EQ(print(q6.graph()),
            "graph over whole\n"
            "%0 = input \"discount\" : i64 element\n"
            "%1 = input \"extendedprice\" : i64 element\n"
            "%2 = mul %0, %1 : i64 element\n"
            "%3 = input \"shipdate\" : i32 element\n"
            "%4 = literal 0 : i32 uniform\n"
            "%5 = ge %3, %4 : bool element\n"
            "%6 = literal 1 : i32 uniform\n"
            "%7 = lt %3, %6 : bool element\n"
            "%8 = bit_and %5, %7 : bool element\n"
            "%9 = literal 2 : i64 uniform\n"
            "%10 = ge %0, %9 : bool element\n"
            "%11 = bit_and %8, %10 : bool element\n"
            "%12 = literal 3 : i64 uniform\n"
            "%13 = le %0, %12 : bool element\n"
            "%14 = bit_and %11, %13 : bool element\n"
            "%15 = input \"quantity\" : i64 element\n"
            "%16 = literal 4 : i64 uniform\n"
            "%17 = lt %15, %16 : bool element\n"
            "%18 = bit_and %14, %17 : bool element\n"
            "%19 = fold sum.i64 %2 where %18 : i64 segment\n"
            "output %19\n");
  ASSERT_EQ(q6.graph().literals.size(), 5u);
  EXPECT_EQ(q6.graph().literals[0].bits, 8766u);
  EXPECT_EQ(q6.graph().literals[4].bits, 2400u);
}

TEST(Dsl, Sized) {
  auto x = cf::input<cf::f16>("x");
  auto sized = cf::over(cf::segments(cf::param<int64_t>("S")), cf::max(x));
  EXPECT_EQ(print(sized.graph()),
            "graph over segments param \"S\"\n"
            "%0 = input \"x\" : f16 element\n"
            "%1 = convert %0 : f32 element\n"
            "%2 = fold max.f32 %1 : f32 segment\n"
            "%3 = convert %2 : f16 segment\n"
            "output %3\n");
  ASSERT_EQ(sized.graph().params.size(), 1u);
  EXPECT_EQ(sized.graph().partition.size_param, 0);
}

// --- operations
// -------------------------------------------------------------------------------------------

TEST(Dsl, EveryOperationReachesTheGraph) {
  auto f = cf::input<float>("f");
  auto i = cf::input<i32>("i");
  auto b = cf::input<bool>("b");
  auto has = [](const std::string& op, const auto& e) {
    const std::string out = whole(cf::max(cf::cast<float>(e)));
    EXPECT_NE(out.find(" = " + op + " "), std::string::npos) << op << "\n" << out;
  };
  has("add", f + 2);
  has("sub", 2 - f);
  has("mul", f * 2);
  has("div", f / 2);
  has("rem", i % 2);
  has("rem", f % 2);
  has("neg", -i);
  has("eq", i == 2);
  has("ne", i != 2);
  has("lt", i < 2);
  has("le", i <= 2);
  has("gt", i > 2);
  has("ge", i >= 2);
  has("bit_and", b && i > 2);
  has("bit_or", b || i > 2);
  has("bit_not", !b);
  has("bit_not", ~i);
  has("bit_and", i & 6);
  has("bit_or", i | 6);
  has("bit_xor", i ^ 6);
  has("bit_xor", b ^ (i > 2));
  has("shl", i << 2);
  has("shr", i >> i);
  has("min", cf::min(f, 2));
  has("max", cf::max(2, f));
  has("abs", cf::abs(i));
  has("sqrt", cf::sqrt(f));
  has("exp", cf::exp(f));
  has("log", cf::log(f));
  has("pow", cf::pow(f, 2.5f));
  has("floor", cf::floor(f));
  has("fma", cf::fma(f, 2, f));
  has("select", cf::select(b, f, 0));
  has("select", cf::select(f > 1, 1, -1));
  has("eq", b == true);
  has("lt", 5 > i);  // the literal comes second: i < 5
}

TEST(Dsl, OperandsEnterTheCommonType) {
  auto b = cf::input<i8>("b");
  auto w = cf::input<i32>("w");
  EXPECT_EQ(whole(cf::max(b * 3 + w)),
            "graph over whole\n"
            "%0 = input \"b\" : i8 element\n"
            "%1 = convert %0 : i32 element\n"
            "%2 = literal 0 : i32 uniform\n"
            "%3 = mul %1, %2 : i32 element\n"
            "%4 = input \"w\" : i32 element\n"
            "%5 = add %3, %4 : i32 element\n"
            "%6 = fold max.i32 %5 : i32 segment\n"
            "output %6\n");
}

TEST(Dsl, FoldsWithFilters) {
  auto x = cf::input<float>("x");
  auto b = cf::input<bool>("b");
  auto only = cf::where(x > 0);
  const auto c = cf::over(cf::whole(), cf::sum(x, only), cf::mean(x, only), cf::variance(x, only),
                          cf::min(x, only), cf::max(x, only), cf::any(b, only), cf::all(b, only),
                          cf::count(only), cf::dot(x, x, only), cf::norm(x, only));
  const cf::codegen::Graph& graph = c.graph();
  int folds = 0;
  for (const auto& node : graph.nodes) {
    if (node.kind != cf::codegen::NodeKind::fold) continue;
    ++folds;
    const bool counts = graph.folds[static_cast<std::size_t>(node.index)].name == "sum.i64";
    EXPECT_EQ(node.filter == cf::codegen::kNoNode, counts) << print(graph);
  }
  EXPECT_EQ(folds, 10);  // mean shares the count
  auto h = cf::input<cf::f16>("h");
  EXPECT_EQ(whole(cf::norm(h)), whole(cf::sqrt(cf::dot(h, h))));
  EXPECT_EQ(whole(cf::dot(x, x)), whole(cf::sum(x * x)));
}

TEST(Dsl, IntegerProductsOfDotDoNotWrap) {
  EXPECT_NE(whole(cf::dot(cf::input<i8>("a"), cf::input<i16>("b"))).find("mul %1, %3 : i32"),
            std::string::npos);
  const auto squares = [](const auto& e) { return whole(cf::dot(e, e)); };
  EXPECT_NE(squares(cf::input<u16>("a")).find("mul %1, %1 : u64"), std::string::npos);
  EXPECT_NE(squares(cf::input<i32>("a")).find("mul %1, %1 : i64"), std::string::npos);
  EXPECT_NE(squares(cf::input<u32>("a")).find("mul %1, %1 : u64"), std::string::npos);
}

TEST(Dsl, SegmentValuesCombine) {
  auto x = cf::input<float>("x");
  auto scale = cf::param<float>("scale");
  EXPECT_EQ(whole(cf::sum(x) / cf::cast<float>(cf::count()) * scale),
            whole(scale * (cf::sum(x) / cf::cast<float>(cf::count()))));
}

/// What lies directly below a sum is computed in its type, up to what keeps one of its own.
TEST(Dsl, IntegersBelowSumsDoNotWrap) {
  auto a = cf::input<i32>("a"), b = cf::input<i32>("b");
  auto u = cf::input<std::uint16_t>("u");
  auto w = cf::input<std::uint32_t>("w");
  const auto wide = [](const auto& e) { return cf::cast<std::int64_t>(e); };
  const auto same = [](const auto& x, const auto& y) { EXPECT_EQ(whole(x), whole(y)); };
  static_assert(kTypeOf<decltype(cf::sum(u * u))> == DType::u64);
  static_assert(kTypeOf<decltype(cf::dot(u, u))> == DType::u64);
  static_assert(kTypeOf<decltype(cf::sum(w * u + w))> == DType::u64);
  static_assert(kTypeOf<decltype(cf::sum(u * a))> == DType::i64);
  static_assert(kTypeOf<decltype(cf::sum(u - u))> == DType::i64);
  static_assert(kTypeOf<decltype(cf::max(a * b))> == DType::i32);
  static_assert(kTypeOf<decltype(cf::mean(a * b))> == DType::f64);
  same(cf::sum(a * b), cf::sum(wide(a) * wide(b)));
  same(cf::sum(a * b), cf::dot(a, b));
  same(cf::sum((a + b) * (a - b) - a),
       cf::sum((wide(a) + wide(b)) * (wide(a) - wide(b)) - wide(a)));
  same(cf::sum(-a), cf::sum(-wide(a)));
  same(cf::sum(cf::fma(a, b, a)), cf::sum(cf::fma(wide(a), wide(b), wide(a))));
  same(cf::sum(cf::let(a * b)), cf::sum(wide(a) * wide(b)));
  same(cf::sum(cf::let(a * b) + a), cf::sum(wide(a) * wide(b) + wide(a)));
  same(cf::sum(cf::select(a > b, a * b, a)),
       cf::sum(cf::select(a > b, wide(a) * wide(b), wide(a))));
  same(cf::mean(a * b), cf::mean(wide(a) * wide(b)));
  same(cf::norm(a * b), cf::norm(wide(a) * wide(b)));
  // These keep their own type, and what is below them.
  same(cf::sum(cf::cast<i32>(a * b)), cf::sum(wide(cf::let(cf::cast<i32>(a * b)))));
  same(cf::sum((a * b) / 3), cf::sum(wide((a * b) / 3)));
  same(cf::sum((a * b) >> 3), cf::sum(wide((a * b) >> 3)));
  same(cf::sum((a * b) & 3), cf::sum(wide((a * b) & 3)));
  same(cf::sum(cf::abs(a * b)), cf::sum(wide(cf::abs(a * b))));
  // What fits is computed where it costs less.
  auto c = cf::input<i8>("c");
  same(cf::sum(c * c), cf::sum(wide(c * c)));
  // The largest product beside the sum of all keeps i32.
  const auto both = cf::over(cf::whole(), cf::sum(a * b), cf::max(a * b));
  EXPECT_NE(print(both.graph()).find("fold max.i32"), std::string::npos);
}

TEST(Dsl, TemporariesMayDie) {
  auto make = [] {
    std::string name = "a name long enough to live on the heap";
    auto x = cf::input<float>(name);
    return x * x + cf::let(x * 2);
  };
  EXPECT_NE(whole(cf::sum(make())).find("input \"a name long enough to live on the heap\""),
            std::string::npos);
}

// --- literals
// ---------------------------------------------------------------------------------------------

TEST(DslLiteral, ShareAKernelUnlessConstant) {
  auto x = cf::input<float>("x");
  EXPECT_EQ(whole(cf::sum(2 * x)), whole(cf::sum(3 * x)));
  EXPECT_EQ(whole(cf::sum(2 * x)), whole(cf::sum(x * 2.5)));
  EXPECT_NE(whole(cf::sum(1 * x)), whole(cf::sum(2 * x)));
  EXPECT_NE(whole(cf::sum(x * cf::constant(2))), whole(cf::sum(x * cf::constant(3))));
  EXPECT_NE(whole(cf::sum(cf::pow(x, 2))), whole(cf::sum(cf::pow(x, 3))));
  EXPECT_EQ(whole(cf::sum(cf::pow(2, x))), whole(cf::sum(cf::pow(3, x))));
  EXPECT_NE(whole(cf::sum(x * cf::constant(2))).find("constant 2 : f32"), std::string::npos);
}

TEST(DslLiteral, MustBeRepresentable) {
  using enum cf::ErrorCode;
  auto b = cf::input<i8>("b");
  auto u = cf::input<u64>("u");
  auto h = cf::input<f16>("h");
  auto f = cf::input<float>("f");
  auto d = cf::input<double>("d");
  expect_error(type_mismatch, "the literal 300 (std::int32_t) is not representable as std::int8_t",
               [&] { (void)(b + 300); });
  expect_error(type_mismatch, "the literal -1 (std::int32_t) is not representable as std::uint64_t",
               [&] { (void)(u > -1); });
  expect_error(type_mismatch, "the literal 0.1 (double) is not exactly representable as float",
               [&] { (void)(f * 0.1); });
  expect_error(type_mismatch,
               "the literal 16777217 (std::int32_t) is not exactly representable as float",
               [&] { (void)(16777217 + f); });
  expect_error(type_mismatch, "the literal 1e+300 (double)",
               [&] { (void)cf::select(f > 0, f, 1e300); });
  expect_error(type_mismatch, "the literal 0.1 (double)", [&] { (void)cf::fma(f, 0.1, f); });
  EXPECT_NO_THROW((void)(b + 127));
  EXPECT_NO_THROW((void)(h * 0.1f));  // f16 computes in f32
  EXPECT_NO_THROW((void)(f * 0.1f));
  EXPECT_NO_THROW((void)(d * 0.1));
  EXPECT_NO_THROW((void)(d * 0.1f));
  EXPECT_NO_THROW((void)(u + std::numeric_limits<u64>::max()));
  EXPECT_NO_THROW((void)(f < std::numeric_limits<double>::infinity()));
  EXPECT_NO_THROW((void)(f * f16(1.5f)));
}

// --- let
// --------------------------------------------------------------------------------------------------

TEST(DslLet, StandsForTheExpression) {
  auto x = cf::input<float>("x");
  auto part = cf::let(cf::exp(x) * 2);
  static_assert(kTypeOf<decltype(part)> == DType::f32 &&
                kLevelOf<decltype(part)> == Level::element);
  static_assert(decltype(part)::kNodes == 1);
  EXPECT_EQ(whole(cf::sum(part + part)), whole(cf::sum(cf::exp(x) * 2 + cf::exp(x) * 2)));
  static_assert(kLevelOf<decltype(cf::let(cf::sum(x)))> == Level::segment);
}

TEST(DslLet, GrowsInLoopsAndIsWrittenOnce) {
  auto x = cf::input<float>("x");
  auto doubled = cf::let(x + 0);
  for (int i = 0; i < 60; ++i) doubled = cf::let(doubled + doubled);  // 2^60 leaves as a tree
  const auto c = cf::over(cf::segments(4), cf::sum(doubled), cf::mean(doubled));
  EXPECT_LT(c.graph().nodes.size(), 80u);
}

TEST(DslLet, DepthIsLimited) {
  auto x = cf::input<float>("x");
  auto chain = cf::let(x + 2);
  for (int i = 1; i < 5000; ++i) chain = cf::let(chain + 2);
  EXPECT_EQ(cf::over(cf::whole(), cf::sum(chain)).graph().folds.size(), 1u);
  expect_error(cf::ErrorCode::unsupported, "more than 5000 cf::let",
               [&] { (void)cf::let(chain + 2); });
  expect_error(cf::ErrorCode::unsupported, "more than 5000 cf::let",
               [&] { (void)cf::let(cf::sum(x, cf::where(chain > 2))); });
}

// --- partitions and over
// ----------------------------------------------------------------------------------

TEST(DslPartition, Segments) {
  auto first_line = [](const cf::Computation& c) {
    const std::string out = print(c.graph());
    return out.substr(0, out.find('\n'));
  };
  auto x = cf::input<float>("x");
  EXPECT_EQ(first_line(cf::over(cf::segments(1), cf::sum(x))), "graph over segments 1");
  EXPECT_EQ(first_line(cf::over(cf::segments(std::size_t{7}), cf::sum(x))),
            "graph over segments 7");
  EXPECT_EQ(first_line(cf::over(cf::segments(64, cf::Tail::partial), cf::sum(x))),
            "graph over segments 64 with tail");
  EXPECT_EQ(first_line(cf::over(cf::segments(cf::param<int>("n"), cf::Tail::partial), cf::sum(x))),
            "graph over segments param \"n\" with tail");
  using enum cf::ErrorCode;
  EXPECT_EQ(first_line(cf::over(cf::columns(1024), cf::sum(x))), "graph over columns 1024");
  EXPECT_EQ(first_line(cf::over(cf::columns(std::size_t{7}), cf::sum(x))), "graph over columns 7");
  EXPECT_EQ(first_line(cf::over(cf::columns(cf::param<int>("n")), cf::sum(x))),
            "graph over columns param \"n\"");
  EXPECT_EQ(cf::codegen::print_expression(cf::over(cf::columns(8), cf::sum(x)).graph()),
            "over(columns(8), sum(x))");
  expect_error(invalid_argument, "the number of columns is 0", [] { (void)cf::columns(0); });
  expect_error(invalid_argument, "the segment size is 0", [] { (void)cf::segments(0); });
  expect_error(invalid_argument, "the segment size is -3", [] { (void)cf::segments(-3); });
  expect_error(invalid_argument, "below 2^63", [] { (void)cf::segments(~std::uint64_t{0}); });
}

TEST(DslOver, OneNameIsOneThing) {
  using enum cf::ErrorCode;
  auto x = cf::input<float>("x");
  expect_error(duplicate_input, "\"x\" is declared twice",
               [&] { (void)cf::over(cf::whole(), cf::sum(x), cf::sum(cf::input<double>("x"))); });
  expect_error(duplicate_input, "as param<std::int64_t> and as input<float>",
               [&] { (void)cf::over(cf::segments(cf::param<i64>("x")), cf::sum(x)); });
  expect_error(invalid_argument, "empty name",
               [&] { (void)cf::over(cf::whole(), cf::sum(cf::input<float>(""))); });
}

TEST(DslOver, CopiesShareTheGraph) {
  const auto c = cf::over(cf::whole(), cf::count());
  const auto copy = c;
  EXPECT_EQ(&copy.graph(), &c.graph());
  EXPECT_TRUE(c.graph().inputs.empty());
}

}  // namespace
