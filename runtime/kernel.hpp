// Kernel: a compiled computation, and everything that can be done with it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/request.hpp"
#include "chainfold/codegen/target/target.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/runtime/cache/statistics.hpp"
#include "chainfold/runtime/kernel_rules.hpp"
#include "chainfold/runtime/launch/bindings.hpp"
#include "chainfold/runtime/tuning/result.hpp"

namespace chainfold {

/// Where a kernel runs or is explained for: see target().
using Target = codegen::Target;

/// A target by name: "cpu"; "gpu" or "gpu:1", a device of this machine (throws DeviceError where
/// there is none); or "sm_75" to "sm_120", an architecture to explain a kernel for without having
/// it.
Target target(std::string_view name);

/// What compile() should respect. An option that is not supported yet is a UserError, never
/// ignored.
struct Options {
  std::optional<Target> target{};  ///< default: the first GPU if there is one, else the CPU
  Accuracy accuracy = Accuracy::accurate;
  NonFinite nonfinite = NonFinite::ieee;
  Determinism determinism = Determinism::run_to_run;
  Tuning tuning = Tuning::cached;
  /// A plan as Kernel::plan() tells it, for all segment sizes; empty: chosen. Throws
  /// UserError(unsupported) at the first segment size that the plan is not legal for, with what is
  /// out of range and what the strategy serves.
  std::string plan{};
  /// Elements that a tuning measures with; 0: as many as two gibibytes of inputs and outputs
  /// hold (on a CPU 256 MiB; less where there is no memory for so many).
  std::int64_t tuning_elements = 0;
  /// What a tuning may take, in seconds, about: when they are over the best plan so far wins, and a
  /// compilation or run under way is ended first. The default plan is always measured. 0: as long
  /// as it takes to measure every legal plan, those included that an estimate calls hopeless (more
  /// than twice the default's time), which are left out otherwise. Tuning::measure measures anew
  /// where a record was made in less time that did not suffice.
  double tuning_seconds = 2;
  /// Told about the progress of a tuning, by the thread that asked for the kernel and no other;
  /// progress_to_stderr (runtime/tuning/progress.hpp) shows it. Who waits for a tuning of another
  /// thread is told nothing. What it throws ends this tuning, leaves no record, and comes out of
  /// the call that asked for the kernel; others who waited for the same tuning measure themselves.
  std::function<void(const TuningProgress&)> on_tuning{};
  /// On a CPU: whether code is compiled twice, in a third of the time before its first launch and
  /// well beside the launches, by a thread of the library's own, once it has lived for as long as
  /// that. Results are the same, bit for bit, but for which NaN. Else it is compiled well at once,
  /// as what tuning measures is.
  bool tiered = true;
};

/// The vector that run() returns for an output type: std::vector<T>, bytes for bool.
template <class T>
using HostVector = std::vector<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;

/// Which launches Kernel::prepare is for: of so many elements, or of any number up to these.
enum class Sizes : std::uint8_t { exactly, up_to };

/// What can be said of a plan in figures.
struct PlanFacts {
  std::string plan{};         ///< the decisions; Options::plan takes it
  std::string strategy{};     ///< its first word: "rows", "parts", "staged", ...
  bool tensor_cores = false;  ///< some fold runs on matrix instructions
  bool lanes = false;         ///< some fold is added up lane by lane
  int launches = 0;           ///< kernels a call
  /// The largest error bound that is proven for a fold, in units of 2^-24 (2^-53 for f64) times the
  /// sum of absolute values; 0 where all folds with a proven bound are exact.
  double error_bound_u = 0;
  bool bounded = true;  ///< every fold is exact or has a proven bound
};

/// Figures about a kernel's compilations so far.
struct KernelStats {
  std::int64_t compiled = 0;   ///< variants compiled by this process for this kernel
  std::int64_t reused = 0;     ///< variants found in the process's cache
  double compile_ms = 0;       ///< spent in NVRTC or LLVM
  std::int64_t from_disk = 0;  ///< variants found in the cache on disk; see cache_statistics()
  std::int64_t optimised = 0;  ///< variants whose code is as good as it gets (Options::tiered)
  double optimise_ms = 0;      ///< spent in LLVM beside launches for that
};

/// A computation bound to a target. Copies share one state; all members are thread-safe. Code is
/// compiled for a segment size when it is first needed: at compile() where the expression fixes the
/// size, else at the first run, launch or prepare() with that size. Folds and scans over
/// everything, columns, partial last segments, and on a GPU launches of up to 128 MiB of segments
/// may have code of their own for few elements: then compile() compiles nothing, and the first run,
/// launch or prepare() of a number of elements what that needs. The code is unloaded with the last
/// copy: keep one until what launch() queued has run, and as long as a CUDA graph holds it.
class Kernel {
 public:
  struct State;  ///< opaque
  /// Runs on host memory: spans in, vectors out, always a tuple in the order of over's outputs, one
  /// value a segment or, of what scans, one an element. On a GPU the data goes through in pieces,
  /// so it may be larger than the device's memory; scans over whole(), or segments of tens of MiB,
  /// and folds of whole() by one cluster lie on the device as a whole. Every input must have
  /// the same length; parameters are bound by name like inputs. Throws UserError for bindings that
  /// do not fit the expression (nothing is run then).
  template <class... Out>
  std::tuple<HostVector<Out>...> run(const CallBindings& bindings) const {
    (void)runtime::RunTypesRule<Out...>{};
    ((void)ElementRule<Out>{}, ...);
    const std::array<DType, sizeof...(Out)> types{kDType<ElementOr<Out>>...};
    check_output_types(types.data(), sizeof...(Out));
    std::tuple<HostVector<Out>...> results;
    run_sized<ElementOr<Out>...>(bindings, results, std::index_sequence_for<Out...>{});
    return results;
  }
  /// Refused: bindings have names.
  template <class... Out, class... A>
    requires(!runtime::NamedBindings<A...>)
  std::tuple<HostVector<Out>...> run(const A&...) const {
    (void)runtime::NamedRule<A...>{};
    return {};
  }
  /// The same into arrays that the caller holds; number i needs room for output_count(bindings, i)
  /// values. An output with one value an element may be an input's memory, where the elements have
  /// one size; it then holds the output.
  void run_into(const CallBindings& bindings, const Outputs& outputs) const;
  /// The same into ranges, one an output: vectors, spans or arrays of its type (bytes for bool).
  template <runtime::OutputArray... R>
    requires(sizeof...(R) > 0)
  void run_into(const CallBindings& bindings, R&&... arrays) const {
    run_into(bindings, Outputs{OutputBinding(arrays)...});
  }

