// Sessions of an event log: a session ends where nobody does anything for half an hour. Of each the
// number of events, how long it lasted, and the longest pause in it, in one pass over the folds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

namespace {

using Seconds = std::int64_t;

/// States: (the first time, the last one, the longest pause between two that follow each other). Of
/// nothing the first time is behind the last one.
auto longest_pause() {
  constexpr Seconds kNever = std::int64_t{1} << 62;
  return cf::monoid(
      "longest_pause", cf::state<Seconds, Seconds, Seconds>(kNever, -kNever, 0),
      [](auto t) { return cf::fields(t, t, Seconds{0}); },
      [](auto a, auto b) {  // b follows a
        auto [a_first, a_last, a_pause] = a;
        auto [b_first, b_last, b_pause] = b;
        auto both = a_first <= a_last && b_first <= b_last;
        auto between = cf::select(both, b_first - a_last, Seconds{0});
        return cf::fields(cf::min(a_first, b_first), cf::max(a_last, b_last),
                          cf::max(cf::max(a_pause, b_pause), between));
      },
      [](auto s) { return cf::get<2>(s); },
      cf::unchecked);  // of times in order
}

/// Times of events in order, in bursts.
std::vector<Seconds> events(std::int64_t count) {
  std::mt19937_64 random(5);
  std::exponential_distribution<double> within(1.0 / 120), away(1.0 / 20'000);
  std::bernoulli_distribution leaves(0.06);
  std::vector<Seconds> times;
  double now = 1.7e9;
  for (std::int64_t i = 0; i < count; ++i) {
    now += leaves(random) ? away(random) : within(random);
    times.push_back(static_cast<Seconds>(now));
  }
  return times;
}

int run(std::int64_t count, Seconds pause, bool explain) {
  const std::vector<Seconds> times = events(count);
  auto t = cf::input<Seconds>("t");
  auto limit = cf::param<Seconds>("pause");
  const auto kernel = cf::compile(cf::over(cf::heads(t - cf::lag(t, 1, 0) > limit), cf::count(),
                                           cf::max(t) - cf::min(t), cf::fold(longest_pause(), t)));
  if (explain) fmt::print("{}\n", kernel.explain());
  const auto [size, duration, longest] = kernel.run({{"t", times}, {"pause", pause}});
  fmt::print("{} events, {} sessions on {}\n", count, size.size(), kernel.device_name());
  fmt::print("{:>8} {:>8} {:>12} {:>12}\n", "session", "events", "seconds", "pause");
  for (std::size_t s = 0; s < std::min<std::size_t>(size.size(), 8); ++s)
    fmt::print("{:>8} {:>8} {:>12} {:>12}\n", s, size[s], duration[s], longest[s]);
  // The same in plain C++.
  std::int64_t wrong = 0;
  std::size_t session = 0;
  for (std::size_t begin = 0; begin < times.size(); ++session) {
    std::size_t end = begin + 1;
    Seconds most = 0;
    for (; end < times.size() && times[end] - times[end - 1] <= pause; ++end)
      most = std::max(most, times[end] - times[end - 1]);
    if (session >= size.size() || size[session] != static_cast<std::int64_t>(end - begin) ||
        duration[session] != times[end - 1] - times[begin] || longest[session] != most)
      ++wrong;
    begin = end;
  }
  if (session != size.size()) ++wrong;
  fmt::print("{}\n", wrong == 0
                         ? "equal to a plain loop over all events"
                         : fmt::format("WRONG: {} sessions differ from a plain loop", wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t count = 1'000'000;
  Seconds pause = 1800;
  bool explain = false;
  CLI::App app("Sessions of an event log: segments that begin behind a pause.");
  app.add_option("--events", count, "events of the log")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--pause", pause, "seconds without an event that end a session")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--explain", explain, "also print expression, graph, plan and kernel source");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(count, pause, explain);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sessions: error: {}\n", error.what());
    return 1;
  }
}
