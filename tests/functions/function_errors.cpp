// chainfold_function_errors: how far the functions of op_table.inc are from their exact values, on
// the CPU or a GPU, by the kernels that users get. Fails where one is farther than its row says.
#include <fmt/format.h>
#include <mpfr.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/op_table.hpp"

namespace chainfold {
namespace {

struct Settings {
  std::string target = "cpu";
  std::uint32_t every = 4099;
  int per_binade = 100;
  bool all = false;
  std::string only;
};

/// The largest error so far, in ulps of the exact value, and where it is.
struct Worst {
  double ulps = 0;
  double at = 0;
  std::int64_t values = 0;
  void add(double error, double x) {
    ++values;
    if (error > ulps || std::isnan(error)) {
      ulps = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
      at = x;
    }
  }
};

/// The distance of two floats next to the value.
template <class T>
double ulp_of(double value) {
  using Limits = std::numeric_limits<T>;
  const double size = std::fabs(value);
  if (!(size >= static_cast<double>(Limits::min())))
    return static_cast<double>(Limits::denorm_min());
  return std::ldexp(1.0, std::ilogb(size) - (Limits::digits - 1));
}

/// |got - exact| in ulps, where `exact` is a double that an f32 is held against; 0 where both are
/// the same infinity or NaN.
double error_in_f32(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : std::numeric_limits<double>::quiet_NaN();
  const auto rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(got)) {
    // The last float before the end and infinity are an ulp apart.
    const auto last = std::copysign(std::numeric_limits<float>::max(), rounded);
    if (got == rounded) return 0;
    return got == last || rounded == std::copysign(std::numeric_limits<float>::max(), got)
               ? 1
               : std::numeric_limits<double>::infinity();
  }
  return std::fabs(static_cast<double>(got) - exact) / ulp_of<float>(exact);
}

using Exact = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

/// |got - exact| in ulps, with the exact value from MPFR.
template <class Function, class T>
double error_by_mpfr(Function function, T x, T got) {
  mpfr_t in, out;
  mpfr_init2(in, 64);
  mpfr_init2(out, 128);
  mpfr_set_d(in, static_cast<double>(x), MPFR_RNDN);
  function(out, in, MPFR_RNDN);
  double error = 0;
  if (mpfr_nan_p(out) != 0) {
    error = std::isnan(got) ? 0 : std::numeric_limits<double>::quiet_NaN();
  } else if (mpfr_inf_p(out) != 0 || std::isinf(got)) {
    const auto rounded = static_cast<T>(mpfr_get_d(out, MPFR_RNDN));
    const T most = std::numeric_limits<T>::max();
    const bool next = std::isinf(rounded) ? got == std::copysign(most, rounded)
                                          : std::fabs(rounded) == most && rounded * got > 0;
    error = got == rounded ? 0 : next ? 1 : std::numeric_limits<double>::infinity();
  } else {
    const double ulp = ulp_of<T>(mpfr_get_d(out, MPFR_RNDZ));
    mpfr_sub_d(out, out, static_cast<double>(got), MPFR_RNDN);
    mpfr_abs(out, out, MPFR_RNDN);
    mpfr_div_d(out, out, ulp, MPFR_RNDN);
    error = mpfr_get_d(out, MPFR_RNDN);
  }
  mpfr_clear(in);
  mpfr_clear(out);
  return error;
}

int exact_rsqrt(mpfr_ptr out, mpfr_srcptr in, mpfr_rnd_t mode) {
  // Of -0 MPFR gives +inf.
  const int result = mpfr_rec_sqrt(out, in, mode);
  if (mpfr_zero_p(in) != 0 && mpfr_signbit(in) != 0) mpfr_set_inf(out, -1);
  return result;
}

Exact exact_of(codegen::Op op) {
  using codegen::Op;
  switch (op) {
    case Op::rsqrt: return exact_rsqrt;
    case Op::exp: return mpfr_exp;
    case Op::exp2: return mpfr_exp2;
    case Op::expm1: return mpfr_expm1;
    case Op::log: return mpfr_log;
    case Op::log2: return mpfr_log2;
    case Op::log1p: return mpfr_log1p;
    case Op::sin: return mpfr_sin;
    case Op::cos: return mpfr_cos;
    case Op::tanh: return mpfr_tanh;
    case Op::erf: return mpfr_erf;
    default: return nullptr;
  }
}

class Errors {
 public:
  explicit Errors(const Settings& settings) : settings_(settings) {
    options_.target = target(settings.target);
    options_.tiered = false;
  }

