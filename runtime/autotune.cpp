#include "chainfold/runtime/autotune.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <exception>
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
#include "chainfold/runtime/jit_llvm.hpp"
#include "chainfold/runtime/machine_code.hpp"
#include "chainfold/runtime/tuning_bench.hpp"

namespace chainfold::runtime {

namespace {

using codegen::PlanChoice;
using Json = nlohmann::json;

/// Bytes of inputs and outputs to time with; a CPU reads a quarter in the time a tuning may take.
constexpr std::int64_t kTimedBytes = std::int64_t{1} << 30;
/// A segment that takes more than this many times as much is not tuned for.
constexpr std::int64_t kMostTimes = 4;
/// Elements on which results are compared: no multiple of anything, so that plans meet their edges,
/// and few enough for sums of them to be exact in f32.
constexpr std::int64_t kCheckedElements = 1'000'003;
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

/// Nothing for a text that is no record, or one of a plan that is not legal any more: it is
/// measured anew then.
std::optional<TuningResult> from_json(const std::string& text, const TuningTask& task) {
  try {
    const Json json = Json::parse(text);
    TuningResult result{.plan = json.at("plan"),
                        .ms = json.at("ms"),
                        .default_ms = json.at("default_ms"),
                        .elements = json.at("elements"),
                        .device = json.at("device"),
                        .date = json.at("date")};
    for (const Json& c : json.at("candidates")) {
      result.candidates.push_back(
          {.plan = c.at("plan"), .ms = c.at("ms"), .problem = c.at("problem")});
    }
    const PlanChoice choice = codegen::parse_choice(result.plan);
    if (!make_plan(*task.graph, task.target, task.request, choice)) return std::nullopt;
    return result;
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// Records of this process, and tunings under way.
struct Records {
  std::mutex mutex;  // never held while the disk is read
  std::map<CacheKey, TuningResult> kept;
  std::map<CacheKey, std::shared_future<std::optional<TuningResult>>> under_way;
};
// Never destroyed: a tuning may end after the statics of whoever asked for it.
Records& records() {
  static auto* const records = new Records;
  return *records;
}

std::optional<TuningResult> find_by_key(const CacheKey& key, const TuningTask& task) {
  {
    const std::lock_guard lock(records().mutex);
    const auto found = records().kept.find(key);
    if (found != records().kept.end()) return found->second;
  }
  const auto stored = DiskCache::of_process().load(kTuningKind, key);
  if (!stored) return std::nullopt;
  auto result = from_json(*stored, task);
  if (!result) return std::nullopt;
  const std::lock_guard lock(records().mutex);
  return records().kept.emplace(key, *std::move(result)).first->second;
}

/// A candidate on its way through the tuning.
struct Candidate {
  PlanChoice choice;
  std::optional<KernelVariant> variant;
  std::exception_ptr failure;
  std::string problem;

  /// Runs a step of it; what is thrown is its problem and nobody else's.
  template <class Step>
  void attempt(Step&& step) {
    if (failure || !problem.empty()) return;
    try {
      step();
    } catch (const std::exception& error) {
      failure = std::current_exception();
      problem = error.what();
    }
  }
};

void compile_all(const TuningTask& task, std::vector<Candidate>& candidates) {
  // Compilers take tens of milliseconds and a core each.
  const std::size_t workers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
  std::atomic<std::size_t> next{0}, done{0};
  auto work = [&](bool report) {
    for (std::size_t i; (i = next++) < candidates.size();) {
      Candidate& candidate = candidates[i];
      candidate.attempt([&] {
        candidate.variant =
            load_variant(*task.graph, task.target, task.device, task.request, candidate.choice);
      });
      ++done;
      if (!report || !task.on_progress) continue;
      try {
        task.on_progress(
            {"compiling", static_cast<int>(done), static_cast<int>(candidates.size())});
      } catch (...) {
        next = candidates.size();  // whoever gave up needs no more of them
        throw;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(workers, candidates.size()); ++i)
    threads.emplace_back([&] { work(false); });
  work(true);
}

/// Bytes of one segment, or of one element of the whole: what it reads and writes.
std::int64_t bytes_of_segment(const TuningTask& task) {
  const std::int64_t segment = std::max<std::int64_t>(1, task.request.segment);
  std::int64_t in = 0, out = 0;
  for (const auto& input : task.graph->inputs) in += size_of(input.type);
  if (task.request.segment > 0) {
    for (const codegen::NodeId output : task.graph->outputs)
      out += size_of(task.graph->node(output).type);
  }
  return in > (std::int64_t{1} << 40) / segment ? std::int64_t{1} << 40 : segment * in + out;
}

std::int64_t timed_bytes(const TuningTask& task) {
  return task.device < 0 ? kTimedBytes / 4 : kTimedBytes;
}

std::int64_t timed_elements(const TuningTask& task) {
  const std::int64_t segment = std::max<std::int64_t>(1, task.request.segment);
  const std::int64_t segments =
      task.elements > 0 ? task.elements / segment : timed_bytes(task) / bytes_of_segment(task);
  return std::max<std::int64_t>(1, segments) * segment;
}

TuningResult measure(const TuningTask& task) {
  std::vector<Candidate> candidates;
  for (const PlanChoice& choice : plan_space(*task.graph, task.target, task.request))
    candidates.push_back({.choice = choice, .variant = {}, .failure = {}, .problem = {}});
  compile_all(task, candidates);
  Candidate& standard = candidates.at(0);
  if (standard.failure) std::rethrow_exception(standard.failure);

  const std::int64_t segment = std::max<std::int64_t>(1, task.request.segment);
  const std::int64_t checked = std::max<std::int64_t>(1, kCheckedElements / segment) * segment;
  TuningResult result{.elements = timed_elements(task),
                      .device = device_text(task.device),
                      .date = utc_now(),
                      .measured = true};
  TuningBench bench(task, std::max(result.elements, checked));
  const TuningBench::Results expected = bench.results(*standard.variant, checked);
  double round_ms = 0;
  for (Candidate& candidate : candidates) {
    candidate.attempt([&] {
      candidate.problem =
          bench.difference(expected, bench.results(*candidate.variant, checked), checked);
    });
    candidate.attempt([&] {
      bench.time(*candidate.variant, result.elements);  // touches what later runs find
      round_ms += bench.time(*candidate.variant, result.elements);
    });
  }
  if (standard.failure) std::rethrow_exception(standard.failure);

  std::vector<std::vector<double>> times(candidates.size());
  const int rounds = std::clamp(static_cast<int>(kTimingSeconds * 1e3 / std::max(round_ms, 1e-3)),
                                kLeastRounds, kMostRounds);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].problem.empty())
        times[i].push_back(bench.time(*candidates[i].variant, result.elements));
    }
    if (task.on_progress) task.on_progress({"timing", round + 1, rounds});
  }
  const std::size_t best = choose_fastest(times);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    result.candidates.push_back({.plan = to_text(candidates[i].choice),
                                 .ms = times[i].empty() ? 0 : median(times[i]),
                                 .problem = candidates[i].problem});
  }
  result.plan = result.candidates[best].plan;
  result.ms = result.candidates[best].ms;
  result.default_ms = result.candidates[0].ms;
  return result;
}

/// measure, or nothing where there is no memory for it: the default plan needs none of it.
std::optional<TuningResult> try_to_measure(const TuningTask& task) {
  if (bytes_of_segment(task) > kMostTimes * timed_bytes(task)) return std::nullopt;
  try {
    return measure(task);
  } catch (const DeviceError& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return std::nullopt;
  }
}

}  // namespace

