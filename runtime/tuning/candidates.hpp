// The candidates of a tuning on their way from a choice to a kernel.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/runtime/launch/variant.hpp"
#include "chainfold/runtime/tuning/task.hpp"

namespace chainfold::runtime {

using TuningClock = std::chrono::steady_clock;

struct Candidate {
  codegen::PlanChoice choice;
  codegen::Compiled lowered{};  ///< moved on into the variant
  double cycles = 0;            ///< estimated
  std::optional<KernelVariant> variant{};
  std::exception_ptr failure{};
  std::string problem{};  ///< what is wrong with it
  std::string skipped{};  ///< why it is not measured although nothing is

  [[nodiscard]] bool usable() const { return !failure && problem.empty() && skipped.empty(); }
  /// Runs a step of it. An exception becomes the candidate's problem and goes no further.
  template <class Step>
  void attempt(Step&& step) {
    if (!usable()) return;
    try {
      step();
    } catch (const std::exception& error) {
      failure = std::current_exception();
      problem = error.what();
    }
  }
};

/// The plan space of a task, the default first, each lowered and estimated for runs of `elements`
/// elements, on all cores. Plans that are estimated to take more than codegen::kHopeless times the
/// default's time are skipped, unless the task asks for all plans.
std::vector<Candidate> make_candidates(const TuningTask& task, std::int64_t elements);

/// Compiles candidates by threads of its own. The default comes first, then the lowest estimate, of
/// equals the shortest program. A candidate that cannot be begun by the deadline, or would not be
/// done by then, is skipped. The default is always compiled.
class CandidateCompiler {
 public:
  CandidateCompiler(const TuningTask& task, std::vector<Candidate>& candidates,
                    std::optional<TuningClock::time_point> deadline);
  /// Gives up what was not begun and waits for the rest.
  ~CandidateCompiler();
  CandidateCompiler(const CandidateCompiler&) = delete;
  CandidateCompiler& operator=(const CandidateCompiler&) = delete;

  /// How many it compiles.
  [[nodiscard]] std::size_t size() const { return order_.size(); }
  /// Waits for the next candidate that is compiled, failed or skipped; nothing behind the last one.
  std::optional<std::size_t> next();

 private:
  void work();
  const TuningTask& task_;
  std::vector<Candidate>& candidates_;
  std::optional<TuningClock::time_point> deadline_;
  std::vector<std::size_t> order_;
  std::atomic<std::size_t> begun_{0};
  std::atomic<double> ms_per_value_{0};  // of the default's compilation
  std::size_t handed_out_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::size_t> finished_;
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace chainfold::runtime
