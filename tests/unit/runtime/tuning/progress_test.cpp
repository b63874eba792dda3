// What progress_to_stderr shows: a bar on a terminal, few lines elsewhere.
#include <gtest/gtest.h>

#include <algorithm>

#include "chainfold/runtime/tuning/progress_text.hpp"

namespace chainfold::test {
namespace {

using namespace std::chrono_literals;
using runtime::ProgressText;

const ProgressText::Time kStart{};

TuningProgress at(std::string_view stage, int done, int total, double seconds) {
  return {.stage = stage,
          .done = done,
          .total = total,
          .what = "over(segments(64), sum(f32(x)))",
          .best_plan = "rows warps=8",
          .best_ms = stage == "compiling" ? 0.0 : 0.25,
          .default_ms = 0.5,
          .seconds = seconds};
}

TEST(ProgressText, ABarFillsAndGoesAway) {
  ProgressText text(100);
  EXPECT_EQ(
      text.next(at("compiling", 10, 40, 0.5), kStart),
      "\r\033[Ktuning over(segments(64), sum(f32(x))) [#####...............] compiling 10/40, "
      "0.5 s");
  EXPECT_EQ(text.next(at("compiling", 11, 40, 0.51), kStart + 10ms), "") << "drawn a moment ago";
  const std::string last = text.next(at("timing", 25, 25, 1.25), kStart + 20ms);
  EXPECT_NE(last.find("[####################] timing 25/25, best 0.25 ms, 1.2 s"),
            std::string::npos)
      << last;
  EXPECT_EQ(text.next(at("tuned", 1, 1, 1.3), kStart + 30ms), "\r\033[K");
}

TEST(ProgressText, ABarFitsItsTerminal) {
  for (const int columns : {1, 2, 20, 60, 70, 80, 200}) {
    ProgressText text(columns);
    std::string bar = text.next(at("timing", 3, 25, 1), kStart);
    bar.erase(0, bar.find('K') + 1);
    EXPECT_LT(bar.size(), static_cast<std::size_t>(columns)) << bar;
  }
}

TEST(ProgressText, ALogGetsALineInThreeSecondsAtMost) {
  ProgressText text(0);
  std::string log;
  // Twelve tunings of a second, one after the other, told of twenty times a second.
  for (int tick = 0; tick < 240; ++tick) {
    const int within = tick % 20;
    const auto now = kStart + tick * 50ms;
    log += text.next(within == 19 ? at("tuned", 1, 1, 1) : at("timing", within, 20, within * 0.05),
                     now);
  }
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 4) << log;
  EXPECT_EQ(log.find('\033'), std::string::npos);
  EXPECT_EQ(log.substr(0, log.find('\n')),
            "tuned over(segments(64), sum(f32(x))): rows warps=8, 0.25 ms (the default 0.5 ms), in "
            "1.0 s");
}

TEST(ProgressText, ALongTuningIsHeardOf) {
  ProgressText text(0);
  EXPECT_EQ(text.next(at("compiling", 1, 40, 2.9), kStart + 2900ms), "");
  EXPECT_EQ(text.next(at("compiling", 2, 40, 3.1), kStart + 3100ms),
            "tuning over(segments(64), sum(f32(x))): compiling 2/40, 3.1 s\n");
  EXPECT_EQ(text.next(at("failed", 1, 1, 9), kStart + 9s),
            "tuning over(segments(64), sum(f32(x))) failed after 9.0 s\n");
}

}  // namespace
}  // namespace chainfold::test
