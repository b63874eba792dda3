// The cases of the benchmark, the ways to compute them, and what their results must be.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/bench/papers_cases.hpp"
#include "chainfold/bench/plans_cases.hpp"
#include "chainfold/bench/reference.hpp"
#include "chainfold/bench/suite_reduce.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/text.hpp"

namespace chainfold::bench {
namespace {

TEST(BenchReduceCases, HaveDistinctNamesAndTheSizesOfTheTable) {
  const std::vector<NamedCase> cases = reduce_cases(std::int64_t{1} << 31);
  std::set<std::string> names;
  for (const NamedCase& named : cases) {
    EXPECT_TRUE(names.insert(named.name).second) << named.name;
    EXPECT_LE(named.test.bytes_read(), std::int64_t{1} << 32) << named.name;
  }
  for (const char* type : {"f16", "bf16", "f32", "i32", "i8", "f64"}) {
    for (const char* segment : {"1", "7", "8", "24", "128", "500", "4099", "134217728"})
      EXPECT_TRUE(names.contains(fmt::format("sum/{}/{}", type, segment))) << type << segment;
  }
  for (const char* name :
       {"sum/f16/1", "sum/bf16/134217728", "sum/f16/1337", "sum/i8/777", "sum/f64/whole",
        "sum/f16/whole/65536", "mean_var/f16/64", "dot/f16/1000", "min_max/f16/4096",
        "filtered_sum/f16/64", "axis0/f16/1024", "axis0/f32/4099", "axis0/f16/1048576"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  const auto at = [&](const std::string& name) -> const Case& {
    return std::find_if(cases.begin(), cases.end(), [&](const auto& c) { return c.name == name; })
        ->test;
  };
  EXPECT_EQ(at("sum/f16/64").elements, std::int64_t{1} << 30);
  EXPECT_EQ(at("sum/f16/whole").out, DType::f32);
  EXPECT_EQ(at("sum/i8/64").out, DType::i32);
  EXPECT_EQ(at("sum/i8/64").elements, std::int64_t{1} << 31);
  const Case& odd = at("axis0/f32/4099");
  EXPECT_EQ(odd.op_name(), "sum_axis0");
  EXPECT_EQ(odd.segment, (std::int64_t{1} << 29) / 4099);
  EXPECT_EQ(odd.segments(), 4099);
  EXPECT_EQ(odd.elements, odd.segment * 4099);
}

TEST(BenchPlansCases, JoinTheWaysOfACaseAndTakeAsManyElementsAsFit) {
  std::istringstream list(
      "# a comment\n"
      "sum f16 f32 whole 65536\n"
      "sum f16 f32 whole 65536 parts warps=8 depth=4 parts=264 bytes=16  # and another\n"
      "sum f16 f32 whole 65536 cub\n"
      "\n"
      "inclusive_sum i8 i32 100 0\n"
      "sum f16 f16 columns=1001 0\n"
      "dot f16 f16 64 0\n"
      "dot f16 f32 64 0\n");
  const std::vector<NamedCase> cases = plans_cases(list, 1 << 20, true);
  ASSERT_EQ(cases.size(), 5U);
  EXPECT_EQ(cases[4].test.out, DType::f32);
  EXPECT_EQ(cases[0].test.elements, 65536);
  ASSERT_EQ(cases[0].ways.size(), 3U);
  EXPECT_EQ(cases[0].ways[0].name(), "chainfold chosen");
  EXPECT_EQ(cases[0].ways[1].name(), "chainfold pinned parts warps=8 depth=4 parts=264 bytes=16");
  EXPECT_EQ(cases[0].ways[2].name(), "cub");
  EXPECT_EQ(cases[1].test.elements, (1 << 18) / 100 * 100) << "outputs fit, too";
  EXPECT_EQ(cases[2].test.columns, 1001);
  EXPECT_EQ(cases[2].test.segment, (1 << 19) / 1001);
  EXPECT_EQ(cases[3].test.elements, 1 << 19) << "of each input";
  std::istringstream off_a_line("argmax i8 i64 100 5000+3\nargmax i8 i64 100 5000\n");
  const std::vector<NamedCase> off = plans_cases(off_a_line, 1 << 20, true);
  ASSERT_EQ(off.size(), 2U);
  EXPECT_EQ(off[0].test.offset, 3);
  EXPECT_EQ(off[0].test.elements, 5000);
  EXPECT_EQ(off[1].test.offset, 0);
  std::istringstream of_a_cpu("sum f32 f32 64 0 openmp-simd\ninclusive_sum f32 f32 64 0 std-par\n");
  const std::vector<NamedCase> there = plans_cases(of_a_cpu, 1 << 20, false);
  ASSERT_EQ(there.size(), 2U);
  EXPECT_EQ(there[0].ways.at(0).name(), "openmp-simd");
  EXPECT_EQ(there[1].ways.at(0).name(), "std-par");
}

TEST(BenchPlansCases, SayWhichLineIsWrong) {
  const auto complaint = [](const std::string& line, bool gpu = true) -> std::string {
    std::istringstream list("sum f16 f16 64 0\n" + line + "\n");
    try {
      plans_cases(list, 1 << 20, gpu);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint("sum f16 f16 64").find("line 2 of the list: OP IN OUT"), std::string::npos);
  EXPECT_NE(complaint("summ f16 f16 64 0").find("no op 'summ'"), std::string::npos);
  EXPECT_NE(complaint("sum f17 f16 64 0").find("'f17' is no type"), std::string::npos);
  EXPECT_NE(complaint("max f16 f32 64 0").find("no benchmark of max from f16 to f32"),
            std::string::npos);
  EXPECT_NE(complaint("sum f16 f16 -4 0").find("'-4' is no number of elements of a segment"),
            std::string::npos);
  EXPECT_NE(complaint("sum f16 f16 64 1e6").find("'1e6' is no number"), std::string::npos);
  EXPECT_NE(complaint("sum f16 f16 64 0 rows warp=8").find("line 2 of the list"),
            std::string::npos);
  EXPECT_NE(complaint("sum f16 f16 64 0 cubb").find("line 2 of the list"), std::string::npos);
  for (const char* elsewhere : {"openmp-simd", "std-par"})
    EXPECT_NE(complaint(std::string("sum f16 f16 64 0 ") + elsewhere).find("line 2 of the list"),
              std::string::npos);
  for (const char* elsewhere : {"cub", "std-par"})
    EXPECT_NE(
        complaint(std::string("sum f16 f16 64 0 ") + elsewhere, false).find("line 2 of the list"),
        std::string::npos);
  EXPECT_NE(complaint("inclusive_sum f16 f16 columns=4 0").find("columns are of folds"),
            std::string::npos);
  EXPECT_NE(complaint("sum f16 f16 64 600000").find("more than the 524288 that are kept"),
            std::string::npos);
}

TEST(BenchChecker, FoldsColumnsDownTheRows) {
  constexpr std::int64_t kRows = 7, kColumns = 5;
  const Case test = make_columns_case(Op::sum, DType::f32, DType::f32, 37, kColumns);
  ASSERT_EQ(test.segment, kRows);
  for (std::int64_t c = 0; c < kColumns; ++c) {
    double sum = 0, magnitude = 0;  // exact: integers of 24 bits
    for (std::int64_t r = 0; r < kRows; ++r) {
      const auto k = random_f32(static_cast<std::uint64_t>(r * kColumns + c));
      sum += static_cast<double>(k) * 0x1p-23;
      magnitude += std::fabs(static_cast<double>(k)) * 0x1p-23;
    }
    const auto expected = reference(test, c);
    ASSERT_EQ(expected.size(), 1u);
    EXPECT_EQ(expected[0].value, sum);
    EXPECT_EQ(expected[0].magnitude, magnitude);
  }
}

TEST(BenchScanCases, HaveDistinctNamesAndOutputsAsLargeAsInputs) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 31;
  std::map<std::string, Case> cases;
  for (const NamedCase& named : scan_cases(kBytes)) {
    EXPECT_LE(named.test.bytes_read(), kBytes) << named.name;
    EXPECT_LE(named.test.bytes_written(), kBytes) << named.name;
    EXPECT_EQ(named.test.bytes_written(), named.test.elements * size_of(named.test.out));
    EXPECT_TRUE(cases.insert({named.name, named.test}).second) << named.name;
  }
  EXPECT_EQ(cases.size(), 83u);
  for (const char* name :
       {"scan/f16/16", "scan/f16/777", "scan/f16/4099", "scan/f16/16777216", "scan/bf16/whole",
        "scan/f64/whole", "scan_small/f16/65536", "scan_small/f32/4194304", "scan_max/f16/1024",
        "scan_exclusive/f16/whole", "scan_in_place/f16/1024", "scan_behind/f32/37",
        "scan_both_ways/f16/whole", "recurrence/f32/whole"}) {
    EXPECT_TRUE(cases.contains(name)) << name;
  }
  EXPECT_EQ(cases.at("scan/f16/whole").elements, std::int64_t{1} << 30);
  EXPECT_EQ(cases.at("scan/f16/777").elements % 777, 0);
  EXPECT_EQ(cases.at("scan/i8/whole").elements, std::int64_t{1} << 29);  // as i32 is written
  EXPECT_EQ(cases.at("scan/i8/whole").out, DType::i32);
  EXPECT_EQ(cases.at("scan_in_place/f16/whole").op_name(), "inclusive_sum_in_place");
  EXPECT_EQ(scan_cases(1 << 20).size(), 76u);  // without what is longer than the whole
}

TEST(BenchRaggedCases, HaveSegmentsOfEveryKindOverAllElements) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 20;
  std::map<std::string, Case> cases;
  for (const LazyCase& lazy : ragged_cases(kBytes)) {
    const NamedCase named = lazy.make();
    EXPECT_EQ(named.name, lazy.name);
    EXPECT_TRUE(cases.insert({named.name, named.test}).second) << named.name;
  }
  EXPECT_EQ(cases.size(), 3u * 13 + 3 + 6);
  for (const auto& [name, test] : cases) {
    SCOPED_TRACE(name);
    const std::vector<std::int64_t>& offsets = test.ragged->offsets;
    EXPECT_EQ(test.elements * size_of(test.in), kBytes);
    EXPECT_EQ(offsets.front(), 0);
    EXPECT_EQ(offsets.back(), test.elements);
    EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
    EXPECT_EQ(test.bytes_read(), kBytes + test.ragged->bytes());
    for (std::size_t s = 0; s < test.ragged->flags.size(); ++s) {
      const bool begins =
          std::binary_search(offsets.begin(), offsets.end() - 1, static_cast<std::int64_t>(s));
      ASSERT_EQ(test.ragged->flags[s] != 0, begins) << s;
    }
    for (const std::int64_t element : {std::int64_t{0}, test.elements / 3, test.elements - 1}) {
      const Elements around = test.segment_around(element);
      EXPECT_LE(around.first, element);
      EXPECT_GT(around.first + around.count, element);
    }
  }
  const auto longest = [&](const char* name) {
    const Case& test = cases.at(name);
    std::int64_t most = 0;
    for (std::int64_t s = 0; s < test.segments(); ++s)
      most = std::max(most, test.elements_of(s).count);
    return most;
  };
  EXPECT_EQ(longest("ragged/constant/f32/64"), 64);
  EXPECT_EQ(longest("ragged/0_to_10/f32"), 10);
  EXPECT_EQ(longest("ragged/giant/f32"), cases.at("ragged/giant/f32").elements / 4 * 3);
  EXPECT_EQ(longest("ragged/all_but_one_empty/f32"), cases.at("ragged/giant/f32").elements);
  EXPECT_EQ(cases.at("ragged/all_but_one_empty/f32").segments(), 1'000'000);
  EXPECT_EQ(cases.at("heads/geometric/f32/16").op_name(), "sum_heads_geometric");
  const double mean = static_cast<double>(cases.at("ragged/geometric/f32/8").elements) /
                      static_cast<double>(cases.at("ragged/geometric/f32/8").segments());
  EXPECT_NEAR(mean, 8, 0.2);
  for (const int power : {21, 23, 25, 27}) {  // wherever an eighth of all is
    for (const LazyCase& lazy : ragged_cases(std::int64_t{1} << power)) {
      if (lazy.name != "ragged/giant/f32") continue;
      const NamedCase named = lazy.make();
      EXPECT_EQ(named.test.ragged->longest(), named.test.elements / 4 * 3);
    }
  }
}

/// Sums of segments that are empty, and running sums that begin anew.
TEST(BenchReference, OfRaggedSegmentsIsALoop) {
  auto segments = std::make_shared<RaggedSegments>();
  segments->lengths = "some";
  segments->offsets = {0, 3, 3, 4, 90, 100};
  const auto value = [](std::int64_t i) {
    return static_cast<double>(random_f32(static_cast<std::uint64_t>(i))) *
           std::ldexp(1.0, -scale_of(Source::f32));
  };
  const Case sums = make_ragged_case(Op::sum, DType::f32, DType::f32, segments);
  for (std::int64_t s = 0; s < 5; ++s) {
    double sum = 0;
    for (std::int64_t i = segments->offsets[static_cast<std::size_t>(s)];
         i < segments->offsets[static_cast<std::size_t>(s) + 1]; ++i)
      sum += value(i);
    EXPECT_EQ(reference(sums, s)[0].value, sum) << s;
  }
  const Case scans = make_ragged_case(Op::inclusive_sum, DType::f32, DType::f32, segments);
  double running = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    running = (scans.segment_around(i).first == i ? 0 : running) + value(i);
    EXPECT_EQ(reference(scans, i)[0].value, running) << i;
  }
}

TEST(BenchFoldsCases, HaveEveryFoldOfEveryTypeOnAndOffALine) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 29;
  std::map<std::string, Case> cases;
  for (const NamedCase& named : folds_cases(kBytes)) {
    EXPECT_LE(named.test.bytes_read(), kBytes) << named.name;
    EXPECT_TRUE(cases.insert({named.name, named.test}).second) << named.name;
  }
  EXPECT_EQ(cases.size(), 2u * 6 * (9 * 6 + 4));
  for (const char* type : {"f16", "bf16", "f32", "f64", "i8", "i32"}) {
    for (const char* op : {"argmax", "max", "count_above", "any", "variance", "sum_abs", "min_max",
                           "inclusive_max", "inclusive_argmax"}) {
      for (const char* segment : {"7", "64", "1000", "4099", "65536", "whole"}) {
        const std::string name = fmt::format("{}/{}/{}", op, type, segment);
        ASSERT_TRUE(cases.contains(name)) << name;
        ASSERT_TRUE(cases.contains(name + "/off")) << name;
        EXPECT_EQ(cases.at(name).offset, 0);
        EXPECT_EQ(cases.at(name + "/off").offset, 1);
      }
    }
  }
  EXPECT_FALSE(cases.contains("logsumexp/i8/7"));
  EXPECT_EQ(cases.at("argmax/i8/whole").elements, kBytes);
  EXPECT_EQ(cases.at("argmax/i8/7").out, DType::i64);
  EXPECT_EQ(cases.at("inclusive_argmax/i8/whole").elements, kBytes / 8);  // as i64 is written
}

TEST(BenchReference, FoldsOfEveryTypeAreLoops) {
  constexpr std::int64_t kElements = 6000, kSegment = 100;
  for (const std::int64_t offset : {0, 3}) {
    const auto test_of = [&](Op op, DType type) {
      Case test = make_case(op, type, kElements, kSegment);
      test.offset = offset;
      return test;
    };
    const auto at = [&](std::int64_t i) {
      return random_i8(static_cast<std::uint64_t>(i + offset));
    };
    const std::vector<std::int64_t> indices = {0, 7, 59};
    const auto argmax = references(test_of(Op::argmax, DType::i8), indices);
    const auto any = references(test_of(Op::any, DType::i8), indices);
    const auto count = references(test_of(Op::count_above, DType::i8), indices);
    const auto absolute = references(test_of(Op::sum_abs, DType::i8), indices);
    const auto variance = references(test_of(Op::variance, DType::i8), indices);
    for (std::size_t k = 0; k < indices.size(); ++k) {
      std::int64_t place = 0, above = 0, magnitude = 0, sum = 0, squares = 0;
      for (std::int64_t i = 0; i < kSegment; ++i) {
        const std::int64_t x = at(indices[k] * kSegment + i);
        if (x > at(indices[k] * kSegment + place)) place = i;
        above += x > 0 ? 1 : 0;
        magnitude += std::abs(x);
        sum += x;
        squares += x * x;
      }
      const double mean = static_cast<double>(sum) / kSegment;
      EXPECT_EQ(argmax[k][0].value, static_cast<double>(place));
      EXPECT_EQ(any[k][0].value, above > 0 ? 1 : 0);
      EXPECT_EQ(count[k][0].value, static_cast<double>(above));
      EXPECT_EQ(absolute[k][0].value, static_cast<double>(magnitude));
      EXPECT_NEAR(variance[k][0].value, static_cast<double>(squares) / kSegment - mean * mean,
                  1e-9);
    }
    const std::vector<std::int64_t> elements = {0, 1, 50, 99, 100, 5999};
    const auto running = references(test_of(Op::inclusive_argmax, DType::i8), elements);
    for (std::size_t k = 0; k < elements.size(); ++k) {
      const std::int64_t begin = elements[k] / kSegment * kSegment;
      std::int64_t place = begin;
      for (std::int64_t i = begin; i <= elements[k]; ++i) place = at(i) > at(place) ? i : place;
      EXPECT_EQ(running[k][0].value, static_cast<double>(place - begin)) << elements[k];
    }
    const auto logs = references(test_of(Op::logsumexp, DType::f32), {3});
    double exponentials = 0;
    for (std::int64_t i = 300; i < 400; ++i) {
      const auto x = random_f32(static_cast<std::uint64_t>(i + offset));
      exponentials += std::exp(static_cast<double>(x) * 0x1p-23);
    }
    EXPECT_NEAR(logs[0][0].value, std::log(exponentials), 1e-12);
  }
}

TEST(BenchReference, RecurrencesAreALoop) {
  const Case test = make_case(Op::decay, DType::f32, DType::f32, 9000, 3000);
  std::vector<std::int64_t> all;
  std::vector<double> y, magnitude;
  for (std::int64_t i = 0; i < test.elements; ++i) {
    const auto x = static_cast<double>(random_f32(static_cast<std::uint64_t>(i)));
    const bool begins = i % 3000 == 0;
    y.push_back((begins ? 0 : kDecay * y.back()) + x);
    magnitude.push_back((begins ? 0 : kDecay * magnitude.back()) + std::fabs(x));
    all.push_back(i);
  }
  const auto expected = references(test, all);
  const double unit = expected[0][0].magnitude / magnitude[0];  // what the source scales by
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(expected[i][0].value, y[i] * unit, 1e-12 * magnitude[i] * unit) << i;
    EXPECT_NEAR(expected[i][0].magnitude, magnitude[i] * unit, 1e-12 * magnitude[i] * unit) << i;
  }
}

