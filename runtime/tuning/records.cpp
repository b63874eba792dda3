#include "chainfold/runtime/tuning/records.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/device/device.hpp"
#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/runtime/jit/machine_code.hpp"

namespace chainfold::runtime {

namespace {

using Json = nlohmann::json;

struct Kept {
  std::mutex mutex;  // never held while the disk is read
  std::map<CacheKey, TuningResult> records;
};
// Never destroyed: a tuning may end after the statics of the thread that asked for it.
Kept& kept() {
  static auto* const kept = new Kept;
  return *kept;
}

}  // namespace

std::string text_of_record(const TuningResult& result) {
  Json candidates = Json::array();
  for (const auto& c : result.candidates)
    candidates.push_back(
        {{"plan", c.plan}, {"ms", c.ms}, {"problem", c.problem}, {"skipped", c.skipped}});
  const Json json = {{"plan", result.plan},
                     {"ms", result.ms},
                     {"default_ms", result.default_ms},
                     {"elements", result.elements},
                     {"device", result.device},
                     {"date", result.date},
                     {"seconds", result.seconds},
                     {"allowed_seconds", result.allowed_seconds},
                     {"complete", result.complete},
                     {"candidates", std::move(candidates)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::optional<TuningResult> parse_record(const std::string& text, const TuningTask& task) {
  try {
    const Json json = Json::parse(text);
    TuningResult result{.plan = json.at("plan"),
                        .ms = json.at("ms"),
                        .default_ms = json.at("default_ms"),
                        .elements = json.at("elements"),
                        .device = json.at("device"),
                        .date = json.at("date"),
                        .seconds = json.value("seconds", 0.0),
                        .allowed_seconds = json.value("allowed_seconds", 0.0),
                        .complete = json.value("complete", true)};
    for (const Json& c : json.at("candidates")) {
      result.candidates.push_back({.plan = c.at("plan"),
                                   .ms = c.at("ms"),
                                   .problem = c.at("problem"),
                                   .skipped = c.value("skipped", "")});
    }
    const codegen::PlanChoice choice = codegen::parse_choice(result.plan);
    if (!make_plan(*task.graph, task.target, task.request, choice)) return std::nullopt;
    return result;
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::optional<TuningResult> find_record(const CacheKey& key, const TuningTask& task) {
  {
    const std::lock_guard lock(kept().mutex);
    const auto found = kept().records.find(key);
    if (found != kept().records.end()) return found->second;
  }
  const auto stored = DiskCache::of_process().load(kTuningKind, key);
  if (!stored) return std::nullopt;
  auto result = parse_record(*stored, task);
  if (!result) return std::nullopt;
  const std::lock_guard lock(kept().mutex);
  return kept().records.emplace(key, *std::move(result)).first->second;
}

void keep_record(const CacheKey& key, const TuningTask& task, TuningResult result) {
  result.measured = false;
  DiskCache::of_process().store(
      kTuningKind, key, text_of_record(result),
      fmt::format("{} on {}: {}", print_expression(*task.graph), result.device, result.plan));
  const std::lock_guard lock(kept().mutex);
  kept().records[key] = std::move(result);
}

bool serves(const TuningResult& record, const TuningTask& task) {
  if (task.all_plans()) {
    return std::all_of(record.candidates.begin(), record.candidates.end(),
                       [](const auto& each) { return each.skipped.empty(); });
  }
  return record.complete || record.allowed_seconds >= task.seconds;
}

}  // namespace chainfold::runtime
