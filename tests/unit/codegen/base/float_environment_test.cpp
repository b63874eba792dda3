// What a host program did to its floating-point environment changes no literal, no half, no plan
// and no result.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/float_environment.hpp"
#include "chainfold/tests/support/expect_error.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;
using codegen::Bits;

// Not computed by the compiler of this test, and not before an environment is set.
template <class T>
T opaque(T value) {
  asm volatile("" : "+m"(value) : : "memory");
  return value;
}

/// While one lives, the thread has an environment that a host may have set.
class HostEnvironment {
 public:
  enum class Kind { upward, downward, toward_zero, flushing, upward_and_flushing, trapping };
  explicit HostEnvironment(Kind kind) {
    std::fegetenv(&saved_);
    if (kind == Kind::upward || kind == Kind::upward_and_flushing) std::fesetround(FE_UPWARD);
    if (kind == Kind::downward) std::fesetround(FE_DOWNWARD);
    if (kind == Kind::toward_zero) std::fesetround(FE_TOWARDZERO);
#if defined(__x86_64__)
    if (kind == Kind::flushing || kind == Kind::upward_and_flushing)
      _mm_setcsr(_mm_getcsr() | 0x8040U);  // what -Ofast sets: flush to zero, denormals are zero
#endif
#if defined(__GLIBC__)
    std::feclearexcept(FE_ALL_EXCEPT);  // what is raised already would trap
    if (kind == Kind::trapping) feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
#endif
  }
  ~HostEnvironment() { std::fesetenv(&saved_); }
  HostEnvironment(const HostEnvironment&) = delete;
  HostEnvironment& operator=(const HostEnvironment&) = delete;

 private:
  std::fenv_t saved_{};
};
constexpr HostEnvironment::Kind kKinds[] = {HostEnvironment::Kind::upward,
                                            HostEnvironment::Kind::downward,
                                            HostEnvironment::Kind::toward_zero,
                                            HostEnvironment::Kind::flushing,
                                            HostEnvironment::Kind::upward_and_flushing,
                                            HostEnvironment::Kind::trapping};

TEST(FloatEnvironment, HalvesRoundToNearestEvenInAnyEnvironment) {
  std::vector<std::pair<float, std::uint16_t>> halves{
      {1e-40F, 0},           {-1e-40F, 0x8000},     {0x1p-25F, 0},         {0x1.000002p-25F, 1},
      {0x1.8p-24F, 2},       {0x1.4p-23F, 2},       {0x1.cp-23F, 4},       {-0x1.8p-24F, 0x8002},
      {0x1.ffep-15F, 0x400}, {0x1.ffcp-15F, 0x400}, {0x1.ff8p-15F, 0x3ff}, {1.0F, 0x3c00},
      {0x1.002p0F, 0x3c00},  {0x1.006p0F, 0x3c02},  {65519.0F, 0x7bff},    {65520.0F, 0x7c00}};
  for (const HostEnvironment::Kind kind : kKinds) {
    const HostEnvironment host(kind);
    for (const auto& [value, bits] : halves) {
      EXPECT_EQ(cf::f16(opaque(value)).bits, bits) << std::bit_cast<std::uint32_t>(value);
    }
    // All of them, there and back.
    for (std::uint32_t i = 0; i < 0x10000; ++i) {
      cf::f16 half;
      half.bits = static_cast<std::uint16_t>(i);
      const auto wide = static_cast<float>(half);
      if ((i & 0x7fffU) > 0x7c00U) continue;  // NaN
      ASSERT_EQ(cf::f16(opaque(wide)).bits, half.bits) << i;
    }
    EXPECT_EQ(cf::bf16(opaque(0x1.01p0F)).bits, 0x3f80);
    EXPECT_EQ(cf::bf16(opaque(0x1.03p0F)).bits, 0x3f82);
    EXPECT_EQ(cf::bf16(opaque(1e-40F)).bits, 1);
  }
}

