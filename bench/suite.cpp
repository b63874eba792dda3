#include "chainfold/bench/suite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace chainfold::bench {

std::size_t repeats_for(const SuiteOptions& options, double ms) {
  constexpr double kLeast = 9, kMost = 300;
  return static_cast<std::size_t>(std::clamp(options.seconds * 1e3 / ms, kLeast, kMost));
}

namespace {

/// Compiles `folds` of f16 for sizes of no other row, so that no kernel is known yet, and then once
/// more: nobody owns the kernels any more, and they come from the disk.
template <class Folds>
void measure_compile(const Target& target, const std::string& compiler, const std::string& name,
                     const Folds& folds, Report& report) {
  using Clock = std::chrono::steady_clock;
  const std::int64_t sizes[] = {40, 72, 88, 104, 136, 152, 168, 184, 208, 232};
  std::vector<double> within, cold, warm;
  for (const bool again : {false, true}) {
    for (const std::int64_t size : sizes) {
      const auto start = Clock::now();
      const Kernel kernel = folds(size, input<f16>("x"), Options{.target = target});
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      if (again && kernel.stats().from_disk == 1) warm.push_back(ms);
      if (size == sizes[0] || kernel.stats().compiled == 0) continue;  // it may load the compiler
      within.push_back(kernel.stats().compile_ms);
      cold.push_back(ms);
    }
  }
  const auto add = [&](const char* what, const std::string& impl,
                       const std::vector<double>& times) {
    if (!times.empty())
      report.rows.push_back(
          make_plain_row(fmt::format("{} {}", what, name), impl, median(times), times.size()));
  };
  add("compile", compiler, within);
  add("cf::compile", "chainfold", cold);
  add("from disk", "chainfold", warm);
}

}  // namespace

void measure_compile(const Target& target, const std::string& compiler, Report& report) {
  measure_compile(
      target, compiler, "sum",
      [](std::int64_t size, const auto& x, const Options& options) {
        return compile(over(segments(size), cast<f16>(sum(x))), options);
      },
      report);
  measure_compile(
      target, compiler, "mean_rms",
      [](std::int64_t size, const auto& x, const Options& options) {
        return compile(over(segments(size), mean(x), sqrt(mean(x * x))), options);
      },
      report);
}

void progress(const std::string& text) { fmt::print(stderr, "{}\n", text); }

}  // namespace chainfold::bench