  /// The number of segments of these bindings: the values of an output that has one a segment.
  [[nodiscard]] std::int64_t output_count(const CallBindings& bindings) const;
  /// Values of one output for these bindings: segments, or elements. Throws std::out_of_range.
  [[nodiscard]] std::int64_t output_count(const CallBindings& bindings, std::size_t output) const;

  /// Queues the kernel on memory of its target (device pointers on a GPU, host pointers on the CPU,
  /// where it returns when it is done). On a GPU no device memory is allocated and nothing
  /// synchronised; once prepare(args, Sizes::up_to) has run, launches of up to that many elements
  /// compile nothing either, and can be captured in a CUDA graph. Throws UserError before anything
  /// is queued; memory that was the
  /// device's in an earlier launch is not asked about again, so what happens if it was freed since
  /// is for the driver to tell. From sm_90 on a launch may be programmatic: it starts while the
  /// kernel before it on the stream still runs, and waits for its end before it touches memory. (A
  /// kernel of yours that is launched so and stands between a writer and this launch must wait,
  /// too, as CUDA asks of it: what it does not wait for may not have ended.)
  void launch(const LaunchArgs& args) const;
  /// Bytes of scratch that launch needs for these elements and parameters; 0 for most segmented
  /// folds. More elements may need less: ask for every size that is launched.
  [[nodiscard]] std::int64_t scratch_bytes(const LaunchArgs& args) const;
  /// Bytes that LaunchArgs::carry_in and carry_out hold; 0 where nothing goes on from launch to
  /// launch. What they hold is for the same computation, target and build of this library.
  [[nodiscard]] std::int64_t carry_bytes() const;
  /// Compiles and loads what launch needs, and returns when a launch takes no longer than any later
  /// one (Options::tiered). Sizes::exactly: for these elements, parameters and alignments.
  /// Sizes::up_to: for launches of any number of elements up to these, at any alignment, with these
  /// parameters, and strides of inputs that are bound with some. Those compile at most 16 variants:
  /// where there would be more, such launches go by the code of another alignment or size class,
  /// and scratch_bytes() is asked for afterwards. Throws UserError for a negative count, or one of
  /// more elements than the memory of the device holds.
  void prepare(const LaunchArgs& args, Sizes sizes = Sizes::exactly) const;