TEST(FloatEnvironment, OperationsHaveOneMeaningInAnyEnvironment) {
  const auto f32 = [](float value) { return Bits{std::bit_cast<std::uint32_t>(value)}; };
  const auto f64 = [](double value) { return std::bit_cast<Bits>(value); };
  struct Case {
    codegen::Op op;
    DType type, result;
    Bits a, b, expected;
  };
  using codegen::Op;
  const std::vector<Case> cases{
      {Op::add, DType::f32, DType::f32, f32(1), f32(0x1p-30F), f32(1)},
      {Op::add, DType::f32, DType::f32, f32(-1), f32(-0x1p-30F), f32(-1)},
      {Op::div, DType::f32, DType::f32, f32(1), f32(3), f32(1.0F / 3)},
      {Op::mul, DType::f32, DType::f32, f32(0x1p-130F), f32(0.5F), f32(0x1p-131F)},
      {Op::add, DType::f64, DType::f64, f64(0x1p-1060), f64(0x1p-1060), f64(0x1p-1059)},
      {Op::sqrt, DType::f32, DType::f32, f32(2), 0, f32(0x1.6a09e6p0F)},
      {Op::gt, DType::f32, DType::boolean, f32(0x1p-140F), f32(0), 1},
      {Op::eq, DType::f64, DType::boolean, f64(0x1p-1060), f64(0), 0},
      {Op::convert, DType::f64, DType::f32, f64(0.1), 0, f32(0.1F)},
      {Op::convert, DType::f64, DType::f32, f64(-0.1), 0, f32(-0.1F)},
      {Op::convert, DType::f32, DType::f64, f32(0x1p-149F), 0, f64(0x1p-149)},
      {Op::convert, DType::f64, DType::f16, f64(0x1p-24), 0, 1},
      {Op::convert, DType::f64, DType::bf16, f64(0x1p-133), 0, 1},
      {Op::convert, DType::f64, DType::f16, f64(0x1.006p0), 0, 0x3c02},
      {Op::convert, DType::i64, DType::f32, (Bits{1} << 24) + 1, 0, f32(0x1p24F)},
      {Op::convert, DType::u64, DType::f64, ~Bits{0}, 0, f64(0x1p64)},
      {Op::convert, DType::f32, DType::boolean, f32(0x1p-149F), 0, 1},
  };
  for (const HostEnvironment::Kind kind : kKinds) {
    const HostEnvironment host(kind);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      EXPECT_EQ(codegen::evaluate(c.op, c.type, c.result, c.a, c.b), c.expected)
          << "case " << i << " in environment " << static_cast<int>(kind);
    }
    EXPECT_EQ(codegen::bits_of_double(DType::f32, opaque(0.1)), f32(0.1F));
    EXPECT_EQ(std::bit_cast<Bits>(codegen::double_of_bits(DType::f32, 1)), f64(0x1p-149));
    EXPECT_EQ(codegen::text_of_bits(DType::f32, f32(1e-40F)), "1e-40");
    EXPECT_EQ(codegen::text_of_bits(DType::bf16, 1), "9.1835e-41");
    // 0 / 0 traps nowhere.
    EXPECT_EQ(codegen::evaluate(Op::div, DType::f32, DType::f32, 0, 0), 0x7fc00000U);
  }
}

TEST(FloatEnvironment, TheHostKeepsItsEnvironment) {
  const HostEnvironment host(HostEnvironment::Kind::upward_and_flushing);
  const auto unchanged = [] {
#if defined(__x86_64__)
    EXPECT_EQ(_mm_getcsr() & ~0x3fU, 0x1f80U | 0x8040U | 0x4000U);
#endif
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
  };
  (void)codegen::bits_of_double(DType::f32, opaque(0.1));
  unchanged();
  {
    const codegen::DefaultFloatEnvironment inside;
  }
  unchanged();
  auto x = cf::input<float>("x");
  (void)cf::explain(cf::over(cf::whole(), cf::sum(x * 0.5F)), cf::target("sm_90"));
  unchanged();
  EXPECT_THROW((void)(x * 0.1), UserError);
  unchanged();
}

