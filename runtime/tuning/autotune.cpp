#include "chainfold/runtime/tuning/autotune.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/estimate.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/host/roomy_thread.hpp"
#include "chainfold/runtime/tuning/bench.hpp"
#include "chainfold/runtime/tuning/candidates.hpp"
#include "chainfold/runtime/tuning/race.hpp"
#include "chainfold/runtime/tuning/records.hpp"

namespace chainfold::runtime {

namespace {

/// A segment that moves more than this many times the timed bytes is not tuned for.
constexpr std::int64_t kMostTimes = 2, kMostTimesOfCpu = 4;
/// Where the rounds would take too long, this share of the elements is timed, at least.
constexpr std::int64_t kLeastShare = 8;
/// Elements on which results are compared. They are no multiple of anything, so that plans meet
/// their edges, and few enough for sums of them to be exact in f32.
constexpr std::int64_t kCheckedElements = 1'000'003;
/// Of a tuning's time, what compiling may take.
constexpr double kCompilingShare = 0.6;
/// Seconds that the timing of all candidates takes where there is no need for more, about.
constexpr double kTimingSeconds = 0.4;
constexpr int kLeastRounds = 5, kMostRounds = 25;

double seconds_since(TuningClock::time_point start) {
  return std::chrono::duration<double>(TuningClock::now() - start).count();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

/// Reports the progress to the task's on_progress.
class Teller {
 public:
  explicit Teller(const TuningTask& task)
      : task_(task),
        what_(task.on_progress ? roomy([&] { return print_expression(*task.graph); })
                               : std::string()) {}

  void best(const std::string& plan, double ms) {
    plan_ = plan;
    now_.best_ms = ms;
  }
  void standard(double ms) { now_.default_ms = ms; }
  void tell(std::string_view stage, std::size_t done, std::size_t total) {
    if (!task_.on_progress) return;
    now_.stage = stage;
    now_.done = static_cast<int>(done);
    now_.total = static_cast<int>(total);
    now_.what = what_;
    now_.best_plan = plan_;
    now_.seconds = seconds();
    telling_ = true;
    task_.on_progress(now_);
    telling_ = false;
  }
  /// Reports that there will be no result, unless on_progress itself ended the tuning.
  void fail() noexcept {
    if (telling_) return;
    try {
      tell("failed", 1, 1);
    } catch (...) {  // another exception is under way
    }
  }
  [[nodiscard]] double seconds() const { return seconds_since(start_); }
  [[nodiscard]] bool is_over(double share) const {
    return !task_.all_plans() && seconds() > share * task_.seconds;
  }
  [[nodiscard]] std::optional<TuningClock::time_point> deadline(double share) const {
    if (task_.all_plans()) return std::nullopt;
    return start_ + std::chrono::duration_cast<TuningClock::duration>(
                        std::chrono::duration<double>(share * task_.seconds));
  }

 private:
  const TuningTask& task_;
  std::string what_, plan_;
  TuningProgress now_;
  bool telling_ = false;
  TuningClock::time_point start_ = TuningClock::now();
};

/// A tuning on its way.
class Measurement {
 public:
  explicit Measurement(const TuningTask& task)
      : task_(task),
        segment_(std::max<std::int64_t>(1, task.request.segment)),
        checked_(std::max<std::int64_t>(1, kCheckedElements / segment_) * segment_),
        elements_(timed_elements(task)),
        least_(task.elements > 0 ? elements_ : elements_ / kLeastShare),
        teller_(task) {}

  Tuned run() {
    try {
      return run_through();
    } catch (...) {
      teller_.fail();
      throw;
    }
  }

 private:
  Tuned run_through() {
    candidates_ = roomy([&] { return make_candidates(task_, elements_); });
    if (candidates_[0].failure) std::rethrow_exception(candidates_[0].failure);
    std::optional<TuningBench> bench;
    compile_and_check(bench);
    Race race = time(*bench);
    const std::size_t winner = race.winner();
    Tuned tuned{.result = result(race, winner)};
    tuned.executable = candidates_[winner].variant->executable;
    teller_.best(tuned.result.plan, tuned.result.ms);
    teller_.tell(kTuned, 1, 1);
    return tuned;
  }

  /// The bench is filled while the first candidates are compiled. Compiled ones are checked while
  /// others are compiled.
  void compile_and_check(std::optional<TuningBench>& bench) {
    CandidateCompiler compiler(task_, candidates_, teller_.deadline(kCompilingShare));
    make_bench(bench);
    TuningBench::Results expected;
    std::vector<std::size_t> early;  // ready before the default was
    std::size_t done = 0;
    const auto check = [&](Candidate& candidate) {
      candidate.attempt([&] {
        candidate.problem =
            bench->difference(expected, bench->results(*candidate.variant, checked_), checked_);
      });
    };
    while (const std::optional<std::size_t> ready = compiler.next()) {
      Candidate& candidate = candidates_[*ready];
      if (*ready == 0) {
        if (candidate.failure) std::rethrow_exception(candidate.failure);
        expected = bench->results(*candidate.variant, checked_);
        for (const std::size_t i : early) check(candidates_[i]);
        early.clear();
      } else if (expected.empty()) {
        early.push_back(*ready);
      } else {
        check(candidate);
      }
      teller_.tell(kCompiling, ++done, compiler.size());
    }
  }

  /// With fewer elements, at least the share kLeastShare of them, where memory does not hold so
  /// many. A number that the caller asked for stays.
  void make_bench(std::optional<TuningBench>& bench) {
    for (;;) {
      try {
        bench.emplace(task_, std::max(elements_, checked_));
        return;
      } catch (const DeviceError& error) {
        const std::int64_t half = elements_ / segment_ / 2 * segment_;
        if (error.code() != ErrorCode::out_of_memory || half < std::max(least_, checked_)) throw;
        elements_ = half;
        short_of_memory_ = true;
      }
    }
  }

  /// Times a candidate once; the first time touches what later runs find.
  void time_once(TuningBench& bench, Race& race, std::size_t i) {
    Candidate& candidate = candidates_[i];
    candidate.attempt([&] {
      if (race.ms(i) == 0) bench.time(*candidate.variant, elements_);
      race.add(i, bench.time(*candidate.variant, elements_));
    });
    if (!candidate.usable()) race.drop(i);
  }

  Race time(TuningBench& bench) {
    std::vector<bool> starts;
    std::size_t count = 0;
    for (const Candidate& candidate : candidates_) {
      starts.push_back(candidate.usable());
      count += candidate.usable() ? 1 : 0;
    }
    fit_elements(bench, count);
    Race race(std::move(starts));
    const auto begin = TuningClock::now();
    for (int round = 0; round < kMostRounds; ++round) {
      if (round >= kLeastRounds && seconds_since(begin) > kTimingSeconds) break;
      for (std::size_t i = 0; i < race.size(); ++i) {
        if (!race.runs(i)) continue;
        if ((i > 0 || round > 0) && teller_.is_over(1)) {
          if (race.ms(i) > 0) continue;
          candidates_[i].skipped = "the time for tuning was over before it was timed";
          race.drop(i);
          continue;
        }
        time_once(bench, race, i);
        if (i == 0 && candidates_[0].failure) std::rethrow_exception(candidates_[0].failure);
      }
      race.end_round();
      const std::size_t leader = race.leader();
      teller_.standard(race.ms(0));
      teller_.best(to_text(candidates_[leader].choice), race.ms(leader));
      teller_.tell(kTiming, static_cast<std::size_t>(round + 1), kMostRounds);
      if (teller_.is_over(1)) break;
    }
    return race;
  }

  /// Fewer elements where the least rounds of all candidates would not fit the time. A number that
  /// the caller asked for stays.
  void fit_elements(TuningBench& bench, std::size_t count) {
    if (task_.elements > 0 || task_.all_plans()) return;
    candidates_[0].attempt([&] {
      const auto segments = elements_ / segment_;
      const std::int64_t tried = std::max<std::int64_t>(1, segments / kLeastShare);
      bench.time(*candidates_[0].variant, tried * segment_);
      const double each = bench.time(*candidates_[0].variant, tried * segment_) * 1e-3 *
                          static_cast<double>(segments) / static_cast<double>(tried);
      const double left = task_.seconds - teller_.seconds();
      // Half of them leave after two rounds.
      const double runs = static_cast<double>(count) * (3 + kLeastRounds * 0.5) * bench.launches();
      const double fit = std::min(left / (runs * each), 1.0);
      const auto taken = static_cast<std::int64_t>(static_cast<double>(segments) * fit);
      elements_ = std::max({taken, least_ / segment_, std::int64_t{1}}) * segment_;
    });
    if (candidates_[0].failure) std::rethrow_exception(candidates_[0].failure);
  }

  TuningResult result(const Race& race, std::size_t winner) const {
    TuningResult result{.elements = elements_,
                        .device = device_text(task_.device),
                        .date = utc_now(),
                        .seconds = teller_.seconds(),
                        .allowed_seconds = task_.seconds,
                        .complete = true,
                        .measured = true};
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      const bool hopeless = candidate.cycles > codegen::kHopeless * candidates_[0].cycles;
      result.complete = result.complete && (candidate.skipped.empty() || hopeless);
      result.candidates.push_back({.plan = to_text(candidate.choice),
                                   .ms = race.ms(i),
                                   .problem = candidate.problem,
                                   .skipped = candidate.skipped});
    }
    if (race.rounds() < kLeastRounds || short_of_memory_) result.complete = false;
    result.plan = result.candidates[winner].plan;
    result.ms = result.candidates[winner].ms;
    result.default_ms = result.candidates[0].ms;
    return result;
  }

  static constexpr std::string_view kCompiling = "compiling", kTiming = "timing", kTuned = "tuned";
  const TuningTask& task_;
  std::int64_t segment_, checked_, elements_;
  std::int64_t least_;  // to time with
  bool short_of_memory_ = false;
  Teller teller_;
  std::vector<Candidate> candidates_;
};

/// A tuning, or nothing where there is no memory for it: the default plan runs without that memory.
std::optional<Tuned> try_to_measure(const TuningTask& task) {
  const std::int64_t times = task.device < 0 ? kMostTimesOfCpu : kMostTimes;
  if (bytes_of_segment(task) > times * timed_bytes(task)) return std::nullopt;
  try {
    return Measurement(task).run();
  } catch (const DeviceError& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return std::nullopt;
  }
}

/// Tunings under way, for threads that ask for the same meanwhile.
struct UnderWay {
  std::mutex mutex;
  std::map<CacheKey, std::shared_future<std::optional<Tuned>>> tunings;
};
// Never destroyed: a tuning may end after the statics of the thread that asked for it.
UnderWay& under_way() {
  static auto* const under_way = new UnderWay;
  return *under_way;
}

}  // namespace

std::optional<TuningResult> find_tuning(const TuningTask& task) {
  return find_record(tuning_key(task), task);
}

std::optional<Tuned> tune(const TuningTask& task) {
  const CacheKey key = roomy([&] { return tuning_key(task); });
  UnderWay& others = under_way();
  for (;;) {
    std::promise<std::optional<Tuned>> promise;
    std::shared_future<std::optional<Tuned>> other;
    {
      const std::lock_guard lock(others.mutex);
      auto [entry, inserted] = others.tunings.try_emplace(key);
      if (inserted) {
        entry->second = promise.get_future().share();
      } else {
        other = entry->second;
      }
    }
    if (other.valid()) {
      try {
        std::optional<Tuned> tuned = other.get();
        if (tuned && !serves(tuned->result, task)) continue;  // it had less time
        if (tuned) tuned->result.measured = false;
        return tuned;
      } catch (...) {
        continue;  // its caller's exception: measured here then
      }
    }
    const auto settle = [&] {
      const std::lock_guard lock(others.mutex);
      others.tunings.erase(key);
    };
    try {
      std::optional<Tuned> tuned;
      if (auto record = roomy([&] { return find_record(key, task); });
          record && serves(*record, task)) {
        tuned = Tuned{.result = *std::move(record)};
      } else {
        tuned = try_to_measure(task);
        if (tuned) keep_record(key, task, tuned->result);
      }
      settle();
      promise.set_value(tuned);
      return tuned;
    } catch (...) {
      settle();
      promise.set_exception(std::current_exception());
      throw;
    }
  }
}

}  // namespace chainfold::runtime
