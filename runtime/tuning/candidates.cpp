#include "chainfold/runtime/tuning/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/float_environment.hpp"
#include "chainfold/codegen/choose/choose.hpp"
#include "chainfold/codegen/estimate.hpp"

namespace chainfold::runtime {

namespace {

/// Threads for so many jobs, each of which takes a core.
std::size_t workers_for(std::size_t jobs) {
  constexpr std::size_t kMost = 16;
  return std::min(jobs, std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMost));
}

/// The size of a candidate's program, with which the time of its compilation grows.
std::size_t size_of_text(const Candidate& candidate) {
  return candidate.lowered.program.values.size();
}

}  // namespace

std::vector<Candidate> make_candidates(const TuningTask& task, std::int64_t elements) {
  std::vector<Candidate> candidates;
  for (const codegen::PlanChoice& choice : plan_space(*task.graph, task.target, task.request))
    candidates.push_back({.choice = choice});
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < candidates.size();) {
      candidates[i].attempt([&] {
        candidates[i].lowered =
            lower_choice(*task.graph, task.target, task.request, candidates[i].choice);
        candidates[i].cycles =
            estimate(candidates[i].lowered, *task.graph, task.target, elements).cycles;
      });
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < workers_for(candidates.size()); ++i) threads.emplace_back(work);
    work();
  }
  if (candidates[0].failure || task.all_plans()) return candidates;
  for (Candidate& candidate : candidates) {
    const double times = candidate.cycles / candidates[0].cycles;
    if (!candidate.usable() || times <= codegen::kHopeless) continue;
    candidate.skipped = fmt::format("estimated to take {:.1f} times the default's time", times);
    candidate.lowered = {};
  }
  return candidates;
}

CandidateCompiler::CandidateCompiler(const TuningTask& task, std::vector<Candidate>& candidates,
                                     std::optional<TuningClock::time_point> deadline)
    : task_(task), candidates_(candidates), deadline_(deadline) {
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].usable()) order_.push_back(i);
  if (order_.size() > 1) {
    // Estimates this close say nothing; of equals the shorter program is compiled sooner.
    constexpr double kSteps = 2;
    const auto rank = [&](std::size_t i) {
      return std::pair(std::round(kSteps * candidates[i].cycles / candidates[0].cycles),
                       size_of_text(candidates[i]));
    };
    std::stable_sort(order_.begin() + 1, order_.end(),
                     [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  }
  for (std::size_t i = 0; i < workers_for(order_.size()); ++i)
    threads_.emplace_back([this] { work(); });
}

CandidateCompiler::~CandidateCompiler() { begun_ = order_.size(); }

void CandidateCompiler::work() {
  const codegen::DefaultFloatEnvironment environment;  // a thread begins with its maker's
  for (std::size_t place; (place = begun_++) < order_.size();) {
    Candidate& candidate = candidates_[order_[place]];
    const auto size = static_cast<double>(size_of_text(candidate));
    if (place > 0 && deadline_) {
      // As long as the default took, for its size.
      const std::chrono::duration<double, std::milli> needed(ms_per_value_ * size);
      const auto now = TuningClock::now();
      if (now > *deadline_) {
        candidate.skipped = "the time for tuning was over before it was compiled";
      } else if (now + needed > *deadline_) {
        candidate.skipped = fmt::format(
            "the time for tuning would be over before its {} values were compiled", size);
      }
    }
    candidate.attempt([&] {
      candidate.variant = load_lowered(*task_.graph, task_.target, task_.device,
                                       std::move(candidate.lowered), candidate.choice);
      if (place == 0) ms_per_value_ = candidate.variant->executable->compile_ms() / size;
    });
    {
      const std::lock_guard lock(mutex_);
      finished_.push_back(order_[place]);
    }
    changed_.notify_one();
  }
}

std::optional<std::size_t> CandidateCompiler::next() {
  if (handed_out_ == order_.size()) return std::nullopt;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !finished_.empty(); });
  const std::size_t candidate = finished_.front();
  finished_.pop_front();
  ++handed_out_;
  return candidate;
}

}  // namespace chainfold::runtime
