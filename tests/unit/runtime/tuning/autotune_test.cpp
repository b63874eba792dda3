// The tuner: what it chooses from timings, what it refuses, and that its choice is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <iterator>
#include <limits>
#include <random>
#include <thread>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/cache/disk_cache.hpp"
#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/runtime/tuning/autotune.hpp"
#include "chainfold/runtime/tuning/bench.hpp"
#include "chainfold/tests/support/expect_error.hpp"

namespace chainfold::test {
namespace {

auto sum_of(std::int64_t segment) { return over(segments(segment), sum(input<float>("x"))); }

/// Elements to tune with, of this run alone: records of earlier runs are for other tasks.
const std::int64_t kElements = 200000 + std::random_device{}() % 1'000'000;

class TuningOnCpu : public testing::Test {
 protected:
  void SetUp() override {
    try {
      runtime::cpu_plugin();
    } catch (const DeviceError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  static Options options(Tuning tuning) {
    return {.target = target("cpu"),
            .tuning = tuning,
            .tuning_elements = kElements,
            .tuning_seconds = 0};
  }
};

TEST_F(TuningOnCpu, MeasuresOnceAndThenKnows) {
  const auto computation = sum_of(52);  // a size of this test alone: records live in the process
  EXPECT_FALSE(compile(computation, options(Tuning::cached)).tuning()) << "nothing is known yet";
  std::vector<std::string> stages;
  Options measuring = options(Tuning::measure);
  const auto caller = std::this_thread::get_id();
  TuningProgress last;
  measuring.on_tuning = [&](const TuningProgress& progress) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_GE(progress.done, 1);
    EXPECT_LE(progress.done, progress.total);
    EXPECT_GE(progress.seconds, last.seconds);
    EXPECT_EQ(progress.what, "over(segments(52), sum(x))");
    EXPECT_EQ(progress.best_ms > 0, progress.stage != "compiling");
    if (stages.empty() || stages.back() != progress.stage) {
      stages.emplace_back(progress.stage);
    } else {
      EXPECT_GT(progress.done, last.done);
      EXPECT_EQ(progress.total, last.total);
    }
    last = progress;
  };
  const Kernel first = compile(computation, measuring);
  const auto tuning = first.tuning();
  ASSERT_TRUE(tuning);
  EXPECT_TRUE(tuning->measured);
  EXPECT_EQ(stages, (std::vector<std::string>{"compiling", "timing", "tuned"}));
  EXPECT_EQ(last.best_ms, tuning->ms);
  EXPECT_TRUE(tuning->complete);
  EXPECT_GE(tuning->seconds, last.seconds * 0.5);
  ASSERT_GE(tuning->candidates.size(), 3U);
  for (const auto& candidate : tuning->candidates) {
    EXPECT_EQ(candidate.problem + candidate.skipped, "") << candidate.plan;
    EXPECT_GT(candidate.ms, 0) << candidate.plan;
  }
  EXPECT_EQ(tuning->elements, kElements / 52 * 52);
  EXPECT_LE(tuning->ms, tuning->default_ms * 1.0001);
  EXPECT_EQ(first.plan(), tuning->plan);

  for (const Tuning mode : {Tuning::measure, Tuning::cached}) {
    const Kernel again = compile(computation, options(mode));
    ASSERT_TRUE(again.tuning());
    EXPECT_FALSE(again.tuning()->measured);
    EXPECT_EQ(again.tuning()->date, tuning->date);
    EXPECT_EQ(again.plan(), first.plan());
  }
  EXPECT_FALSE(compile(computation, options(Tuning::off)).tuning());
  Options other = options(Tuning::cached);
  other.tuning_elements = kElements / 2;
  EXPECT_FALSE(compile(computation, other).tuning()) << "measured for another amount of data";
}

/// Columns have plans of their own, and inputs with gaps are a task of their own.
TEST_F(TuningOnCpu, MeasuresColumnsAndRowsWithGaps) {
  const std::vector<float> data(67 * 20, 1.0F);
  const Computation both = over(columns(67), sum(input<float>("x")), max(input<float>("x")));
  const Kernel kernel = compile(both, options(Tuning::measure));
  // Small matrices have plans of their own, which more elements are not tuned for.
  const std::int64_t elements = std::min(
      kElements, codegen::size_class_of(both.graph(), kernel.target(), 67, std::ssize(data)));
  for (const std::int64_t stride : {67, 134}) {
    const auto [sums, most] = kernel.run<float, float>({Binding("x", data).stride(stride)});
    EXPECT_EQ(sums, std::vector<float>(67, stride == 67 ? 20.0F : 10.0F));
    EXPECT_EQ(most, std::vector<float>(67, 1.0F));
    const auto tuning = kernel.tuning();
    ASSERT_TRUE(tuning);
    EXPECT_TRUE(tuning->measured);
    EXPECT_EQ(tuning->elements, (stride == 67 ? elements : kElements) / 67 * 67);
    ASSERT_GE(tuning->candidates.size(), 6U);
    for (const auto& candidate : tuning->candidates) {
      EXPECT_EQ(candidate.problem, "") << candidate.plan;
      EXPECT_TRUE(candidate.plan.starts_with("columns ")) << candidate.plan;
    }
  }
  const Kernel rows = compile(over(segments(67), sum(input<float>("x"))), options(Tuning::measure));
  EXPECT_EQ(std::get<0>(rows.run<float>({Binding("x", data).stride(134)})),
            std::vector<float>(10, 67.0F));
  const auto tuned = rows.tuning();
  ASSERT_TRUE(tuned);
  for (const auto& candidate : tuned->candidates)
    EXPECT_EQ(candidate.problem, "") << candidate.plan;
}

TEST_F(TuningOnCpu, ARecordOnDiskServesOtherProcesses) {
  if (runtime::CacheSettings::of_process().off) GTEST_SKIP() << "CHAINFOLD_CACHE is off";
  const auto computation = sum_of(54);
  const runtime::TuningTask task{.graph = &computation.graph(),
                                 .target = target("cpu"),
                                 .device = -1,
                                 .request = {.segment = 54, .base_alignment = 16},
                                 .elements = kElements,
                                 .on_progress = {}};
  // As another process would have left it.
  const std::string plan = "rows warps=1 depth=4 rows=2 bytes=0 simt";
  const auto leave = [&](const std::string& text) {
    runtime::DiskCache::of_process().store(runtime::kTuningKind, runtime::tuning_key(task), text);
  };
  leave("{\"plan\": 7}");
  EXPECT_FALSE(compile(computation, options(Tuning::cached)).tuning()) << "a record that is none";
  const auto other = sum_of(56);
  const runtime::TuningTask second{.graph = &other.graph(),
                                   .target = target("cpu"),
                                   .device = -1,
                                   .request = {.segment = 56, .base_alignment = 16},
                                   .elements = kElements,
                                   .on_progress = {}};
  runtime::DiskCache::of_process().store(
      runtime::kTuningKind, runtime::tuning_key(second),
      R"({"plan": ")" + plan +
          R"(", "ms": 1.5, "default_ms": 2, "elements": 199976, "device": "d", "date": "t", "candidates": []})");
  const Kernel kernel = compile(other, options(Tuning::measure));
  ASSERT_TRUE(kernel.tuning());
  EXPECT_FALSE(kernel.tuning()->measured);
  EXPECT_EQ(kernel.plan(), plan);
  EXPECT_EQ(kernel.tuning()->default_ms, 2);
}

TEST_F(TuningOnCpu, ATuningUnderWayIsJoined) {
  const auto computation = sum_of(53);
  std::atomic<int> measured{0};
  std::vector<std::string> plans(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& plan : plans) {
      threads.emplace_back([&] {
        const Kernel kernel = compile(computation, options(Tuning::measure));
        measured += kernel.tuning()->measured ? 1 : 0;
        plan = kernel.plan();
      });
    }
  }
  EXPECT_EQ(measured, 1);
  for (const std::string& plan : plans) EXPECT_EQ(plan, plans[0]);
}

