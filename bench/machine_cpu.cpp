#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

#include "chainfold/bench/cpu_memory.hpp"
#include "chainfold/bench/machines.hpp"
#include "chainfold/bench/peers_openmp.hpp"
#include "chainfold/bench/peers_std.hpp"
#include "chainfold/bench/reference.hpp"
#include "chainfold/runtime/jit/llvm.hpp"

namespace chainfold::bench {
namespace {

openmp::Type type_of(DType type) {
  switch (type) {
    case DType::f16: return openmp::Type::f16;
    case DType::bf16: return openmp::Type::bf16;
    case DType::f32: return openmp::Type::f32;
    case DType::f64: return openmp::Type::f64;
    case DType::i8: return openmp::Type::i8;
    default: return openmp::Type::i32;
  }
}

std::optional<openmp::Fold> fold_of(Op op) {
  switch (op) {
    case Op::sum: return openmp::Fold::sum;
    case Op::max: return openmp::Fold::max;
    case Op::argmax: return openmp::Fold::argmax;
    case Op::count_above: return openmp::Fold::count_above;
    case Op::mean_var: return openmp::Fold::mean_var;
    case Op::dot: return openmp::Fold::dot;
    case Op::min_max: return openmp::Fold::min_max;
    case Op::filtered_sum: return openmp::Fold::filtered_sum;
    default: return std::nullopt;
  }
}

std::optional<std_peer::Scan> scan_of(Op op) {
  switch (op) {
    case Op::inclusive_sum: return std_peer::Scan::inclusive_sum;
    case Op::exclusive_sum: return std_peer::Scan::exclusive_sum;
    case Op::inclusive_max: return std_peer::Scan::inclusive_max;
    default: return std::nullopt;
  }
}

class CpuContest final : public Contest {
 public:
  CpuContest(const Case& test, const std::vector<Way>& ways, const OurPlans& plans,
             const std::vector<Buffer>& inputs, const CpuCeilings& ceilings)
      : test_(test), names_(test.inputs()), inputs_(inputs), ceilings_(ceilings) {
    for (std::size_t i = 0; i < test.computation.outputs(); ++i)
      outputs_.emplace_back((test.output_size() + test.offset) *
                            size_of(test.computation.output_type(i)));
    const Checker checker(test);
    for (const Way& way : ways) prepare(way, plans, checker);
  }

  [[nodiscard]] const std::vector<Entrant>& entrants() const override { return entrants_; }

  std::vector<Timing> time(double seconds) override {
    std::vector<std::function<void()>> round;
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (entrants_[i].missing.empty()) round.push_back(runs_[i]);
    const auto times = test_.cached ? time_batches(round, seconds) : time_washed(round, seconds);
    std::vector<Timing> result(runs_.size());
    for (std::size_t i = 0, at = 0; i < runs_.size(); ++i) {
      if (!entrants_[i].missing.empty()) continue;
      result[i] = {median(times[at]), times[at].size()};
      ++at;
    }
    return result;
  }

  [[nodiscard]] std::optional<Ceilings> ceilings() const override { return among_; }
  std::optional<Energy> energy(std::size_t) override { return std::nullopt; }

 private:
  /// The ceilings take part.
  std::vector<std::vector<double>> time_washed(std::vector<std::function<void()>> round,
                                               double seconds) {
    round.emplace_back([&] { ceilings_.read(); });
    round.emplace_back([&] { ceilings_.copy(); });
    const auto wash = [&] {
      restore();
      ceilings_.wash();
    };
    double slowest = 0;
    for (const auto& times : time_rounds(round, 2, wash)) slowest = std::max(slowest, times.back());
    const auto repeats = static_cast<std::size_t>(std::clamp(seconds * 1e3 / slowest, 5.0, 100.0));
    const auto times = time_rounds(round, repeats, wash);
    among_ = Ceilings(ceilings_.bytes(), median(times.end()[-2]), median(times.end()[-1]));
    return times;
  }

  void prepare(const Way& way, const OurPlans& plans, const Checker& checker) {
    runs_.emplace_back();
    entrants_.push_back(make_entrant(way, [&](Entrant& entrant) {
      const double bound = way.ours()          ? load_ours(way, plans, entrant)
                           : test_.ragged      ? load_ragged_loop(entrant)
                           : is_scan(test_.op) ? load_std(entrant)
                                               : load_loop(entrant);
      if (entrant.missing.empty()) entrant.off = check(checker, bound);
    }));
  }

