// Scans and folds side by side: for price paths, how far every price lies below the highest so far,
// what it might still rise to, and the deepest fall of each path, in one pass over the prices.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

namespace {

/// States: (the highest price, the lowest, the deepest fall from a price to a later one).
auto deepest_fall() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return cf::monoid(
      "deepest_fall", cf::state<float, float, float>(0.0F, kInfinity, 0.0F),
      [](auto price) { return cf::fields(price, price, 0.0F); },
      [](auto a, auto b) {  // b follows a
        auto [a_high, a_low, a_fall] = a;
        auto [b_high, b_low, b_fall] = b;
        return cf::fields(cf::max(a_high, b_high), cf::min(a_low, b_low),
                          cf::max(cf::max(a_fall, b_fall), 1.0F - b_low / a_high));
      },
      [](auto s) { return cf::get<2>(s); },
      cf::unchecked);  // of prices, which are above 0
}

/// Paths that begin at 100 and change by a percent or so a step.
std::vector<float> prices(std::size_t paths, std::size_t steps) {
  std::mt19937 random(11);
  std::normal_distribution<float> change(0, 0.01F);
  std::vector<float> x(paths * steps);
  for (std::size_t p = 0; p < paths; ++p) {
    float price = 100;
    for (std::size_t t = 0; t < steps; ++t) {
      x[p * steps + t] = price;
      price *= std::exp(change(random));
    }
  }
  return x;
}

int run(std::int64_t paths, std::int64_t steps, bool explain) {
  const std::vector<float> path_prices =
      prices(static_cast<std::size_t>(paths), static_cast<std::size_t>(steps));
  auto x = cf::input<float>("x");
  auto below_peak = 1.0F - x / cf::inclusive(cf::max(x));
  auto still_to_rise = cf::inclusive(cf::max(x), cf::backward) / x - 1.0F;
  const auto kernel = cf::compile(cf::over(cf::segments(steps), below_peak, still_to_rise,
                                           cf::fold(deepest_fall(), x), cf::mean(x)));
  if (explain) fmt::print("{}\n", kernel.explain());
  const auto [below, rise, deepest, mean] = kernel.run({{"x", path_prices}});
  fmt::print("{} on {}\n", kernel.plan(), kernel.device_name());
  fmt::print("{:>6} {:>10} {:>14} {:>13} {:>10}\n", "path", "mean", "deepest fall", "below at end",
             "could rise");
  std::int64_t wrong = 0;
  for (std::int64_t p = 0; p < paths; ++p) {
    const auto first = static_cast<std::size_t>(p * steps);
    const auto last = first + static_cast<std::size_t>(steps) - 1;
    const auto path = static_cast<std::size_t>(p);
    if (p < 8)
      fmt::print("{:>6} {:>10.3f} {:>13.2f}% {:>12.2f}% {:>9.2f}%\n", p, mean[path],
                 100 * deepest[path], 100 * below[last], 100 * rise[first]);
    // The same in plain C++: both round each value once, so all bits agree.
    float high = 0, fall = 0;
    for (std::size_t i = first; i <= last; ++i) {
      high = std::max(high, path_prices[i]);
      const float now = 1.0F - path_prices[i] / high;
      fall = std::max(fall, now);
      if (below[i] != now) ++wrong;
    }
    if (deepest[path] != fall) ++wrong;
    high = 0;
    for (std::size_t i = last + 1; i-- > first;) {
      high = std::max(high, path_prices[i]);
      if (rise[i] != high / path_prices[i] - 1.0F) ++wrong;
    }
  }
  fmt::print("{}\n", wrong == 0 ? "equal to plain loops over all paths"
                                : fmt::format("WRONG: {} values differ from plain loops", wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t paths = 2000, steps = 252;
  bool explain = false;
  CLI::App app("How far prices fall below what they have been: scans and folds in one pass.");
  app.add_option("--paths", paths, "price paths")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", steps, "prices a path")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--explain", explain, "also print expression, graph, plan and kernel source");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(paths, steps, explain);
  } catch (const std::exception& error) {
    fmt::print(stderr, "drawdown: error: {}\n", error.what());
    return 1;
  }
}