TEST(FloatEnvironment, LiteralsAreThoseOfTheDefault) {
  auto x = cf::input<float>("x");
  auto h = cf::input<cf::f16>("h");
  auto d = cf::input<double>("d");
  const auto text = [&] {
    const Computation all = cf::over(
        cf::segments(64), cf::sum(x, cf::where(x > opaque(1e-40F))), cf::sum(d * opaque(0.1)),
        cf::sum(h * cf::constant(cf::f16(opaque(1e-7F)))), cf::sum(x * cf::constant(opaque(0.3F))),
        cf::sum(x / cf::constant(opaque(0.1F)) / 3), cf::max(d, cf::where(d > opaque(1e-310))));
    return cf::explain(all, cf::target("sm_90"));
  };
  const std::string expected = text();
  EXPECT_NE(expected.find("1e-40"), std::string::npos);
  for (const HostEnvironment::Kind kind : kKinds) {
    const HostEnvironment host(kind);
    EXPECT_EQ(text(), expected) << static_cast<int>(kind);
    // A literal that f32 does not hold is refused, also where it reads as zero.
    expect_error<UserError>([&] { (void)(x > opaque(1e-310)); }, ErrorCode::type_mismatch, "",
                            {"1e-310", "not exactly representable as float"});
  }
}

class FloatEnvironmentOnCpu : public testing::TestWithParam<HostEnvironment::Kind> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(FloatEnvironmentOnCpu, KernelsCompiledAndRunThereGiveTheDefaultsBits) {
  const auto results = [](std::int64_t count) {
    std::vector<float> data(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = i % 3 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(1 + i % 1000))
                           : std::bit_cast<float>(0x00400000U + static_cast<std::uint32_t>(i % 77));
    }
    std::vector<double> wide(data.size());
    for (std::size_t i = 0; i < wide.size(); ++i)
      wide[i] = std::bit_cast<double>(std::uint64_t{1} + i % 1000);
    auto x = cf::input<float>("x");
    auto d = cf::input<double>("d");
    auto k = cf::param<float>("k");
    const auto kernel =
        cf::compile(cf::over(cf::whole(), cf::sum(x), cf::sum(d), cf::max(x * k),
                             cf::count(cf::where(x > opaque(2e-42F))), cf::sum(cf::exp(x) / 3 + k)),
                    {.target = cf::target("cpu")});
    const auto [sum, wide_sum, most, count_of, quotient] =
        kernel.run({{"x", data}, {"d", wide}, {"k", opaque(1e-40F)}});
    return std::vector<std::uint64_t>{
        std::bit_cast<std::uint32_t>(sum[0]), std::bit_cast<std::uint64_t>(wide_sum[0]),
        std::bit_cast<std::uint32_t>(most[0]), static_cast<std::uint64_t>(count_of[0]),
        std::bit_cast<std::uint32_t>(quotient[0])};
  };
  for (const std::int64_t count : {1000, 3'000'000}) {  // by one thread and by all
    const std::vector<std::uint64_t> expected = results(count);
    EXPECT_NE(expected[0], 0U);
    EXPECT_NE(expected[1], 0U);
    const HostEnvironment host(GetParam());
    EXPECT_EQ(results(count), expected) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, FloatEnvironmentOnCpu, testing::ValuesIn(kKinds));

TEST(FloatEnvironment, SumsOfSubnormalsAreExact) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  std::vector<float> data(2'000'000, std::bit_cast<float>(1U));
  const HostEnvironment host(HostEnvironment::Kind::flushing);
  const auto kernel = cf::compile(cf::over(cf::segments(1'000'000), cf::sum(cf::input<float>("x"))),
                                  {.target = cf::target("cpu")});
  const auto [sums] = kernel.run({{"x", data}});
  for (const float sum : sums) EXPECT_EQ(std::bit_cast<std::uint32_t>(sum), 1'000'000U);
}

}  // namespace
}  // namespace chainfold::test
