#include "chainfold/bench/compile_cases.hpp"

#include <fmt/format.h>

#include <utility>

#include "chainfold/tests/support/monoids.hpp"

namespace chainfold::bench {
namespace {

/// Adds cases of one partition: everything, segments or columns.
class Cases {
 public:
  template <class... Out>
  void whole(const std::string& name, Out... out) {
    all_.push_back({name + "/whole", over(chainfold::whole(), out...), 0, 0});
  }
  template <class... Out>
  void segments(std::int64_t size, const std::string& name, Out... out) {
    all_.push_back(
        {fmt::format("{}/{}", name, size), over(chainfold::segments(size), out...), size, 0});
  }
  template <class... Out>
  void columns(std::int64_t count, const std::string& name, Out... out) {
    all_.push_back(
        {fmt::format("{}/columns", name), over(chainfold::columns(count), out...), 0, count});
  }
  std::vector<CompileCase> take() { return std::move(all_); }

 private:
  std::vector<CompileCase> all_;
};

/// x -> a x + b modulo a prime, composed; the value at 1.
auto affine_maps() {
  using U = std::uint64_t;
  return monoid(
      "affine_maps", state<U, U>(1, 0),
      [](auto x) { return fields(x % 1000003 + 1, (x >> 20) % 1000003); },
      [](auto a, auto b) {
        auto [a_factor, a_term] = a;
        auto [b_factor, b_term] = b;
        return fields(a_factor * b_factor % 1000003, (a_term * b_factor + b_term) % 1000003);
      },
      [](auto s) {
        auto [factor, term] = s;
        return factor + term;
      });
}

/// The largest fall from a high.
auto drawdown() {
  return monoid(
      "drawdown", state<float, float, float>(-HUGE_VALF, HUGE_VALF, 0),
      [](auto x) { return fields(x, x, 0 * x); },
      [](auto a, auto b) {
        auto [a_high, a_low, a_fall] = a;
        auto [b_high, b_low, b_fall] = b;
        return fields(max(a_high, b_high), min(a_low, b_low),
                      max(max(a_fall, b_fall), a_high - b_low));
      },
      [](auto s) { return get<2>(s); });
}

void add_folds(Cases& cases) {
  const auto x = input<float>("x"), y = input<float>("y");
  cases.whole("sum f32", sum(x));
  cases.whole("mean f32", mean(x));
  cases.whole("norm f32", norm(x));
  cases.whole("dot f32", dot(x, y));
  cases.whole("product f32", product(x));
  cases.whole("min f32", min(x));
  cases.whole("argmin f32", argmin(x));
  cases.whole("any f32", any(x > 1));
  cases.whole("count f32", count(where(x > 1)));
  cases.whole("sum where f32", sum(x, where(y > 0)));
  cases.whole("variance f32", variance(x));
  cases.whole("stddev f32", stddev(x));
  cases.whole("logsumexp f32", logsumexp(x));
  cases.whole("correlation f32", correlation(x, y));
  cases.whole("skewness f32", skewness(x));
  cases.segments(1000, "argmax f32", argmax(x));
  cases.segments(1000, "logsumexp f32", logsumexp(x));
  cases.segments(1000, "variance f64", variance(input<double>("x")));
}

void add_types_and_sizes(Cases& cases) {
  cases.whole("sum f16", sum(input<f16>("x")));
  cases.whole("sum bf16", sum(input<bf16>("x")));
  cases.whole("sum f64", sum(input<double>("x")));
  cases.whole("sum i8", sum(input<std::int8_t>("x")));
  cases.whole("sum i64", sum(input<std::int64_t>("x")));
  cases.whole("max u8", max(input<std::uint8_t>("x")));
  cases.segments(64, "mean f16", mean(input<f16>("x")));
  const auto x = input<float>("x");
  for (const std::int64_t size : {7, 64, 100, 1000, 4099, 65536})
    cases.segments(size, "sum f32", sum(x));
  cases.segments(33, "max i8", max(input<std::int8_t>("x")));
  cases.columns(1000, "sum f32", sum(x));
  cases.columns(1000, "variance f32", variance(x));
  cases.columns(1000, "argmax f32", argmax(x));
}

void add_several(Cases& cases) {
  const auto x = input<float>("x"), y = input<float>("y");
  cases.segments(64, "mean, rms f32", mean(x), sqrt(mean(x * x)));
  cases.whole("min, max f32", min(x), max(x));
  cases.whole("sum, argmax f32", sum(x), argmax(x));
  cases.segments(1000, "mean, variance f32", mean(x), variance(x));
  cases.segments(1000, "running share f32", inclusive_sum(x) / sum(x));
  const auto eight = [&](auto add) {
    add(sum(x), mean(y), min(x), max(y), count(where(x > y)), dot(x, y), variance(x), argmax(y));
  };
  eight([&](auto... out) { cases.whole("eight f32", out...); });
  eight([&](auto... out) { cases.segments(1000, "eight f32", out...); });
}

void add_scans(Cases& cases) {
  const auto x = input<float>("x");
  const auto half = input<f16>("x");
  cases.whole("running sum f32", inclusive_sum(x));
  cases.segments(64, "running sum f32", inclusive_sum(x));
  cases.segments(1000, "running sum f32", inclusive_sum(x));
  cases.whole("running sum f16", inclusive_sum(half));
  cases.segments(37, "running sum i32", inclusive_sum(input<std::int32_t>("x")));
  cases.whole("running max f32", inclusive(max(x)));
  cases.whole("running argmax f32", inclusive(argmax(x)));
  cases.segments(1000, "sum behind f64", exclusive_sum(input<double>("x"), backward));
  cases.segments(1000, "running logsumexp f32", inclusive(logsumexp(x)));
  cases.whole("running variance f32", inclusive(variance(x)));
  cases.whole("recurrence f32", linear_recurrence(0.9F, x));
}

void add_monoids(Cases& cases) {
  const auto x = input<float>("x");
  const auto keys = input<std::uint64_t>("k");
  cases.segments(1000, "longest run", fold(test::longest_run(), x > 0));
  cases.whole("running longest run", inclusive(fold(test::longest_run(), x > 0)));
  cases.whole("drawdown f32", fold(drawdown(), x));
  cases.whole("hash u64", fold(test::horner(), keys));
  cases.whole("affine maps u64", fold(affine_maps(), keys));
  cases.whole("running affine maps u64", inclusive(fold(affine_maps(), keys)));
}

}  // namespace

namespace {

/// All of one type.
template <class T>
void add_type(Cases& cases, const std::string& type) {
  const auto x = input<T>("x");
  const auto add = [&](const std::string& name, auto out) {
    for (const std::int64_t size : {7, 64, 1000, 4099, 65536})
      cases.segments(size, name + " " + type, out);
    cases.whole(name + " " + type, out);
  };
  add("sum", sum(x));
  add("mean", mean(x));
  add("norm", norm(x));
  add("dot", dot(x, input<T>("y")));
  add("max", max(x));
  add("argmax", argmax(x));
  add("any", any(x > T(1)));
  add("variance", variance(x));
  if constexpr (is_float(kDType<T>)) add("logsumexp", logsumexp(x));
  add("running sum", inclusive_sum(x));
  add("running max", inclusive(max(x)));
  add("running argmax", inclusive(argmax(x)));
  add("running count", inclusive(count(where(x > T(1)))));
}

}  // namespace

std::vector<CompileCase> compile_grid() {
  Cases cases;
  add_type<f16>(cases, "f16");
  add_type<float>(cases, "f32");
  add_type<double>(cases, "f64");
  add_type<std::int8_t>(cases, "i8");
  add_type<std::int32_t>(cases, "i32");
  return cases.take();
}

std::vector<CompileCase> compile_cases() {
  Cases cases;
  add_folds(cases);
  add_types_and_sizes(cases);
  add_several(cases);
  add_scans(cases);
  add_monoids(cases);
  return cases.take();
}

}  // namespace chainfold::bench