/// A run that its budget ends has measured what comes first.
TEST(BenchCases, WhatTellsMostComesFirst) {
  const auto expect_in_order = [](const std::vector<NamedCase>& cases,
                                  const std::vector<std::string>& names) {
    std::size_t last = 0;
    for (const std::string& name : names) {
      const auto at = std::find_if(cases.begin(), cases.end(),
                                   [&](const NamedCase& named) { return named.name == name; });
      ASSERT_NE(at, cases.end()) << name;
      const auto index = static_cast<std::size_t>(at - cases.begin());
      EXPECT_LE(last, index) << name;
      last = index;
    }
  };
  constexpr std::int64_t kBytes = std::int64_t{1} << 31;
  expect_in_order(
      reduce_cases(kBytes),
      {"sum/f16/8", "sum/f16/16", "sum/f16/32", "sum/f16/64", "sum/f16/134217728", "sum/f16/24",
       "sum/f16/4099", "sum/f16/1", "sum/f16/whole", "sum/bf16/8", "sum/bf16/4099",
       "sum/f16/whole/65536", "sum/f32/8", "sum/i8/1337", "axis0/f16/1000"});
  expect_in_order(scan_cases(kBytes),
                  {"scan/f16/16", "scan/f16/1024", "scan/f16/24", "scan/f16/4096",
                   "scan/f16/16777216", "scan/f16/whole", "scan/bf16/whole", "scan/f32/whole",
                   "scan/i32/whole", "scan/i8/whole", "scan/f64/whole", "scan_small/f16/65536",
                   "scan_small/f32/4194304", "scan/f16/777", "scan_exclusive/f16/1024"});
}

