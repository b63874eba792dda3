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

void measure_compile(const Target& target, const std::string& compiler, Report& report) {
  using Clock = std::chrono::steady_clock;
  // Sizes of no other row, so that no kernel is known yet; the first one loads the compiler.
  const std::int64_t sizes[] = {40, 72, 88, 104, 136, 152, 168, 184, 208, 232};
  std::vector<double> within, cold, warm;
  // The second time round nobody owns the first one's kernels any more: they come from the disk.
  for (const bool again : {false, true}) {
    for (const std::int64_t size : sizes) {
      const auto x = input<f16>("x");
      const auto start = Clock::now();
      const Kernel kernel =
          compile(over(segments(size), mean(x), sqrt(mean(x * x))), {.target = target});
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      if (again && kernel.stats().from_disk == 1) warm.push_back(ms);
      if (size == sizes[0] || kernel.stats().compiled == 0) continue;
      within.push_back(kernel.stats().compile_ms);
      cold.push_back(ms);
    }
  }
  const auto add = [&](const char* op, const std::string& impl, const std::vector<double>& times) {
    if (!times.empty())
      report.rows.push_back(make_plain_row(op, impl, median(times), times.size()));
  };
  add("compile", compiler, within);
  add("cf::compile", "chainfold", cold);
  add("from disk", "chainfold", warm);
}

void progress(const std::string& text) { fmt::print(stderr, "{}\n", text); }

}  // namespace chainfold::bench