TEST_F(TuningOnCpu, APinnedPlanIsTakenOrRefused) {
  Options pinned = options(Tuning::measure);
  pinned.plan = "rows warps=1 depth=2 rows=2 bytes=0 simt";
  const Kernel kernel = compile(sum_of(64), pinned);
  EXPECT_EQ(kernel.plan(), pinned.plan);
  EXPECT_FALSE(kernel.tuning()) << "a pinned plan is not measured";
  std::vector<float> data(64 * 5);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 7) - 3;
  const auto [sums] = kernel.run<float>({{"x", data}});
  for (std::size_t s = 0; s < sums.size(); ++s) {
    float expected = 0;
    for (std::size_t i = s * 64; i < s * 64 + 64; ++i) expected += data[i];
    EXPECT_EQ(sums[s], expected) << s;
  }
  expect_error<UserError>([&] { compile(over(whole(), sum(input<float>("x"))), pinned); },
                          ErrorCode::unsupported, "plan", {"not legal", "the whole input"});
  pinned.plan = "fastest";
  expect_error<UserError>([&] { compile(sum_of(64), pinned); }, ErrorCode::invalid_argument, "plan",
                          {"'fastest' is no strategy"});
  Options negative = options(Tuning::measure);
  negative.tuning_elements = -1;
  expect_error<UserError>([&] { compile(sum_of(64), negative); }, ErrorCode::invalid_argument,
                          "tuning_elements", {"at least one"});
  negative = options(Tuning::measure);
  for (const double seconds : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    negative.tuning_seconds = seconds;
    expect_error<UserError>([&] { compile(sum_of(64), negative); }, ErrorCode::invalid_argument,
                            "tuning_seconds", {"0 for as long as"});
  }
}