TEST(BenchScanCases, HaveRowsWhereACopyHasRatioOne) {
  const Case test = make_case(Op::inclusive_sum, DType::f16, DType::f16, 1 << 20, 64);
  const Ceilings ceilings(std::int64_t{1} << 21, 1, 2);  // 2 MiB read in 1 ms, copied in 2 ms
  const Row row = make_row(test, "chainfold", 2, 9, ceilings);
  EXPECT_EQ(row.op, "inclusive_sum");
  EXPECT_DOUBLE_EQ(row.ratio.value(), 1);
  EXPECT_DOUBLE_EQ(row.gbps.value(), 4 * 0x1p20 / 2e-3 * 1e-9);
}

TEST(BenchOurPlans, ForceEachStrategyOfTheSpaceOnce) {
  const Case test = make_case(Op::sum, DType::f16, DType::f16, 1 << 24, 65536);
  const Target sm90 = target("sm_90");
  std::set<std::string> strategies;
  codegen::PlanRequest request{.segment = test.segment};
  for (const Accuracy accuracy : {Accuracy::accurate, Accuracy::as_published}) {
    request.accuracy = accuracy;
    for (const auto& choice : codegen::plan_space(test.computation.graph(), sm90, request)) {
      const std::string text = codegen::to_text(choice);
      strategies.insert(text.substr(0, text.find(' ')));
    }
  }
  EXPECT_TRUE(strategies.contains("coalesced16n")) << "as published alone";
  ASSERT_GE(strategies.size(), 2u);
  const std::vector<Way> ways = OurPlans(sm90, true).ways(test);
  ASSERT_EQ(ways.size(), 2 + strategies.size() - 1);
  EXPECT_EQ(ways[0].name(), "chainfold chosen");
  EXPECT_EQ(ways[1].name(), "chainfold tuned");
  std::set<std::string> forced;
  for (std::size_t i = 2; i < ways.size(); ++i) {
    EXPECT_EQ(ways[i].kind, "forced");
    EXPECT_TRUE(strategies.contains(ways[i].strategy)) << ways[i].strategy;
    EXPECT_TRUE(forced.insert(ways[i].strategy).second) << ways[i].strategy;
  }
}