  /// A line of the table.
  template <class Function>
  void measure(codegen::Op op, Function function) {
    const codegen::OpRow& row = codegen::row_of(op);
    if (!is_wanted(row)) return;
    const Exact exact = exact_of(op);
    if (exact == nullptr) {
      fmt::print(stderr, "{} has no exact function here: add it to exact_of()\n", row.name);
      failed_ = true;
      return;
    }
    const Kernel of_f32 = compile(over(segments(1), sum(function(input<float>("x")))), options_);
    const Kernel of_f64 = compile(over(segments(1), sum(function(input<double>("x")))), options_);
    Worst all, some, wide;
    if (settings_.all) all = against_f64(of_f32, of_f64);
    std::vector<float> x;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += settings_.every) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      if (std::isfinite(value)) x.push_back(value);
    }
    const auto [y] = of_f32.run<float>({{"x", x}});
    for (std::size_t i = 0; i < x.size(); ++i) some.add(error_by_mpfr(exact, x[i], y[i]), x[i]);
    std::vector<double> x64;
    std::mt19937_64 random(19);
    for (std::uint64_t binade = 0; binade < 2047; ++binade) {
      for (int i = 0; i < settings_.per_binade; ++i) {
        const std::uint64_t bits = random();
        x64.push_back(std::bit_cast<double>((bits & ~(std::uint64_t{0x7ff} << 52)) | binade << 52));
      }
    }
    const auto [y64] = of_f64.run<double>({{"x", x64}});
    for (std::size_t i = 0; i < x64.size(); ++i)
      wide.add(error_by_mpfr(exact, x64[i], y64[i]), x64[i]);
    const bool within = std::max({all.ulps, some.ulps, wide.ulps}) <= row.ulps;
    failed_ = failed_ || !within;
    fmt::print("| {} | {} | {:.2f} (at {:.9g}) | {:.2f} (at {:.17g}) | {} |{}\n", row.name,
               settings_.all ? fmt::format("{:.2f} (at {:.9g})", all.ulps, all.at) : "-", some.ulps,
               some.at, wide.ulps, wide.at, row.ulps, within ? "" : " TOO FAR");
    std::cout.flush();
  }

  /// The same of pow, for pairs whose power is a number, most of them finite.
  template <class T>
  Worst of_pow() {
    const Kernel kernel =
        compile(over(segments(1), sum(pow(input<T>("x"), input<T>("y")))), options_);
    std::mt19937_64 random(23);
    std::uniform_real_distribution<double> exponent(sizeof(T) == 4 ? -126 : -1000,
                                                    sizeof(T) == 4 ? 126 : 1000);
    std::uniform_real_distribution<double> power(-1.02, 1.02);
    std::vector<T> x, y;
    for (std::uint32_t i = 0; i < 4'000'000 / settings_.every * 400; ++i) {
      const double log2_of_x = i % 2 == 0 ? exponent(random) : exponent(random) / 1000;
      x.push_back(static_cast<T>(std::exp2(log2_of_x)));
      const double most = (sizeof(T) == 4 ? 128.0 : 1024.0) / std::fmax(std::fabs(log2_of_x), 1e-6);
      y.push_back(static_cast<T>(power(random) * most));
    }
    const auto [z] = kernel.template run<T>({{"x", x}, {"y", y}});
    Worst worst;
    for (std::size_t i = 0; i < x.size(); ++i) {
      mpfr_t base;
      mpfr_init2(base, 64);
      mpfr_set_d(base, static_cast<double>(x[i]), MPFR_RNDN);
      const auto exact = [&](mpfr_ptr out, mpfr_srcptr in, mpfr_rnd_t mode) {
        return mpfr_pow(out, base, in, mode);
      };
      worst.add(error_by_mpfr(exact, y[i], z[i]), static_cast<double>(x[i]));
      mpfr_clear(base);
    }
    return worst;
  }
  void measure_pow() {
    const codegen::OpRow& row = codegen::row_of(codegen::Op::pow);
    if (!is_wanted(row)) return;
    const Worst some = of_pow<float>(), wide = of_pow<double>();
    const bool within = std::max(some.ulps, wide.ulps) <= row.ulps;
    failed_ = failed_ || !within;
    fmt::print("| pow, {} pairs | - | {:.2f} | {:.2f} | {} |{}\n", some.values, some.ulps,
               wide.ulps, row.ulps, within ? "" : " TOO FAR");
  }

  void head() const {
    fmt::print("{}: largest errors, in ulps\n\n", settings_.target);
    fmt::print(
        "| function | all finite f32, against f64 of the target | every {}th f32, against MPFR | "
        "{} f64 of a binade, against MPFR | allowed |\n|---|---|---|---|---|\n",
        settings_.every, settings_.per_binade);
  }
  [[nodiscard]] bool failed() const { return failed_; }
  /// Whether there was a function of the name that was asked for.
  [[nodiscard]] bool found() const { return found_; }

 private:
  /// Whether a row is to be measured, which is remembered.
  bool is_wanted(const codegen::OpRow& row) {
    if (!settings_.only.empty() && row.name != settings_.only) return false;
    found_ = true;
    return true;
  }
  static Worst against_f64(const Kernel& of_f32, const Kernel& of_f64) {
    constexpr std::uint64_t kChunk = std::uint64_t{1} << 22;
    Worst worst;
    std::vector<float> x(kChunk);
    std::vector<double> wide(kChunk);
    for (std::uint64_t first = 0; first < (std::uint64_t{1} << 32); first += kChunk) {
      std::size_t count = 0;
      for (std::uint64_t i = 0; i < kChunk; ++i) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(first + i));
        if (!std::isfinite(value)) continue;
        x[count] = value;
        wide[count++] = value;
      }
      if (count == 0) continue;
      x.resize(count);
      wide.resize(count);
      const auto [y] = of_f32.run<float>({{"x", x}});
      const auto [exact] = of_f64.run<double>({{"x", wide}});
      for (std::size_t i = 0; i < count; ++i) worst.add(error_in_f32(y[i], exact[i]), x[i]);
      x.resize(kChunk);
      wide.resize(kChunk);
    }
    return worst;
  }

  const Settings& settings_;
  Options options_;
  bool failed_ = false, found_ = false;
};