std::size_t choose_fastest(const std::vector<std::vector<double>>& candidates) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].empty()) continue;
    const double ms = median(candidates[i]);
    if (ms < least) {
      least = ms;
      best = i;
    }
  }
  auto equals_best = [&](std::size_t i) {
    if (candidates[i].empty()) return false;
    const double noise =
        std::max({kLeastNoise * least, 2 * spread(candidates[i]), 2 * spread(candidates[best])});
    return median(candidates[i]) <= least + noise;
  };
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (equals_best(i)) return i;  // the default is the first
  return best;
}

CacheKey tuning_key(const TuningTask& task) {
  // kernel_key adds the versions of this library and of the compiler.
  return kernel_key(
      fmt::format("{}\n{} {} {}\nsegment {} accuracy {} nonfinite {} determinism {} "
                  "alignment {} mma {}{}\nelements {}\n",
                  print(*task.graph), device_text(task.device), task.target.arch,
                  task.target.processors, task.request.segment,
                  static_cast<int>(task.request.accuracy), static_cast<int>(task.request.nonfinite),
                  static_cast<int>(task.request.determinism), task.request.base_alignment,
                  task.request.allow_mma, task.request.strided ? " strided" : "",
                  timed_elements(task)),
      task.target);
}

std::optional<TuningResult> find_tuning(const TuningTask& task) {
  return find_by_key(tuning_key(task), task);
}

std::optional<TuningResult> tune(const TuningTask& task) {
  const CacheKey key = tuning_key(task);
  for (;;) {
    if (auto found = find_by_key(key, task)) return found;
    std::promise<std::optional<TuningResult>> promise;
    std::shared_future<std::optional<TuningResult>> other;
    {
      const std::lock_guard lock(records().mutex);
      if (records().kept.contains(key)) continue;
      auto [entry, inserted] = records().under_way.try_emplace(key);
      if (inserted) {
        entry->second = promise.get_future().share();
      } else {
        other = entry->second;
      }
    }
    if (other.valid()) {
      try {
        std::optional<TuningResult> result = other.get();
        if (result) result->measured = false;
        return result;
      } catch (...) {
        continue;  // its caller's accident: measured here then
      }
    }
    try {
      std::optional<TuningResult> result = try_to_measure(task);
      if (result) {
        const std::string record =
            to_json(*result).dump(1, ' ', false, Json::error_handler_t::replace);
        DiskCache::of_process().store(kTuningKind, key, record,
                                      fmt::format("{} on {}: {}", print_expression(*task.graph),
                                                  result->device, result->plan));
      }
      {
        const std::lock_guard lock(records().mutex);
        if (result) {
          TuningResult& kept = records().kept[key] = *result;
          kept.measured = false;
        }
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
}

}  // namespace chainfold::runtime