TEST(BenchOurPlans, EveryStrategyRunsInSomeRowOfTheSuites) {
  const Target sm90 = target("sm_90");
  std::set<std::string_view> missing;
  for (const std::string_view name : codegen::strategy_names()) missing.insert(name);
  ASSERT_GE(missing.size(), 15u);
  std::vector<NamedCase> cases = reduce_cases(std::int64_t{1} << 31);
  for (NamedCase& named : scan_cases(std::int64_t{1} << 31)) cases.push_back(std::move(named));
  for (const LazyCase& lazy : ragged_cases(std::int64_t{1} << 16)) cases.push_back(lazy.make());
  for (const NamedCase& named : cases) {
    const auto chosen = codegen::plan_space(named.test.computation.graph(), sm90,
                                            {.segment = named.test.plan_size()});
    const std::string text = codegen::to_text(chosen.front());
    missing.erase(text.substr(0, text.find(' ')));
    for (const Way& way : OurPlans(sm90, false).ways(named.test)) missing.erase(way.strategy);
  }
  // The papers' scans have no place in a plan that may not assume finite data.
  for (const NamedCase& named : papers_cases(std::int64_t{1} << 31, sm90))
    for (const Way& way : named.ways)
      missing.erase(std::string_view(way.strategy).substr(0, way.strategy.find(' ')));
  EXPECT_TRUE(missing.empty()) << *missing.begin() << " runs in no row";
}

