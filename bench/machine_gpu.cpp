#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>

#include "chainfold/bench/energy_nvml.hpp"
#include "chainfold/bench/gpu_case.hpp"
#include "chainfold/bench/machines.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#ifdef CHAINFOLD_BENCH_CUB
#include "chainfold/bench/peers_cub.hpp"
#endif

namespace chainfold::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// What an Entrant needs to be launched on a set of memory.
struct Runner {
  std::optional<Kernel> kernel;  // keeps the code loaded
  runtime::DeviceBuffer scratch;
  std::function<void(std::int64_t set)> launch;
};

/// What moving bytes alone takes, measured when it is first asked for.
class MemoryEnergy {
 public:
  MemoryEnergy(const EnergyCounter& counter, const GpuCeilings& ceilings,
               const runtime::Context& context)
      : counter_(counter), ceilings_(ceilings), context_(context) {}

  /// Joules, like Ceilings::least_ms: reads at what reading takes, then writes at what copying
  /// takes beyond it. Nothing where the device does not tell.
  std::optional<double> of(std::int64_t read, std::int64_t written) {
    if (!measured_) {
      measured_ = true;
      const auto bytes = static_cast<double>(ceilings_.bytes());
      const Ceilings rates = ceilings_.measure(3);
      const auto joules = [&](double ms, const std::function<void()>& queue) {
        return counter_.joules_of(context_, ceilings_.stream(), ms, queue);
      };
      const auto reading = joules(bytes / rates.read_gbps * 1e-6, [&] { ceilings_.read(); });
      const auto copying = joules(2 * bytes / rates.copy_gbps * 1e-6, [&] { ceilings_.copy(); });
      if (reading && copying) {
        a_byte_read_ = *reading / bytes;
        a_byte_written_ = *copying / bytes - *a_byte_read_;
      }
    }
    if (!a_byte_read_) return std::nullopt;
    return static_cast<double>(read) * *a_byte_read_ +
           static_cast<double>(written) * a_byte_written_;
  }

 private:
  const EnergyCounter& counter_;
  const GpuCeilings& ceilings_;
  const runtime::Context& context_;
  bool measured_ = false;
  std::optional<double> a_byte_read_;  // joules
  double a_byte_written_ = 0;
};

class GpuContest final : public Contest {
 public:
  GpuContest(const Case& test, const std::vector<Way>& ways, const OurPlans& plans,
             const std::vector<runtime::DeviceBuffer>& inputs, const GpuCeilings& ceilings,
             const EnergyCounter& energy, MemoryEnergy& memory_energy,
             const runtime::Context& context)
      : test_(test),
        ceilings_(ceilings),
        energy_(energy),
        memory_energy_(memory_energy),
        context_(context),
        stream_(ceilings.stream()),
        memory_(test, inputs, 64, context, stream_) {
    const Checker checker(test);
    for (const Way& way : ways) prepare(way, plans, checker);
  }

  [[nodiscard]] const std::vector<Entrant>& entrants() const override { return entrants_; }

  std::vector<Timing> time(double seconds) override {
    std::vector<std::vector<double>> times(entrants_.size());
    rounds(std::vector<std::size_t>(entrants_.size(), 2), times);  // how long they take
    std::vector<std::size_t> repeats(entrants_.size());
    for (std::size_t i = 0; i < entrants_.size(); ++i) {
      if (times[i].empty()) continue;
      repeats[i] = repeats_of(times[i].back(), seconds);
      times[i].clear();
    }
    rounds(repeats, times);
    std::vector<Timing> result(entrants_.size());
    for (std::size_t i = 0; i < entrants_.size(); ++i)
      if (!times[i].empty()) result[i] = {median(times[i]), times[i].size()};
    timings_ = result;
    return result;
  }

  std::optional<Energy> energy(std::size_t entrant) override {
    if (test_.in_place) return std::nullopt;
    const auto used = energy_.joules_of(context_, stream_, timings_[entrant].ms,
                                        [&] { runners_[entrant]->launch(next_set()); });
    if (!used) return std::nullopt;
    const auto moving = memory_energy_.of(test_.bytes_read(), test_.bytes_written());
    if (!moving) return std::nullopt;
    const double to_pj = 1e12 / static_cast<double>(test_.elements);
    return Energy{.pj = *used * to_pj, .ceilings_pj = *moving * to_pj};
  }

 private:
  static std::size_t repeats_of(double ms, double seconds) {
    constexpr double kSlow = 20, kMost = 300;
    return static_cast<std::size_t>(std::clamp(seconds * 1e3 / ms, ms > kSlow ? 3.0 : 9.0, kMost));
  }

  void prepare(const Way& way, const OurPlans& plans, const Checker& checker) {
    auto runner = std::make_unique<Runner>();
    entrants_.push_back(make_entrant(way, [&](Entrant& entrant) {
      const double bound =
          way.ours() ? load_ours(way, plans, entrant, *runner) : load_cub(way, entrant, *runner);
      if (!entrant.missing.empty()) return;
      entrant.off = memory_.check(checker, bound, way.as_published, [&] { runner->launch(0); });
    }));
    runners_.push_back(std::move(runner));
  }