  double load_ours(const Way& way, const OurPlans& plans, Entrant& entrant) {
    const Kernel kernel = plans.compile(test_, way);
    LaunchArgs args{.elements = test_.elements};
    for (std::size_t i = 0; i < names_.size(); ++i)
      args.inputs.push_back(Binding(names_[i].name, input(i), names_[i].type));
    if (test_.ragged) args.inputs.push_back(test_.ragged->binding(test_.ragged->data()));
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      args.outputs.push_back(
          OutputBinding(output(i), test_.computation.output_type(i), test_.output_size()));
    }
    const auto scratch = std::make_shared<Buffer>(kernel.scratch_bytes(args));
    args.scratch = {scratch->as<void>(), scratch->bytes()};
    kernel.prepare(args);
    entrant.plan = kernel.plan();  // of the variant for so many elements
    runs_.back() = [kernel, args, scratch] { kernel.launch(args); };
    return plans.bound_u(test_, way, kernel);
  }

  double load_loop(Entrant& entrant) {
    const std::int64_t segments = test_.segments(), length = test_.elements / segments;
    const double bound = static_cast<double>(std::min<std::int64_t>(length, 1 << 20));
    if (test_.columns > 0) {
      const auto loop = [=, type = type_of(test_.in), x = input(0), out = output(0)] {
        return openmp::sum_columns(type, x, length, segments, out);
      };
      keep(loop, "a loop along rows with omp simd", entrant);
      return bound;
    }
    void* second = outputs_.size() > 1 ? output(1) : nullptr;
    const void* y = inputs_.size() > 1 ? input(1) : nullptr;
    const auto loop = [=, what = fold_of(test_.op).value(), type = type_of(test_.in), x = input(0),
                       whole = test_.segment == 0, first = output(0)] {
      return openmp::fold(what, type, x, y, segments, length, whole, first, second);
    };
    keep(loop, "a loop with omp simd", entrant);
    return bound;
  }

  double load_ragged_loop(Entrant& entrant) {
    const auto loop = [type = type_of(test_.in), x = input(0), out = output(0),
                       scan = is_scan(test_.op), offsets = test_.ragged->offsets.data(),
                       segments = test_.segments()] {
      return openmp::sum_ragged(type, x, offsets, segments, scan, out);
    };
    keep(loop,
         test_.ragged->has_flags() ? "a loop over segments that offsets tell it, each of one thread"
                                   : "a loop over segments, each of one thread",
         entrant);
    return static_cast<double>(test_.ragged->longest());
  }

  double load_std(Entrant& entrant) {
    const std::int64_t segments = test_.segments(), length = test_.elements / segments;
    const auto loop = [=, function = std_peer::load(), what = scan_of(test_.op).value(),
                       type = type_of(test_.in), x = input(0), out = output(0),
                       threads = runtime::cpu_plugin().threads] {
      return function(what, type, x, out, segments, length, threads);
    };
    const bool each = segments >= runtime::cpu_plugin().threads;
    keep(loop, each ? "std::for_each(par) over scans" : "scans with std::execution::par", entrant);
    if (!entrant.missing.empty()) entrant.missing = "std::execution::par has no such scan here";
    return peer_scan_bound_u(test_, 2);  // prefixes of blocks are stored before they are completed
  }

  /// Where an input is read: a scan in place finds it in its output.
  [[nodiscard]] void* input(std::size_t i) const {
    if (test_.in_place) return output(i);
    return inputs_[i].as<char>() + test_.offset * size_of(names_[i].type);
  }
  [[nodiscard]] void* output(std::size_t i) const {
    return outputs_[i].as<char>() + test_.offset * size_of(test_.computation.output_type(i));
  }
  void restore() const {
    if (!test_.in_place) return;
    std::memcpy(outputs_[0].as<void>(), inputs_[0].as<void>(),
                static_cast<std::size_t>(outputs_[0].bytes()));
  }