TEST_F(TuningOnCpu, ARecordOfAPlanThatIsNotLegalIsMeasuredAnew) {
  const auto computation = sum_of(57);
  const runtime::TuningTask task{.graph = &computation.graph(),
                                 .target = target("cpu"),
                                 .device = -1,
                                 .request = {.segment = 57, .base_alignment = 16},
                                 .elements = kElements,
                                 .on_progress = {}};
  runtime::DiskCache::of_process().store(
      runtime::kTuningKind, runtime::tuning_key(task),
      R"({"plan": "rows warps=8 depth=1 rows=4 bytes=16 mma", "ms": 1, "default_ms": 2,)"
      R"( "elements": 1, "device": "d", "date": "t", "candidates": []})");
  EXPECT_FALSE(compile(computation, options(Tuning::cached)).tuning());
  const Kernel kernel = compile(computation, options(Tuning::measure));
  ASSERT_TRUE(kernel.tuning());
  EXPECT_TRUE(kernel.tuning()->measured);
}

TEST_F(TuningOnCpu, ACallersExceptionEndsItsOwnTuningAlone) {
  const auto computation = sum_of(58);
  Options cancelled = options(Tuning::measure);
  cancelled.on_tuning = [](const TuningProgress&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(compile(computation, cancelled), std::runtime_error);
  EXPECT_TRUE(compile(computation, options(Tuning::measure)).tuning()->measured);
}

/// Without any time the default is measured all the same, and who has more measures again.
TEST_F(TuningOnCpu, TheTimeIsKeptAndTheDefaultIsMeasured) {
  const auto computation = sum_of(59);
  Options hurried = options(Tuning::measure);
  hurried.tuning_seconds = 1e-9;
  const Kernel first = compile(computation, hurried);
  const auto tuning = first.tuning();
  ASSERT_TRUE(tuning);
  EXPECT_FALSE(tuning->complete);
  EXPECT_EQ(tuning->allowed_seconds, 1e-9);
  EXPECT_EQ(tuning->plan, tuning->candidates[0].plan);
  EXPECT_GT(tuning->default_ms, 0);
  ASSERT_GE(tuning->candidates.size(), 3U);
  for (std::size_t i = 1; i < tuning->candidates.size(); ++i) {
    EXPECT_NE(tuning->candidates[i].skipped.find("the time for tuning w"), std::string::npos)
        << tuning->candidates[i].skipped;
    EXPECT_EQ(tuning->candidates[i].problem, "");
  }
  EXPECT_FALSE(compile(computation, hurried).tuning()->measured)
      << "no more time, no more to learn";
  EXPECT_FALSE(compile(computation, options(Tuning::cached)).tuning()->complete)
      << "a record is a record";
  const auto again = compile(computation, options(Tuning::measure)).tuning();
  EXPECT_TRUE(again->measured);
  EXPECT_TRUE(again->complete);
  EXPECT_FALSE(compile(computation, hurried).tuning()->measured);
}

/// A listener who gives up at any stage ends his own tuning; whoever waits for it measures.
TEST_F(TuningOnCpu, WhoWaitsForATuningThatIsCancelledMeasures) {
  int segment = 71;
  for (const char* stage : {"compiling", "timing", "tuned"}) {
    const auto computation = sum_of(segment++);
    std::promise<void> begun;
    std::atomic<int> told{0};
    Options cancelled = options(Tuning::measure);
    cancelled.on_tuning = [&](const TuningProgress& progress) {
      if (++told == 1) begun.set_value();
      if (progress.stage == stage) throw std::runtime_error("enough");
      EXPECT_NE(progress.stage, "failed") << "it is the listener who failed";
    };
    std::jthread first([&] { EXPECT_THROW(compile(computation, cancelled), std::runtime_error); });
    begun.get_future().wait();
    const auto tuning = compile(computation, options(Tuning::measure)).tuning();
    ASSERT_TRUE(tuning);
    EXPECT_TRUE(tuning->measured) << stage;
  }
}

TEST_F(TuningOnCpu, WhatIsTooLargeToMeasureRunsByTheRules) {
  Options measuring = options(Tuning::measure);
  const auto sized = over(segments(param<std::int64_t>("S")), sum(input<float>("x")));
  const Kernel kernel = compile(sized, measuring);
  const LaunchArgs args{.elements = std::int64_t{1} << 33,
                        .inputs = {{"S", std::int64_t{1} << 33}},
                        .outputs = {},
                        .scratch = {}};
  EXPECT_GT(kernel.scratch_bytes(args), 0);  // compiles for segments of 32 GiB without any memory
  EXPECT_FALSE(kernel.tuning());
}

/// A value that differs from `bits` by `share` of it.
codegen::Bits moved(codegen::Bits bits, double share) {
  return codegen::bits_of_double(DType::f32,
                                 codegen::double_of_bits(DType::f32, bits) * (1 + share));
}

TEST_F(TuningOnCpu, WrongResultsAreSeen) {
  const auto x = input<float>("x");
  for (const std::int64_t segment : {std::int64_t{52}, std::int64_t{0}}) {
    const auto each = [&](auto output) {
      return segment > 0 ? over(segments(segment), output) : over(whole(), output);
    };
    const std::int64_t elements = segment > 0 ? 5200 : 1'000'003;
    for (const auto& computation :
         {each(sum(x)), each(mean(x)), each(variance(x)), each(max(x)), each(sum(x * x))}) {
      const runtime::TuningTask task{.graph = &computation.graph(),
                                     .target = target("cpu"),
                                     .device = -1,
                                     .request = {.segment = segment},
                                     .elements = elements,
                                     .on_progress = {}};
      runtime::TuningBench bench(task, elements);
      const auto space = plan_space(*task.graph, task.target, task.request);
      const auto results = [&](const codegen::PlanChoice& choice) {
        return bench.results(
            runtime::load_variant(*task.graph, task.target, task.device, task.request, choice),
            elements);
      };
      const auto right = results(space[0]);
      for (const auto& choice : {space[0], space[space.size() / 2], space.back()}) {
        EXPECT_EQ(bench.difference(right, results(choice), elements), "") << to_text(choice);
      }
      const std::size_t place = right[0].size() - 1;
      for (const double share : {0.02, -0.02}) {
        auto wrong = right;
        wrong[0][place] = moved(right[0][place], share);
        EXPECT_NE(bench.difference(right, wrong, elements).find(std::to_string(place)),
                  std::string::npos)
            << "segment " << segment << ", off by " << share;
      }
      auto wrong = right;
      wrong[0][place] =
          codegen::bits_of_double(DType::f32, std::numeric_limits<double>::quiet_NaN());
      EXPECT_NE(bench.difference(right, wrong, elements), "") << "NaN against a number";
    }
  }
}

}  // namespace
}  // namespace chainfold::test