  double load_ours(const Way& way, const OurPlans& plans, Entrant& entrant, Runner& runner) {
    runner.kernel = plans.compile(test_, way);
    const std::int64_t bytes = runner.kernel->scratch_bytes(memory_.args(0));
    entrant.plan = runner.kernel->plan();  // of the variant for so many elements
    runner.scratch = runtime::DeviceBuffer(context_, static_cast<std::size_t>(bytes));
    std::vector<LaunchArgs> sets;
    for (std::int64_t set = 0; set < memory_.sets(); ++set) {
      sets.push_back(memory_.args(set));
      sets.back().scratch = {runner.scratch.data(), bytes};
    }
    runner.launch = [kernel = *runner.kernel, sets = std::move(sets)](std::int64_t set) {
      kernel.launch(sets[static_cast<std::size_t>(set)]);
    };
    return plans.bound_u(test_, way, *runner.kernel);
  }

#ifdef CHAINFOLD_BENCH_CUB
  double load_cub(const Way& way, Entrant& entrant, Runner& runner) {
    const auto* const offsets = static_cast<const std::int64_t*>(
        test_.ragged && !test_.ragged->has_flags() ? memory_.told() : nullptr);
    const cub_peer::Problem problem{test_.op,      test_.in, test_.out,        test_.elements,
                                    test_.segment, offsets,  test_.segments(), memory_.keys()};
    const auto form = test_.segment == 0          ? cub_peer::Form::whole
                      : way.impl == "cub-keys"    ? cub_peer::Form::keys
                      : way.impl == "cub-offsets" ? cub_peer::Form::offsets
                                                  : cub_peer::Form::fixed;
    if (!cub_peer::has(problem, form)) {
      entrant.missing = fmt::format("CUB {} has no such {}", cub_peer::version(),
                                    is_scan(test_.op) ? "scan" : "reduction");
      return 0;
    }
    entrant.plan = cub_peer::call(problem, form);
    const auto call = [this, problem, form](void* temporary, std::size_t& bytes, std::int64_t set) {
      const void* inputs[2] = {};
      void* outputs[2] = {};
      for (std::size_t i = 0; i < memory_.inputs().size(); ++i) inputs[i] = memory_.input(i, set);
      for (std::size_t i = 0; i < test_.computation.outputs(); ++i)
        outputs[i] = memory_.output(i, set);
      const std::string error =
          cub_peer::run(problem, form, temporary, bytes, inputs, outputs, stream_.handle());
      if (!error.empty()) throw DeviceError(ErrorCode::device_failed, "CUB: " + error);
    };
    std::size_t bytes = 0;
    call(nullptr, bytes, 0);
    // A null pointer would ask for the size again.
    runner.scratch = runtime::DeviceBuffer(context_, std::max<std::size_t>(bytes, 256));
    runner.launch = [call, bytes, temporary = runner.scratch.data()](std::int64_t set) mutable {
      call(temporary, bytes, set);
    };
    if (is_scan(test_.op)) return peer_scan_bound_u(test_, 1);
    // Sums of this many elements are added one by one at most.
    if (test_.ragged)
      return static_cast<double>(std::min<std::int64_t>(test_.ragged->longest(), 1 << 20));
    const std::int64_t length = test_.elements / test_.segments();
    return static_cast<double>(std::min<std::int64_t>(length, 4096));
  }
#else
  double load_cub(const Way&, Entrant& entrant, Runner&) {
    entrant.missing = "this program was built without nvcc";
    return 0;
  }
#endif

  /// Every entrant that is there, as often as its count says, round by round, and each round begins
  /// with another one: behind the reads caches are as they leave them. Each timed launch follows an
  /// untimed one of its own, so that what it leaves to the memory is what it finds.
  void rounds(const std::vector<std::size_t>& counts, std::vector<std::vector<double>>& times) {
    std::vector<runtime::Event> begins, ends;
    std::size_t most = 0;
    for (std::size_t i = 0; i < entrants_.size(); ++i) {
      begins.emplace_back(context_, runtime::Event::Timing::on);
      ends.emplace_back(context_, runtime::Event::Timing::on);
      if (entrants_[i].missing.empty()) most = std::max(most, counts[i]);
    }
    const auto takes_part = [&](std::size_t i, std::size_t round) {
      return entrants_[i].missing.empty() && round < counts[i];
    };
    for (std::size_t r = 0; r < most; ++r) {
      // An untimed and a timed launch, of up to three kernels, what restores the input, and events.
      constexpr std::size_t kCallsOfEach = 10;
      ceilings_.hold(kCallsOfEach * entrants_.size());
      ceilings_.read();
      for (std::size_t turn = 0; turn < entrants_.size(); ++turn) {
        const std::size_t i = (r + turn) % entrants_.size();
        if (!takes_part(i, r)) continue;
        launch_next(i);
        memory_.restore(next_set());
        begins[i].record(stream_.handle());
        runners_[i]->launch(set_);
        ends[i].record(stream_.handle());
      }
      stream_.synchronize();
      for (std::size_t i = 0; i < entrants_.size(); ++i)
        if (takes_part(i, r)) times[i].push_back(ends[i].milliseconds_since(begins[i]));
    }
  }