  /// What the kernel does, with registers where the compiler is at hand; see chainfold::explain. It
  /// tells of the variant compiled last and of the plan that it runs, pinned, tuned or by rules;
  /// before that, of the one that compile() chose, or of that for segments (or columns) of 256.
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] const Target& target() const;
  /// "NVIDIA H200" or "CPU sapphirerapids, 16 threads, 512-bit vectors".
  [[nodiscard]] std::string device_name() const;
  /// The text of the plan of the variant compiled last, or of the one for any number of elements
  /// where compile() compiles none: strategy, lanes, loads, units, error bounds.
  [[nodiscard]] std::string plan_summary() const;
  /// The decisions behind it in a line that Options::plan takes: "rows warps=8 depth=1 ...".
  [[nodiscard]] std::string plan() const;
  /// The same in figures; empty before a plan is chosen.
  [[nodiscard]] PlanFacts plan_facts() const;
  /// What tuning found for the variant compiled last; nothing where none was used.
  [[nodiscard]] std::optional<TuningResult> tuning() const;
  [[nodiscard]] KernelStats stats() const;

 private:
  friend Kernel compile(const Computation& computation, const Options& options);
  explicit Kernel(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void check_output_types(const DType* types, std::size_t count) const;
  [[nodiscard]] std::vector<std::int64_t> output_counts(const Bindings& bindings) const;
  /// Of output i, a vector of so many values of `bytes` each cannot be had.
  [[noreturn]] static void refuse_output(std::size_t i, std::int64_t count, std::size_t bytes);
  template <class T>
  static T* sized(std::vector<T>& values, std::size_t i, std::int64_t count) {
    try {
      values.resize(static_cast<std::size_t>(count));
    } catch (const std::bad_alloc&) {
      refuse_output(i, count, sizeof(T));
    } catch (const std::length_error&) {
      refuse_output(i, count, sizeof(T));
    }
    return values.data();
  }
  template <class... Out, class Results, std::size_t... I>
  void run_sized(const Bindings& bindings, Results& results, std::index_sequence<I...>) const {
    const std::vector<std::int64_t> counts = output_counts(bindings);
    Outputs outputs;
    (outputs.push_back(
         OutputBinding(sized(std::get<I>(results), I, counts[I]), kDType<Out>, counts[I])),
     ...);
    run_into(bindings, outputs);
  }
  std::shared_ptr<State> state_;
};

/// Compiles a computation for the GPU if there is one, else the CPU, or for options.target.
/// Throws UserError for what is not supported, DeviceError where a compiler or the CPU plugin is
/// missing, JitError where a compiler refuses the generated code.
Kernel compile(const Computation& computation, const Options& options = {});

/// Refused: cf::compile takes what cf::over returns.
template <class E>
  requires(!std::convertible_to<const E&, const Computation&>)
Kernel compile(const E&, const Options& = {}) {
  (void)runtime::CompileRule<E>{};
  return compile(Computation(codegen::Graph{}));
}

}  // namespace chainfold