  template <class Loop>
  void keep(const Loop& loop, const char* what, Entrant& entrant) {
    if (!loop()) entrant.missing = "the compiler has no such type";
    entrant.plan = what;
    runs_.back() = loop;
  }

  Deviation check(const Checker& checker, double bound_u) {
    for (const Buffer& output : outputs_)
      std::memset(output.as<char>(), 0xff, static_cast<std::size_t>(output.bytes()));
    restore();
    runs_.back()();
    const auto values_of = [&](std::int64_t segment) {
      std::vector<std::vector<std::byte>> values;
      for (std::size_t i = 0; i < outputs_.size(); ++i) {
        const auto size = static_cast<std::size_t>(size_of(test_.computation.output_type(i)));
        values.emplace_back(size);
        std::memcpy(values.back().data(),
                    static_cast<char*>(output(i)) + static_cast<std::size_t>(segment) * size, size);
      }
      return values;
    };
    return checker.check(values_of, bound_u);
  }

  const Case& test_;
  std::vector<Case::Input> names_;
  const std::vector<Buffer>& inputs_;
  const CpuCeilings& ceilings_;
  std::vector<Buffer> outputs_;
  std::vector<Entrant> entrants_;
  std::vector<std::function<void()>> runs_;
  std::optional<Ceilings> among_;
};

class CpuMachine final : public Machine {
 public:
  CpuMachine(std::int64_t bytes, bool tune)
      : bytes_(bytes), plans_(target("cpu"), tune), ceilings_(bytes) {}

  Ceilings ceilings(const Case& test) override {
    return test.cached ? ceilings_.measure_cached(test.bytes_read(), 9) : ceilings();
  }
  Ceilings ceilings() const { return ceilings_.measure(9); }

  std::vector<Way> ways(const Case& test) override {
    std::vector<Way> result = plans_.ways(test);
    if (test.ragged) {
      const bool has_loop = test.in == DType::f32 || test.in == DType::f64 || test.in == DType::i32;
      if (has_loop) result.push_back({.impl = "openmp-simd", .kind = {}, .strategy = {}});
      return result;
    }
    const bool known =
        is_scan(test.op) ? scan_of(test.op).has_value() : fold_of(test.op).has_value();
    if (!has_peers(test.op) || !known) return result;
    const char* const peer = is_scan(test.op) ? "std-par" : "openmp-simd";
    result.push_back({.impl = peer, .kind = {}, .strategy = {}});
    return result;
  }

  std::unique_ptr<Contest> prepare(const Case& test, const std::vector<Way>& ways) override {
    if (std::vector<Source> sources = test.sources(); sources != sources_) {
      constexpr std::int64_t kSlack = 64;  // for inputs that do not begin on a line
      sources_.clear();
      inputs_.clear();
      for (const Case::Input& input : test.inputs())
        inputs_.push_back(make_input(input, bytes_ / size_of(input.type) + kSlack));
      sources_ = std::move(sources);
    }
    return std::make_unique<CpuContest>(test, ways, plans_, inputs_, ceilings_);
  }

 private:
  std::int64_t bytes_;
  OurPlans plans_;
  CpuCeilings ceilings_;
  std::vector<Source> sources_;
  std::vector<Buffer> inputs_;
};

}  // namespace

std::int64_t cpu_cached_bytes() {
  const long second_level = ::sysconf(_SC_LEVEL2_CACHE_SIZE);  // of one core
  const std::int64_t bytes = second_level > 0 ? second_level : 1 << 20;
  return bytes / 2 * static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
}

void describe_cpu(Report& head) {
  const chainfold_cpu_plugin& plugin = runtime::cpu_plugin();
  head.device = fmt::format("CPU {}, {} threads, {}-bit vectors", plugin.host_cpu, plugin.threads,
                            plugin.vector_bits);
  head.driver = fmt::format("LLVM {}", plugin.llvm_version);
  head.cuda = "none";
  openmp::set_threads(plugin.threads);
}

std::unique_ptr<Machine> make_cpu_machine(std::int64_t bytes, bool tune, Report& head) {
  describe_cpu(head);
  auto machine = std::make_unique<CpuMachine>(bytes, tune);
  head.before = head.after = machine->ceilings();
  return machine;
}

}  // namespace chainfold::bench