  void launch_next(std::size_t entrant) {
    memory_.restore(next_set());
    runners_[entrant]->launch(set_);
  }

  std::int64_t next_set() { return set_ = (set_ + 1) % memory_.sets(); }

  const Case& test_;
  const GpuCeilings& ceilings_;
  const EnergyCounter& energy_;
  MemoryEnergy& memory_energy_;
  const runtime::Context& context_;
  const runtime::Stream& stream_;
  GpuCase memory_;
  std::vector<Entrant> entrants_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Timing> timings_;
  std::int64_t set_ = 0;
};

class GpuMachine final : public Machine {
 public:
  GpuMachine(std::int64_t bytes, bool tune)
      : context_(runtime::Context::of(0)),
        scope_(context_),
        bytes_(bytes),
        plans_(target("gpu"), tune),
        kernels_(context_),
        ceilings_(context_, kernels_, bytes),
        energy_(context_.device().uuid),
        memory_energy_(energy_, ceilings_, context_) {}

  Ceilings ceilings(const Case&) override { return ceilings(); }

  Ceilings ceilings() {
    // Clocks fall while the host compiles; they are back after a few dozen milliseconds of work.
    const auto start = Clock::now();
    while (Clock::now() - start < std::chrono::milliseconds(40)) {
      for (int i = 0; i < 8; ++i) ceilings_.read();
      ceilings_.stream().synchronize();
    }
    return ceilings_.measure(11);
  }

  std::vector<Way> ways(const Case& test) override {
    std::vector<Way> result = plans_.ways(test);
    if (test.columns > 0) return result;  // CUB folds what is contiguous
    if (test.ragged) {
      const char* way = test.ragged->has_flags() ? "cub-keys" : "cub-offsets";
      result.push_back({.impl = way, .kind = {}, .strategy = {}});
      return result;
    }
    if (!has_peers(test.op)) return result;
    if (is_scan(test.op)) {
      if (test.segment == 0) {
        result.push_back({.impl = "cub", .kind = {}, .strategy = {}});
      } else {
        result.push_back({.impl = "cub-keys", .kind = {}, .strategy = {}});
        result.push_back({.impl = "cub-offsets", .kind = {}, .strategy = {}});
      }
      return result;
    }
    result.push_back({.impl = "cub", .kind = {}, .strategy = {}});
    // Below, CUB takes hundreds of milliseconds for what a memory-bound kernel does in one.
    constexpr std::int64_t kShortest = 8;
    if (test.segment >= kShortest)
      result.push_back({.impl = "cub-offsets", .kind = {}, .strategy = {}});
    return result;
  }

  std::unique_ptr<Contest> prepare(const Case& test, const std::vector<Way>& ways) override {
    if (std::vector<Source> sources = test.sources(); sources != sources_) {
      inputs_.clear();
      sources_.clear();
      constexpr std::int64_t kSlack = 256;  // for inputs that do not begin on a line
      const std::int64_t elements = bytes_ / size_of(test.in);
      inputs_ = make_inputs(test, std::max(elements, test.elements) + kSlack, kernels_, context_,
                            ceilings_.stream().handle());
      sources_ = std::move(sources);
    }
    return std::make_unique<GpuContest>(test, ways, plans_, inputs_, ceilings_, energy_,
                                        memory_energy_, context_);
  }

  void describe(Report& head) {
    const auto version = [](int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); };
    head.device = fmt::format("{} (sm_{})", context_.device().name, context_.device().arch());
    head.driver = version(context_.device().driver_version);
    head.cuda = "NVRTC " + version(runtime::nvrtc_version());
    head.before = ceilings();
    head.after = head.before;
#ifdef CHAINFOLD_BENCH_CUB
    head.peers = "CUB " + cub_peer::version();
#endif
    progress("ceilings by: " + ceilings_.description());
    if (!energy_.problem().empty()) progress(energy_.problem());
  }

 private:
  const runtime::Context& context_;
  const runtime::ContextScope scope_;
  std::int64_t bytes_;
  OurPlans plans_;
  GpuKernels kernels_;
  GpuCeilings ceilings_;
  EnergyCounter energy_;
  MemoryEnergy memory_energy_;
  std::vector<Source> sources_;
  std::vector<runtime::DeviceBuffer> inputs_;
};

}  // namespace

std::unique_ptr<Machine> make_gpu_machine(std::int64_t bytes, bool tune, Report& head) {
  auto machine = std::make_unique<GpuMachine>(bytes, tune);
  machine->describe(head);
  return machine;
}

}  // namespace chainfold::bench