TEST(BenchPapers, VaryWhatThePapersVary) {
  const std::vector<NamedCase> cases = papers_cases(std::int64_t{1} << 31, target("sm_90"));
  std::set<std::string> names, strategies;
  for (const NamedCase& named : cases) {
    EXPECT_TRUE(names.insert(named.name).second) << named.name;
    std::set<std::string> ways;
    for (const Way& way : named.ways) {
      EXPECT_TRUE(ways.insert(way.name()).second) << named.name << ' ' << way.name();
      strategies.insert(way.strategy.substr(0, way.strategy.find(' ')));
    }
    // Six sizes of blocks by eight lengths of chains.
    const std::map<std::string, std::size_t> counts = {
        {"recurrence", 48}, {"single_pass", 48}, {"split", 9}, {"variants", 7}};
    if (const auto count = counts.find(named.experiment); count != counts.end()) {
      EXPECT_EQ(ways.size(), count->second) << named.name;
    }
  }
  for (const char* name :
       {"recurrence/2^20", "single_pass/2^26", "split/2^26", "variants/normal/2^30",
        "variants/uniform/2^16", "segments/16", "segments/2^30", "scan_segments/16",
        "scan_segments/2^30", "scan_variants/normal/2^16/segment", "scan_variants/uniform/2^30"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  for (const std::string_view name : codegen::strategy_names()) {
    const codegen::Strategy strategy = codegen::parse_choice(name).strategy;
    if (strategy == codegen::Strategy::padded) continue;  // the suite `ragged` has it
    if (codegen::is_published(strategy) || codegen::is_published_scan(strategy)) {
      EXPECT_TRUE(strategies.contains(std::string(name))) << name;
    }
  }
  for (const char* name : {"rows", "staged", "columns", "look_ahead", "propagate"})
    EXPECT_FALSE(strategies.contains(name)) << name;
}

/// A pinned plan is found in a file again by the text that its kernel tells, and its results are
/// held against a bound, for which it must be legal as it is compiled.
TEST(BenchPapers, PinPlansThatAreWhatTheyAreCalled) {
  const Target sm90 = target("sm_90");
  std::size_t finite = 0;
  for (const NamedCase& named : papers_cases(std::int64_t{1} << 31, sm90)) {
    for (const Way& way : named.ways) {
      if (way.kind != "pinned") continue;
      finite += way.finite ? 1 : 0;
      const codegen::PlanChoice choice = codegen::parse_choice(way.strategy);
      EXPECT_EQ(codegen::to_text(choice), way.strategy);
      EXPECT_EQ(way.finite, codegen::is_published_scan(choice.strategy)) << way.strategy;
    }
  }
  EXPECT_GE(finite, 80u);
}

/// No f16 holds the sum of 2^30 elements.
TEST(BenchPapers, TheLongestSegmentIsASumOfEverything) {
  std::size_t longest = 0;
  for (const NamedCase& named : papers_cases(std::int64_t{1} << 31, target("sm_90"))) {
    if (named.experiment != "segments") continue;
    const bool all = named.name == "segments/2^30";
    EXPECT_EQ(named.test.segment == 0, all) << named.name;
    EXPECT_EQ(named.test.out, all ? DType::f32 : DType::f16) << named.name;
    if (!all) continue;
    ++longest;
    std::set<std::string> ways;
    for (const Way& way : named.ways) ways.insert(way.name());
    EXPECT_EQ(ways, (std::set<std::string>{"chainfold chosen", "cub"}));
  }
  EXPECT_EQ(longest, 1u);
}

TEST(BenchPapers, ScansAreOfWhatTheirOutputsHold) {
  for (const NamedCase& named : papers_cases(std::int64_t{1} << 31, target("sm_90"))) {
    const Case& test = named.test;
    if (!is_scan(test.op)) continue;
    EXPECT_EQ(test.out == DType::f16, test.source == Source::balanced) << named.name;
    EXPECT_EQ(test.out == DType::f16, named.experiment == "scan_segments") << named.name;
    // A warp that goes through a long segment alone takes its time.
    for (const Way& way : named.ways) {
      const bool alone =
          way.strategy.starts_with("scan16n") || way.strategy.starts_with("scan256n");
      EXPECT_LE(alone ? test.segment : 0, 1 << 20) << named.name << ' ' << way.name();
    }
  }
}

TEST(BenchPapers, AreOurOwnPlanAndAPeerOnACpu) {
  Target cpu = target("sm_90");
  cpu.has_mma = false;
  cpu.max_warps = 1;
  const std::map<std::string, std::string> peers = {
      {"variants", "openmp-simd"}, {"scan_variants", ""}, {"scan_segments", "std-par"}};
  std::set<std::string> seen;
  for (const NamedCase& named : papers_cases(std::int64_t{1} << 22, cpu)) {
    seen.insert(named.experiment);
    const std::string& peer = peers.at(named.experiment);
    ASSERT_EQ(named.ways.size(), peer.empty() ? 1u : 2u) << named.name;
    EXPECT_EQ(named.ways.front().name(), "chainfold chosen");
    if (!peer.empty()) {
      EXPECT_EQ(named.ways.back().name(), peer);
    }
  }
  EXPECT_EQ(seen.size(), peers.size());
}

TEST(BenchOurPlans, MeasureContainmentWhereTensorCoresAreAndSegmentsShort) {
  const auto finite = [](const Target& where, const Case& test) {
    const std::vector<Way> ways = OurPlans(where, false).ways(test);
    return std::count_if(ways.begin(), ways.end(),
                         [](const Way& way) { return way.impl == kFiniteImpl; });
  };
  const auto sum = [](DType type, std::int64_t segment) {
    return make_case(Op::sum, type, type, 1 << 20, segment);
  };
  const Target sm90 = target("sm_90");
  EXPECT_EQ(finite(sm90, sum(DType::f16, 8)), 1);
  EXPECT_EQ(finite(sm90, sum(DType::bf16, 256)), 1);
  EXPECT_EQ(finite(sm90, sum(DType::f16, 4096)), 0);
  EXPECT_EQ(finite(sm90, sum(DType::f32, 8)), 0);
}

TEST(BenchChecker, KnowsPrefixesAsAPlainLoopDoes) {
  for (const Op op : {Op::inclusive_sum, Op::exclusive_sum, Op::inclusive_max, Op::sum_behind,
                      Op::sum_both_ways}) {
    for (const std::int64_t segment : {100, 0}) {
      const Case test = make_case(op, DType::f16, DType::f16, 5000, segment);
      const Checker checker(test);
      const std::set<std::int64_t> sample(checker.sample().begin(), checker.sample().end());
      EXPECT_TRUE(sample.contains(0) && sample.contains(4999));
      EXPECT_TRUE(segment > 0 || (sample.contains(1023) && sample.contains(1024)));
      const auto all = references(test, checker.sample());
      double sum = 0, magnitude = 0, largest = 0;
      std::size_t at = 0;
      for (std::int64_t i = 0; i < test.elements; ++i) {
        if (i % (segment > 0 ? segment : test.elements) == 0) sum = magnitude = 0, largest = -1e9;
        const double x =
            static_cast<double>(random_balanced(static_cast<std::uint64_t>(i))) * 0x1p-14;
        const double before = sum, magnitude_before = magnitude;
        sum += x;
        magnitude += std::fabs(x);
        largest = std::max(largest, x);
        if (!sample.contains(i)) continue;
        const Expected& expected = all[at][0];
        EXPECT_EQ(checker.sample()[at++], i);
        if (op == Op::inclusive_max) {
          EXPECT_EQ(expected.value, largest) << i;
        } else if (knows_all(op)) {
          const std::int64_t length = segment > 0 ? segment : test.elements;
          double all = 0, magnitude_all = 0;
          for (std::int64_t k = i / length * length; k < (i / length + 1) * length; ++k) {
            const double y =
                static_cast<double>(random_balanced(static_cast<std::uint64_t>(k))) * 0x1p-14;
            all += y;
            magnitude_all += std::fabs(y);
          }
          const bool behind = op == Op::sum_behind;
          EXPECT_EQ(expected.value, behind ? sum - all : all) << i;
          EXPECT_EQ(expected.magnitude, magnitude_all + (behind ? magnitude : 0)) << i;
        } else {
          const bool inclusive = op == Op::inclusive_sum;
          EXPECT_EQ(expected.value, inclusive ? sum : before) << i;
          EXPECT_EQ(expected.magnitude, inclusive ? magnitude : magnitude_before) << i;
        }
        EXPECT_EQ(expected.value, reference(test, i)[0].value);
      }
      EXPECT_EQ(at, all.size());
    }
  }
}

TEST(BenchChecker, PrefixesOfManyElementsAreThoseOfTheirParts) {
  const Case test = make_case(Op::inclusive_sum, DType::i32, DType::i32, 1 << 20, 0);
  std::uint32_t sum = 0;  // gaps long enough for several threads
  for (std::uint64_t i = 0; i < 1 << 20; ++i) sum += static_cast<std::uint32_t>(random_i32(i));
  const auto last = references(test, {10, (1 << 20) - 1});
  EXPECT_EQ(last[1][0].value, static_cast<double>(static_cast<std::int32_t>(sum)));
}

TEST(BenchChecker, FindsAPrefixWithoutItsCarry) {
  const Case test = make_case(Op::inclusive_sum, DType::f32, DType::f32, 1 << 16, 0);
  const auto carry = reference(test, 4095)[0].value;
  const auto values = [&](bool lost) {
    return [&test, lost, carry](std::int64_t element) {
      const double exact = reference(test, element)[0].value;
      const auto value = static_cast<float>(lost && element == 4096 ? exact - carry : exact);
      std::vector<std::byte> bytes(sizeof(value));
      std::memcpy(bytes.data(), &value, sizeof(value));
      return std::vector<std::vector<std::byte>>{bytes};
    };
  };
  const Checker checker(test);
  EXPECT_LE(checker.check(values(false), peer_scan_bound_u(test, 1)).units, 1);
  EXPECT_THROW((void)checker.check(values(true), peer_scan_bound_u(test, 1)), WrongResult);
}

/// Hands out bytes of values that are as far off as wanted.
ValuesOf values_with(const Case& test, double off) {
  return [&test, off](std::int64_t segment) {
    const auto expected = reference(test, segment);
    const auto value = static_cast<float>(expected[0].value + off * expected[0].magnitude);
    std::vector<std::byte> bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    return std::vector<std::vector<std::byte>>{bytes};
  };
}

TEST(BenchChecker, TakesWhatTheBoundAllowsAndNoMore) {
  const Case test = make_case(Op::sum, DType::f32, DType::f32, 64000, 64);
  const Checker checker(test);
  EXPECT_EQ(checker.sample().front(), 0);
  EXPECT_EQ(checker.sample().back(), 999);
  EXPECT_LE(checker.check(values_with(test, 0), 8).units, 1);
  EXPECT_NEAR(checker.check(values_with(test, 8 * 0x1p-24), 8).units, 8, 1);
  EXPECT_THROW((void)checker.check(values_with(test, 16 * 0x1p-24), 8), WrongResult);
  EXPECT_THROW((void)checker.check(values_with(test, std::nan("")), 8), WrongResult);
  EXPECT_FALSE(checker.check(values_with(test, 0), 8, true).overflow);
  EXPECT_TRUE(checker.check(values_with(test, std::nan("")), 8, true).overflow);
}

/// Mean and variance of a source's first numbers; each must be an f16.
std::pair<double, double> moments(Source source) {
  constexpr int kCount = 1 << 16;
  double sum = 0, squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const auto k = static_cast<float>(value_of(source, static_cast<std::uint64_t>(i)));
    const float value = std::ldexp(k, -scale_of(source));
    EXPECT_EQ(static_cast<float>(f16(value)), value);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kCount;
  return {mean, squares / kCount - mean * mean};
}

TEST(BenchData, HasTheDistributionsOfThePapers) {
  const auto [mean, variance] = moments(Source::normal);  // standard errors: 0.004 and 0.006
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(variance, 1, 0.03);
  const auto [centre, width] = moments(Source::balanced);
  EXPECT_NEAR(centre, 0, 0.006);  // the standard error is 0.0012
  EXPECT_NEAR(width, 0.11, 0.01);
  const auto [middle, spread] = moments(Source::uniform);  // 0.001 and 0.0003
  EXPECT_NEAR(middle, 0.5, 0.005);
  EXPECT_NEAR(spread, 1.0 / 12, 0.0015);
}

}  // namespace
}  // namespace chainfold::bench