int run(const Settings& settings) {
  Errors errors(settings);
  errors.head();
#define OPERATION(...)
#define FUNCTION(name, call, use, domain, result, cuda_f32, cuda_f64, cpu, ulps, ...) \
  if constexpr (ulps > 0) {                                                           \
    errors.measure(codegen::Op::name, [](auto x) { return chainfold::call(x); });     \
  }
#include "chainfold/codegen/base/op_table.inc"
  errors.measure_pow();
  if (!errors.found()) {
    fmt::print(stderr, "no function that may err is called {}\n", settings.only);
    return 2;
  }
  return errors.failed() ? 1 : 0;
}

}  // namespace
}  // namespace chainfold

int main(int argc, char** argv) {
  chainfold::Settings settings;
  CLI::App app{
      "Measures how far functions are from their exact values; fails where one is farther than it "
      "may be."};
  app.add_option("--target", settings.target, "cpu, gpu or gpu:N");
  app.add_option("--every", settings.every, "every so many-th f32 is held against MPFR")
      ->check(CLI::PositiveNumber);
  app.add_option("--per-binade", settings.per_binade, "so many f64 of every binade are")
      ->check(CLI::PositiveNumber);
  app.add_flag("--all", settings.all, "also all finite f32 against the f64 function of the target");
  app.add_option("--only", settings.only, "one function");
  CLI11_PARSE(app, argc, argv);
  try {
    return chainfold::run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
