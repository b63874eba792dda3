#include "chainfold/runtime/autotune.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/error.hpp"
#include "chainfold/runtime/device.hpp"
#include "chainfold/runtime/disk_cache.hpp"
#include "chainfold/runtime/executable.hpp"
#include "chainfold/runtime/jit_llvm.hpp"
#include "chainfold/runtime/tuning_bench.hpp"

namespace chainfold::runtime {

namespace {

using codegen::PlanChoice;
using Json = nlohmann::json;

constexpr std::int64_t kInputBytes = std::int64_t{1} << 30;
/// A CPU reads as much in the time that a tuning may take.
constexpr std::int64_t kCpuInputBytes = std::int64_t{1} << 28;
/// Elements on which results are compared.
constexpr std::int64_t kCheckedElements = std::int64_t{1} << 20;
/// Seconds that the timing of all candidates may take, about.
constexpr double kTimingSeconds = 0.4;
constexpr int kLeastRounds = 5, kMostRounds = 25;
/// Medians closer than this are equal whatever their spread: clocks and neighbours drift.
constexpr double kLeastNoise = 0.005;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The median distance from the median: the spread that outliers do not touch.
double spread(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> distances;
  for (double value : values) distances.push_back(std::abs(value - middle));
  return median(std::move(distances));
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string device_text(int device) {
  if (device >= 0) {
    const DeviceInfo& info = device_info(device);
    return fmt::format("{}, {} multiprocessors, driver {}", info.name, info.sms,
                       info.driver_version);
  }
  const chainfold_cpu_plugin& plugin = cpu_plugin();
  return fmt::format("CPU {}, {} threads, LLVM {}", plugin.host_cpu, plugin.threads,
                     plugin.llvm_version);
}

Json to_json(const TuningResult& result) {
  Json candidates = Json::array();
  for (const auto& c : result.candidates)
    candidates.push_back({{"plan", c.plan}, {"ms", c.ms}, {"problem", c.problem}});
  return {{"plan", result.plan},
          {"ms", result.ms},
          {"default_ms", result.default_ms},
          {"elements", result.elements},
          {"device", result.device},
          {"date", result.date},
          {"candidates", std::move(candidates)}};
}

/// Nothing for a text that is no record: it is measured anew then.
std::optional<TuningResult> from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    TuningResult result{.plan = json.at("plan"),
                        .ms = json.at("ms"),
                        .default_ms = json.at("default_ms"),
                        .elements = json.at("elements"),
                        .device = json.at("device"),
                        .date = json.at("date"),
                        .candidates = {}};
    for (const Json& c : json.at("candidates"))
      result.candidates.push_back(
          {.plan = c.at("plan"), .ms = c.at("ms"), .problem = c.at("problem")});
    static_cast<void>(codegen::parse_choice(result.plan));
    return result;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Records of this process, and tunings under way.
struct Records {
  std::mutex mutex;
  std::map<std::string, std::string> kept;  // key: JSON
  std::map<std::string, std::shared_future<TuningResult>> under_way;
};
// Never destroyed: a tuning may end after the statics of whoever asked for it.
Records& records() {
  static auto* const records = new Records;
  return *records;
}

/// The record of a key in this process, or on disk. The mutex is held.
std::optional<TuningResult> find_kept(const std::string& key) {
  auto found = records().kept.find(key);
  if (found == records().kept.end()) {
    auto stored = DiskCache::of_process().load(kTuningKind, hash128(key));
    if (!stored) return std::nullopt;
    found = records().kept.emplace(key, *std::move(stored)).first;
  }
  return from_json(found->second);
}

/// A candidate on its way through the tuning.
struct Candidate {
  PlanChoice choice;
  std::optional<TuningBench::Runnable> runnable;
  std::string problem;
};

void compile_all(const TuningTask& task, std::vector<Candidate>& candidates) {
  // Compilers take tens of milliseconds and a core each.
  const std::size_t workers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
  std::atomic<std::size_t> next{0}, done{0};
  auto work = [&](bool report) {
    for (std::size_t i; (i = next++) < candidates.size();) {
      Candidate& candidate = candidates[i];
      try {
        auto plan = make_plan(*task.graph, task.target, task.request, candidate.choice);
        candidate.runnable.emplace(TuningBench::compile(task, *std::move(plan)));
      } catch (const std::exception& error) {
        candidate.problem = error.what();
      }
      ++done;
      if (report && task.on_progress)
        task.on_progress(
            {"compiling", static_cast<int>(done), static_cast<int>(candidates.size())});
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(workers, candidates.size()); ++i)
    threads.emplace_back([&] { work(false); });
  work(true);
}

std::int64_t timed_elements(const TuningTask& task) {
  const std::int64_t segment = std::max<std::int64_t>(1, task.request.segment);
  std::int64_t elements = task.elements;
  if (elements <= 0) {
    std::int64_t bytes = 0;
    for (const auto& input : task.graph->inputs) bytes += size_of(input.type);
    elements = (task.device < 0 ? kCpuInputBytes : kInputBytes) / std::max<std::int64_t>(1, bytes);
  }
  return std::max<std::int64_t>(1, elements / segment) * segment;
}

TuningResult measure(const TuningTask& task) {
  std::vector<Candidate> candidates;
  for (const PlanChoice& choice : plan_space(*task.graph, task.target, task.request))
    candidates.push_back({.choice = choice, .runnable = {}, .problem = {}});
  compile_all(task, candidates);
  if (!candidates[0].runnable) throw InternalError(candidates[0].problem, "the default plan");

  const std::int64_t segment = std::max<std::int64_t>(1, task.request.segment);
  const std::int64_t checked = std::max<std::int64_t>(1, kCheckedElements / segment) * segment;
  TuningResult result{.elements = timed_elements(task),
                      .device = device_text(task.device),
                      .date = utc_now(),
                      .candidates = {},
                      .measured = true};
  TuningBench bench(task, std::max(result.elements, checked));
  const TuningBench::Results expected = bench.results(*candidates[0].runnable, checked);
  std::vector<std::size_t> runs;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    if (candidate.runnable && i > 0)
      candidate.problem =
          bench.difference(expected, bench.results(*candidate.runnable, checked), checked);
    if (candidate.problem.empty()) runs.push_back(i);
  }

  std::vector<Timings> timings(candidates.size());
  double round_ms = 0;
  for (const std::size_t i : runs) {
    bench.time(*candidates[i].runnable, result.elements);  // the first touches what later ones find
    round_ms += bench.time(*candidates[i].runnable, result.elements);
  }
  const int rounds = std::clamp(static_cast<int>(kTimingSeconds * 1e3 / std::max(round_ms, 1e-3)),
                                kLeastRounds, kMostRounds);
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t i : runs)
      timings[i].ms.push_back(bench.time(*candidates[i].runnable, result.elements));
    if (task.on_progress) task.on_progress({"timing", round + 1, rounds});
  }
  const std::size_t best = choose_fastest(timings);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    result.candidates.push_back({.plan = to_text(candidates[i].choice),
                                 .ms = timings[i].ms.empty() ? 0 : median(timings[i].ms),
                                 .problem = candidates[i].problem});
  }
  result.plan = result.candidates[best].plan;
  result.ms = result.candidates[best].ms;
  result.default_ms = result.candidates[0].ms;
  return result;
}

}  // namespace

