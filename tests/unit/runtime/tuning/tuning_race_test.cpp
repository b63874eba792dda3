// The arithmetic of a tuning: who leaves the race early, who wins it.
#include "chainfold/runtime/tuning/race.hpp"

#include <gtest/gtest.h>

namespace chainfold::test {
namespace {

using runtime::choose_fastest;
using runtime::Race;

TEST(ChooseFastest, KeepsTheDefaultWithinTheNoise) {
  EXPECT_EQ(choose_fastest({{1.0, 1.0, 1.0}, {0.999, 0.998, 0.999}}), 0U);
  EXPECT_EQ(choose_fastest({{1.0, 1.1, 0.9}, {0.85, 0.95, 0.9}}), 0U) << "both are that wide";
  EXPECT_EQ(choose_fastest({{1.0, 1.001, 0.999}, {0.9, 0.901, 0.9}}), 1U);
}

TEST(ChooseFastest, TakesTheFirstOfEqualsAndNoneThatFailed) {
  EXPECT_EQ(choose_fastest({{2.0, 2.0, 2.0}, {1.002, 1.002, 1.002}, {1.0, 1.0, 1.0}}), 1U);
  EXPECT_EQ(choose_fastest({{2.0, 2.0, 2.0}, {}, {1.0, 1.0, 1.0}}), 2U);
  EXPECT_EQ(choose_fastest({{2.0, 2.0, 2.0}, {}, {}}), 0U);
  EXPECT_EQ(choose_fastest({{2.0, 2.0, 2.0}, {1.5, 2.5, 3.5}, {1.0, 1.0, 1.0}}), 2U)
      << "its spread does not make a slower one than the default a choice";
  EXPECT_EQ(choose_fastest({{1.0, 9.0, 1.0}, {2.0, 2.0, 0.1}}), 0U) << "one outlier is no gain";
}

/// A round in which everybody who is still in it takes its time.
void round(Race& race, const std::vector<double>& ms) {
  for (std::size_t i = 0; i < ms.size(); ++i)
    if (race.runs(i)) race.add(i, ms[i]);
  race.end_round();
}

std::vector<std::size_t> running(const Race& race) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < race.size(); ++i)
    if (race.runs(i)) list.push_back(i);
  return list;
}

using List = std::vector<std::size_t>;

TEST(Race, TheSlowerHalfLeavesAfterTwoFourEightRounds) {
  Race race(std::vector<bool>(8, true));
  const std::vector<double> ms = {1.7, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6};
  round(race, ms);
  EXPECT_EQ(running(race).size(), 8U) << "one round tells nothing";
  round(race, ms);
  EXPECT_EQ(running(race), (List{0, 1, 2, 3, 4})) << "and the default";
  round(race, ms);
  EXPECT_EQ(running(race).size(), 5U);
  round(race, ms);
  EXPECT_EQ(running(race), (List{0, 1, 2, 3}));
  for (int i = 0; i < 4; ++i) round(race, ms);
  EXPECT_EQ(running(race), (List{0, 1, 2}));
  EXPECT_EQ(race.winner(), 1U);
  EXPECT_EQ(race.leader(), 1U);
  EXPECT_DOUBLE_EQ(race.ms(5), 1.4) << "what left keeps its time";
}

TEST(Race, NobodyLeavesWithinTheNoise) {
  Race race(std::vector<bool>(4, true));
  round(race, {1.0, 1.005, 1.01, 1.015});
  round(race, {1.0, 1.005, 1.01, 1.015});
  EXPECT_EQ(running(race).size(), 4U) << "1.5% after two rounds";
  Race wide(std::vector<bool>(4, true));
  round(wide, {1.0, 1.1, 1.2, 1.3});
  round(wide, {1.2, 1.3, 1.4, 1.5});
  EXPECT_EQ(running(wide).size(), 4U) << "each is as wide as they are apart";
}

TEST(Race, WhatFailedOrLeftNeverWins) {
  Race race({true, false, true, true});
  round(race, {2.0, 0.0, 1.0, 1.5});
  race.drop(2);
  round(race, {2.0, 0.0, 0.0, 1.5});
  EXPECT_EQ(race.winner(), 3U);
  EXPECT_EQ(race.leader(), 3U);
  EXPECT_EQ(race.ms(1), 0);
}

}  // namespace
}  // namespace chainfold::test
