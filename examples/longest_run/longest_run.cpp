// A fold of one's own: for every window of a signal the longest stretch above a threshold, where
// its peak is, and how loud it is, in one pass.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

namespace {

/// States: (true at the start, the longest run, true at the end, elements).
auto longest_run() {
  using I = std::int64_t;
  return cf::monoid(
      "longest_run", cf::state<I, I, I, I>(0, 0, 0, 0),
      [](auto hit) {  // one element
        auto one = cf::cast<I>(hit);
        return cf::fields(one, one, one, 1);
      },
      [](auto a, auto b) {  // b follows a
        auto [a_first, a_best, a_last, a_count] = a;
        auto [b_first, b_best, b_last, b_count] = b;
        return cf::fields(cf::select(a_first == a_count, a_count + b_first, a_first),
                          cf::max(cf::max(a_best, b_best), a_last + b_first),
                          cf::select(b_last == b_count, b_count + a_last, b_last),
                          a_count + b_count);
      },
      [](auto s) { return cf::get<1>(s); });
}

/// Noise with some bursts in it.
std::vector<float> signal(std::size_t samples) {
  std::mt19937 random(7);
  std::normal_distribution<float> noise(0, 0.3F);
  std::vector<float> x(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    const bool burst = i / 700 % 5 == 2;
    x[i] = noise(random) + (burst ? 1.0F : 0.0F);
  }
  return x;
}

/// The same in plain C++, to hold the answer against.
std::int64_t longest_run_of(const float* x, std::int64_t n, float threshold) {
  std::int64_t best = 0, now = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    now = x[i] > threshold ? now + 1 : 0;
    best = std::max(best, now);
  }
  return best;
}

int run(std::int64_t windows, std::int64_t size, float threshold, bool explain) {
  const std::vector<float> samples = signal(static_cast<std::size_t>(windows * size));
  auto x = cf::input<float>("x");
  auto answer = cf::over(cf::segments(size), cf::fold(longest_run(), x > threshold), cf::argmax(x),
                         cf::logsumexp(x) - std::log(static_cast<float>(size)));
  const auto kernel = cf::compile(answer);
  if (explain) fmt::print("{}\n", kernel.explain());
  const auto [runs, peaks, loudness] = kernel.run({{"x", samples}});
  fmt::print("{} on {}\n", kernel.plan_summary(), kernel.device_name());
  fmt::print("{:>8} {:>12} {:>8} {:>10}\n", "window", "longest run", "peak at", "loudness");
  std::int64_t wrong = 0;
  for (std::int64_t w = 0; w < windows; ++w) {
    const auto i = static_cast<std::size_t>(w);
    if (w < 8) fmt::print("{:>8} {:>12} {:>8} {:>10.4f}\n", w, runs[i], peaks[i], loudness[i]);
    const float* begin = samples.data() + w * size;
    if (runs[i] != longest_run_of(begin, size, threshold)) ++wrong;
    if (peaks[i] != std::max_element(begin, begin + size) - begin) ++wrong;
  }
  fmt::print("{}\n", wrong == 0 ? "equal to plain loops over all windows"
                                : fmt::format("WRONG: {} values differ from plain loops", wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t windows = 1000, size = 4096;
  float threshold = 0.5F;
  bool explain = false;
  CLI::App app(
      "The longest run above a threshold in every window of a signal: a fold of one's own.");
  app.add_option("--windows", windows, "windows")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--size", size, "samples a window")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threshold", threshold, "what a run is above")->capture_default_str();
  app.add_flag("--explain", explain, "also print expression, graph, plan and kernel source");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(windows, size, threshold, explain);
  } catch (const std::exception& error) {
    fmt::print(stderr, "longest_run: error: {}\n", error.what());
    return 1;
  }
}