std::size_t choose_fastest(const std::vector<Timings>& candidates) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].ms.empty()) continue;
    const double ms = median(candidates[i].ms);
    if (ms < least) {
      least = ms;
      best = i;
    }
  }
  auto equals_best = [&](std::size_t i) {
    if (candidates[i].ms.empty()) return false;
    const double noise = std::max(
        {kLeastNoise * least, 2 * spread(candidates[i].ms), 2 * spread(candidates[best].ms)});
    return median(candidates[i].ms) <= least + noise;
  };
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (equals_best(i)) return i;  // the default is the first
  return best;
}

std::string tuning_key(const TuningTask& task) {
  return fmt::format(
      "{}\n{} {} {}\n{}\nelements {}\n", print(*task.graph), device_text(task.device),
      task.target.arch, task.target.processors,
      fmt::format("segment {} accuracy {} nonfinite {} determinism {} alignment {}",
                  task.request.segment, static_cast<int>(task.request.accuracy),
                  static_cast<int>(task.request.nonfinite),
                  static_cast<int>(task.request.determinism), task.request.base_alignment),
      timed_elements(task));
}

std::optional<TuningResult> find_tuning(const TuningTask& task) {
  const std::string key = tuning_key(task);
  const std::lock_guard lock(records().mutex);
  return find_kept(key);
}

TuningResult tune(const TuningTask& task) {
  const std::string key = tuning_key(task);
  std::promise<TuningResult> promise;
  std::shared_future<TuningResult> other;
  {
    const std::lock_guard lock(records().mutex);
    if (auto found = find_kept(key)) return *std::move(found);
    auto [entry, inserted] = records().under_way.try_emplace(key);
    if (inserted) {
      entry->second = promise.get_future().share();
    } else {
      other = entry->second;
    }
  }
  if (other.valid()) {
    TuningResult result = other.get();
    result.measured = false;
    return result;
  }
  try {
    TuningResult result = measure(task);
    const std::string record = to_json(result).dump(1);
    DiskCache::of_process().store(
        kTuningKind, hash128(key), record,
        fmt::format("{} on {}: {}", print_expression(*task.graph), result.device, result.plan));
    {
      const std::lock_guard lock(records().mutex);
      records().kept[key] = record;
      records().under_way.erase(key);
    }
    promise.set_value(result);
    return result;
  } catch (...) {
    {
      const std::lock_guard lock(records().mutex);
      records().under_way.erase(key);
    }
    promise.set_exception(std::current_exception());
    throw;
  }
}

}  // namespace chainfold::runtime
