#include "chainfold/tests/support/end_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "chainfold/tests/support/exact_sum.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {

namespace {

namespace cf = chainfold;
using Form = EndCase::Form;
using Elements = std::vector<Bits>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUlp32 = 0x1p-23, kUlp64 = 0x1p-52;

/// The computation of one fold in all forms.
template <class T, class F>
auto forms(F fold) {
  return [fold](const dsl::Partition& partition, Form form) -> Computation {
    auto x = cf::input<T>("x");
    auto keep = cf::where(cf::input<bool>("keep"));
    switch (form) {
      case Form::filtered: return cf::over(partition, fold(x, keep));
      case Form::running: return cf::over(partition, cf::inclusive(fold(x)));
      default: return cf::over(partition, fold(x));
    }
  };
}

/// Numbers in turn.
template <class T>
auto cycle(std::vector<T> values) {
  return [values](std::int64_t n) {
    Elements elements;
    for (std::int64_t i = 0; i < n; ++i)
      elements.push_back(codegen::bits_of(values[static_cast<std::size_t>(i) % values.size()]));
    return elements;
  };
}
/// The first half of one number, the second of another, and a last one.
template <class T>
auto halves(T first, T second, T last) {
  return [=](std::int64_t n) {
    Elements elements;
    const std::int64_t pairs = (n - 1) / 2;
    for (std::int64_t i = 0; i < 2 * pairs; ++i)
      elements.push_back(codegen::bits_of(i < pairs ? first : second));
    while (static_cast<std::int64_t>(elements.size()) < n)
      elements.push_back(codegen::bits_of(last));
    return elements;
  };
}
/// Random ones around a mean.
auto normal(DType type, double mean, double sigma) {
  return [=](std::int64_t n) {
    std::mt19937_64 random(static_cast<std::uint64_t>(n));
    std::normal_distribution<double> values(mean, sigma);
    Elements elements;
    for (std::int64_t i = 0; i < n; ++i)
      elements.push_back(codegen::bits_of_double(type, values(random)));
    return elements;
  };
}

Real real_of(DType type, Bits bits) {
  if (is_float(type) || size_of(type) < 8) return Real(codegen::double_of_bits(type, bits));
  const Bits low = bits & 0xffffffff, high = bits - low;
  Real value(codegen::double_of_bits(type, high));
  value += Real(static_cast<double>(low));
  return value;
}

/// Exact moments, rounded to the result's type.
struct Moments {
  Moments(DType type, const Elements& elements) : n(static_cast<double>(elements.size())) {
    for (const Bits bits : elements) {
      Real square = real_of(type, bits);
      sum += square;
      square *= square;
      squares += square;
    }
  }
  [[nodiscard]] Real mean() const {
    Real m = sum;
    m /= Real(n);
    return m;
  }
  [[nodiscard]] Real variance() const {
    Real v = squares, m = mean();
    v /= Real(n);
    m *= m;
    v -= m;
    return v;
  }
  Real sum, squares;
  double n;
};
double rounded(DType type, const Real& value) {
  const double nearest = value.nearest();
  return mean_type(type) == DType::f32 ? static_cast<float>(nearest) : nearest;
}
auto exact_mean(DType type) {
  return [type](const Elements& e) { return rounded(type, Moments(type, e).mean()); };
}
auto exact_variance(DType type) {
  return [type](const Elements& e) { return rounded(type, Moments(type, e).variance()); };
}
auto exact_norm(DType type) {
  return [type](const Elements& e) { return rounded(type, Moments(type, e).squares.root()); };
}
auto exact_sum(DType type) {
  return [type](const Elements& e) {
    const double sum = Moments(type, e).sum.nearest();
    return type == DType::f64 ? sum : static_cast<double>(static_cast<float>(sum));
  };
}
auto always(double value) {
  return [value](const Elements&) { return value; };
}

constexpr auto kNorm = [](auto x, auto... keep) { return cf::norm(x, keep...); };
constexpr auto kMean = [](auto x, auto... keep) { return cf::mean(x, keep...); };
constexpr auto kVariance = [](auto x, auto... keep) { return cf::variance(x, keep...); };
template <class T>
constexpr auto kVarianceAs =
    [](auto x, auto... keep) { return cf::variance(cf::cast<T>(x), keep...); };
constexpr auto kSum = [](auto x, auto... keep) { return cf::sum(x, keep...); };
constexpr auto kSquares = [](auto x, auto... keep) { return cf::sum(x * x, keep...); };

template <class T>
void add_constants(std::vector<EndCase>& list, std::initializer_list<double> values) {
  constexpr DType kType = kDType<T>;
  for (const double value : values) {
    const Bits bits = codegen::bits_of_double(kType, value);
    const auto same = [bits](std::int64_t n) {
      return Elements(static_cast<std::size_t>(n), bits);
    };
    const std::string of = fmt::format("{} of {:g}", name_of(kType), value);
    const double itself = codegen::double_of_bits(kType, bits);
    list.push_back({.name = "mean of constant " + of,
                    .type = kType,
                    .over = forms<T>(kMean),
                    .elements = same,
                    .right = always(itself)});
    list.push_back({.name = "variance of constant " + of,
                    .type = kType,
                    .over = forms<T>(kVariance),
                    .elements = same,
                    .right = always(0)});
  }
}

template <class T>
EndCase norm_case(std::vector<T> values, double off) {
  return {.name = fmt::format("norm of {}", name_of(kDType<T>)),
          .type = kDType<T>,
          .over = forms<T>(kNorm),
          .elements = cycle(std::move(values)),
          .right = exact_norm(kDType<T>),
          .off = off};
}
template <class T>
EndCase mean_case(std::vector<T> values, double off = 0) {
  return {.name = fmt::format("mean of {}", name_of(kDType<T>)),
          .type = kDType<T>,
          .over = forms<T>(kMean),
          .elements = cycle(std::move(values)),
          .right = exact_mean(kDType<T>),
          .off = off};
}
template <class T>
EndCase variance_case(std::vector<T> values, double off) {
  return {.name = fmt::format("variance of {}", name_of(kDType<T>)),
          .type = kDType<T>,
          .over = forms<T>(kVariance),
          .elements = cycle(std::move(values)),
          .right = exact_variance(kDType<T>),
          .off = off};
}

std::vector<EndCase> make_cases() {
  constexpr auto kI64 = std::numeric_limits<std::int64_t>::max();
  constexpr auto kU64 = std::numeric_limits<std::uint64_t>::max();
  constexpr auto kI32 = std::numeric_limits<std::int32_t>::max();
  constexpr auto kU32 = std::numeric_limits<std::uint32_t>::max();
  constexpr float kF32 = std::numeric_limits<float>::max();
  constexpr double kF64 = std::numeric_limits<double>::max();
  std::vector<EndCase> list;
  list.push_back(norm_case<float>({1e20F, 1, 1}, 2 * kUlp32));
  list.push_back(norm_case<float>({3e-25F, 4e-25F}, 2 * kUlp32));
  list.push_back(norm_case<bf16>({bf16(1e20F), bf16(1)}, 2 * kUlp32));
  list.push_back(norm_case<double>({3e-200, 4e-200}, 4 * kUlp64));
  list.push_back(norm_case<double>({1e200, 1e200, 1}, 4 * kUlp64));
  list.push_back(norm_case<double>({0x1p-1074, 0}, 4 * kUlp64));
  list.push_back(norm_case<double>({0x1p480, 0x1p479, 0x1p-500, 1}, 4 * kUlp64));
  list.push_back(norm_case<std::int32_t>({kI32}, kUlp64));
  list.push_back(norm_case<std::uint32_t>({kU32}, kUlp64));
  list.push_back(norm_case<std::int64_t>({3'000'000'000, 4'000'000'000}, 2 * kUlp64));
  list.push_back(norm_case<std::uint16_t>({65535}, 2 * kUlp32));
  list.push_back(mean_case<std::int64_t>({kI64, 1}));
  list.push_back(mean_case<std::int64_t>({std::int64_t{1} << 62}));
  list.push_back(mean_case<std::int64_t>({-kI64, -kI64 - 1, 3}));
  list.push_back(mean_case<std::int64_t>({-1, -1, -3, 0, 7}));
  list.push_back(mean_case<std::int64_t>({20'000'000'000'000'123, 20'000'000'000'000'777}));
  list.push_back(mean_case<std::uint64_t>({kU64, kU64 - 30'000}));
  list.push_back(mean_case<std::int32_t>({kI32, kI32 - 1, -5}));
  list.push_back(mean_case<std::int16_t>({17070, 17071, 17070, 17070}));
  list.push_back(mean_case<std::int8_t>({-128, 127, 127, 3}));
  list.push_back(mean_case<double>({kF64, kF64 / 3, -1}, 0));
  list.push_back(mean_case<double>({1e16, 1, -1e16}, 0));
  list.push_back(variance_case<std::int64_t>({kI64 - 4, kI64 - 2, kI64}, 4 * kUlp64));
  list.push_back(variance_case<std::uint64_t>({kU64 - 4, kU64 - 2, kU64}, 4 * kUlp64));
  list.push_back(variance_case<std::int64_t>({-kI64 - 1, kI64}, 4 * kUlp64));
  list.push_back(variance_case<std::int64_t>({1'700'000'000'000'000'001, 1'700'000'000'000'000'100},
                                             4 * kUlp64));
  list.push_back(variance_case<std::int32_t>({kI32 - 4, kI32 - 2, kI32}, 4 * kUlp64));
  list.push_back(variance_case<double>({1e154, -1e154}, 16 * kUlp64));
  list.push_back(variance_case<double>({1e150, 1.0000001e150}, 16 * kUlp64));
  list.push_back(variance_case<float>({1e19F, 2e19F}, 8 * kUlp32));
  list.push_back(variance_case<bf16>({bf16(1e19F), bf16(2e19F)}, 8 * kUlp32));
  // Few digits, in the arithmetic of more.
  const auto exactly = [](DType type) {
    return [type](const Elements& e) { return Moments(type, e).variance().nearest(); };
  };
  list.push_back({.name = "variance of u8 as f64",
                  .type = DType::u8,
                  .over = forms<std::uint8_t>(kVarianceAs<double>),
                  .elements = cycle<std::uint8_t>({3, 250, 7, 7, 91}),
                  .right = exactly(DType::u8),
                  .off = 4 * kUlp64});
  list.push_back({.name = "variance of i8 as i64",
                  .type = DType::i8,
                  .over = forms<std::int8_t>(kVarianceAs<std::int64_t>),
                  .elements = cycle<std::int8_t>({-128, 127, 5}),
                  .right = exactly(DType::i8),
                  .off = 4 * kUlp64});
  list.push_back({.name = "variance of f16 as f64",
                  .type = DType::f16,
                  .over = forms<f16>(kVarianceAs<double>),
                  .elements = cycle<f16>({f16(0.5F), f16(-2.25F), f16(65504.0F)}),
                  .right = exactly(DType::f16),
                  .off = 4 * kUlp64});
  for (const double mean : {1e4, 1e5}) {
    list.push_back({.name = fmt::format("variance of f32 around {:g}", mean),
                    .type = DType::f32,
                    .over = forms<float>(kVariance),
                    .elements = normal(DType::f32, mean, 1),
                    .right = exact_variance(DType::f32),
                    .off = 1e-6});
  }
  add_constants<float>(list, {0.1, 3e38, -1e-40, kF32});
  add_constants<double>(list, {0.1, 1e308, -5e-324, 1.0 / 3});
  add_constants<f16>(list, {0.1, 65504});
  add_constants<bf16>(list, {0.1, 3e38});
  add_constants<std::int64_t>(list, {4e18, -7});
  add_constants<std::int16_t>(list, {-32768});
  list.push_back(
      {.name = "squares of i32",
       .type = DType::i32,
       .over = forms<std::int32_t>(kSquares),
       .elements = cycle<std::int32_t>({100'000, -100'000, 7}),
       .right = [](const Elements& e) { return Moments(DType::i32, e).squares.nearest(); }});
  list.push_back(
      {.name = "squares of u16",
       .type = DType::u16,
       .over = forms<std::uint16_t>(kSquares),
       .elements = cycle<std::uint16_t>({65535}),
       .right = [](const Elements& e) { return Moments(DType::u16, e).squares.nearest(); }});
  // Partial sums beyond the type: 16 u of the absolute values' sum are far more than what is left.
  list.push_back({.name = "sum of f32 up and down",
                  .type = DType::f32,
                  .over = forms<float>(kSum),
                  .elements = halves<float>(kF32, -kF32, kF32 / 2),
                  .right = exact_sum(DType::f32),
                  .off = -16 * 0x1p-24,
                  .no_scan = true});
  list.push_back({.name = "sum of f32 in turn",
                  .type = DType::f32,
                  .over = forms<float>(kSum),
                  .elements = cycle<float>({kF32, -kF32}),
                  .right = exact_sum(DType::f32),
                  .off = -16 * 0x1p-24,
                  .no_scan = true});
  list.push_back({.name = "sum of bf16 up and down",
                  .type = DType::bf16,
                  .over = forms<bf16>(kSum),
                  .elements = halves(bf16(3.3e38F), bf16(-3.3e38F), bf16(1e38F)),
                  .right = exact_sum(DType::bf16),
                  .off = -32 * 0x1p-24,
                  .no_scan = true});
  list.push_back({.name = "sum of f64 up and down",
                  .type = DType::f64,
                  .over = forms<double>(kSum),
                  .elements = halves<double>(1e308, -1e308, 1e307),
                  .right = exact_sum(DType::f64),
                  .off = -100 * 0x1p-53,
                  .no_scan = true});
  list.push_back(
      {.name = "sum of f32 beyond the type",
       .type = DType::f32,
       .over = forms<float>(kSum),
       .elements = cycle<float>({-kF32, -1}),
       .right = [](const Elements& e) { return e.size() > 2 ? -kInfinity : -double{kF32}; },
       .no_scan = true});
  return list;
}

double number(DType type, Bits bits) {
  return type == DType::u64 ? static_cast<double>(bits) : codegen::double_of_bits(type, bits);
}

}  // namespace

const std::vector<EndCase>& end_cases() {
  static const std::vector<EndCase> kCases = make_cases();
  return kCases;
}

Executor kernel_executor(const Target& target) {
  return [target](const Computation& computation, const std::vector<Column>& inputs, std::int64_t) {
    const Kernel kernel = compile(computation, {.target = target, .tuning = Tuning::off});
    const Bindings bindings = host_bindings(computation.graph(), inputs, {});
    std::vector<Column> results =
        poisoned_outputs(computation.graph(), kernel.output_count(bindings), inputs[0].count());
    Outputs outputs;
    for (Column& result : results)
      outputs.push_back(OutputBinding(result.data(), result.type(), result.count()));
    kernel.run_into(bindings, outputs);
    return results;
  };
}

std::string check_end_case(const EndCase& what, std::int64_t n, const Executor& executor) {
  const Elements elements = what.elements(n);
  const double right = what.right(elements);
  double size = std::fabs(right);
  if (what.off < 0) {  // relative to the sum of absolute values
    long double all = 0;
    for (const Bits bits : elements) all += std::fabs(codegen::double_of_bits(what.type, bits));
    size = static_cast<double>(std::min<long double>(all, std::numeric_limits<double>::max()));
  }
  std::string problem;
  const auto check = [&](const char* where, const Column& result, std::int64_t i,
                         double growth = 1) {
    const double got = number(result.type(), result.get(i));
    const bool fits = got == right || std::fabs(got - right) <= growth * std::fabs(what.off) * size;
    if (fits || !problem.empty()) return;
    problem = fmt::format("{}, {} of {} elements: {:.17g} instead of {:.17g}", what.name, where, n,
                          got, right);
  };
  const auto column = [&](std::int64_t count, const std::function<Bits(std::int64_t)>& element) {
    Column filled(what.type, count);
    for (std::int64_t i = 0; i < count; ++i) filled.set(i, element(i));
    return filled;
  };
  const auto at = [&](std::int64_t i) { return elements[static_cast<std::size_t>(i)]; };
  const auto run = [&](const dsl::Partition& partition, Form form, std::vector<Column> inputs,
                       std::int64_t row) {
    const Computation computation = what.over(partition, form);
    // In the graph's order.
    if (inputs.size() == 2 && computation.graph().inputs[0].name == "keep")
      std::swap(inputs[0], inputs[1]);
    std::vector<Column> results = executor(computation, inputs, row);
    return std::move(results[0]);
  };
  constexpr std::int64_t kRows = 3;
  std::vector<Column> one, three, matrix;
  one.push_back(column(n, at));
  three.push_back(column(kRows * n, [&](std::int64_t i) { return at(i % n); }));
  matrix.push_back(column(kRows * n, [&](std::int64_t i) { return at(i / kRows); }));
  check("whole", run(cf::whole(), Form::plain, std::move(one), 0), 0);
  const Column segments = run(cf::segments(n), Form::plain, std::move(three), n);
  for (std::int64_t i = 0; i < kRows; ++i) check("segments", segments, i);
  const Column columns = run(cf::columns(kRows), Form::plain, std::move(matrix), kRows);
  for (std::int64_t i = 0; i < kRows; ++i) check("columns", columns, i);
  // Behind every element one that is left out, whatever it is.
  const Bits other = codegen::bits_of_double(what.type, is_float(what.type) ? std::nan("") : 77);
  std::vector<Column> filtered;
  filtered.push_back(column(2 * n, [&](std::int64_t i) { return i % 2 == 0 ? at(i / 2) : other; }));
  filtered.emplace_back(DType::boolean, 2 * n);
  for (std::int64_t i = 0; i < 2 * n; ++i) filtered[1].set(i, Bits{i % 2 == 0});
  check("filtered", run(cf::segments(2 * n), Form::filtered, std::move(filtered), 2 * n), 0);
  if (!what.no_scan) {
    std::vector<Column> last;
    last.push_back(column(n, at));
    // A lane's elements follow each other: roundings add up like a random walk's steps.
    const double growth = std::max(1.0, std::sqrt(static_cast<double>(n)) / 16);
    check("running", run(cf::whole(), Form::running, std::move(last), 0), n - 1, growth);
  }
  return problem;
}

}  // namespace chainfold::test
