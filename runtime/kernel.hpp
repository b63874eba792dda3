// Kernel: a compiled computation, and what can be done with it.
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

/// A target by name:
///
///     "cpu"                  the CPU
///     "gpu" or "gpu:1"       a device of this machine; throws DeviceError where there is none
///     "sm_75" to "sm_120"    an architecture, to explain a kernel for it without having it
///
/// Throws UserError(invalid_argument) for another name.
Target target(std::string_view name);

/// What compile() respects. An option that is not supported yet is a UserError, never ignored.
struct Options {
  std::optional<Target> target{};  ///< default: the first GPU if there is one, else the CPU
  Accuracy accuracy = Accuracy::accurate;
  NonFinite nonfinite = NonFinite::ieee;
  Determinism determinism = Determinism::run_to_run;
  Tuning tuning = Tuning::cached;
  /// A plan as Kernel::plan() gives it, for all segment sizes; empty: chosen. The first segment
  /// size for which the plan is not legal throws UserError(unsupported). The message says what is
  /// out of range and what the strategy serves.
  std::string plan{};
  /// Elements that a tuning measures with. With 0 they are as many as 2 GiB of inputs and outputs
  /// hold, on a CPU 256 MiB. They are fewer where there is no memory or no time for so many.
  std::int64_t tuning_elements = 0;
  /// About how many seconds a tuning may take. When they are over, the best plan so far wins; a
  /// compilation or a run under way is finished first. The default plan is always measured. 0: as
  /// long as it takes to measure every legal plan. That includes hopeless ones, which are left out
  /// otherwise: by an estimate they take more than twice the default's time. Tuning::measure
  /// measures anew where a record was made in less time that did not suffice.
  double tuning_seconds = 2;
  /// Called with the progress of a tuning, by the thread that asked for the kernel and no other.
  /// `progress_to_stderr` (runtime/tuning/progress.hpp) shows it. It is not called for a tuning of
  /// another thread, for which this one waits. An exception that it throws ends the tuning, leaves
  /// no record, and comes out of the call that asked for the kernel. Threads that waited for the
  /// same tuning measure themselves then.
  std::function<void(const TuningProgress&)> on_tuning{};
  /// On a CPU: whether code comes in two tiers (docs/decisions/0019-first-results.md). Baseline
  /// code is compiled before the first launch, in a fraction of the time. Optimised code is
  /// compiled beside launches by a thread of the library's own, once the kernel has lived for as
  /// long as its baseline took. Results are the same, bit for bit, but for which NaN. False:
  /// optimised code alone, at once. Tuning measures that in any case.
  bool tiered = true;
};

/// The vector that run() returns for an output type: std::vector<T>, bytes for bool.
template <class T>
using HostVector = std::vector<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;

/// Which launches Kernel::prepare is for: of so many elements, or of any number up to these.
enum class Sizes : std::uint8_t { exactly, up_to };

/// A plan in figures.
struct PlanFacts {
  std::string plan{};         ///< the decisions; Options::plan takes it
  std::string strategy{};     ///< its first word: "rows", "parts", "staged", ...
  bool tensor_cores = false;  ///< some fold runs on matrix instructions
  bool lanes = false;         ///< some fold is added up lane by lane
  int launches = 0;           ///< kernels a call
  /// The largest error bound that is proven for a fold, in units of 2^-24 (2^-53 for f64) times the
  /// sum of absolute values. It is 0 where all folds with a proven bound are exact.
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

/// A computation bound to a target. Copies share one state; all members are thread-safe.
///
/// Code for a segment size is compiled when it is first needed. This is at compile() where the
/// expression fixes the size, else at the first run, launch or prepare() with it. Some computations
/// may have code of their own for few elements (a size class):
///
///     folds and scans of the whole input, folds of columns, partial last segments
///     segments on a GPU: launches of up to 128 MiB
///     segments on a CPU: scans of long ones, and on some processors folds
///
/// Where they do, compile() compiles nothing. The first run, launch or prepare() of a number of
/// elements compiles what that number needs.
///
/// The code is unloaded with the last copy. Keep one until what launch() queued has run, and as
/// long as a CUDA graph holds it.
class Kernel {
 public:
  struct State;  ///< opaque
  /// Runs on host memory: spans in, vectors out. The result is always a tuple, in the order of
  /// over's outputs. An output has one value a segment, or one an element where it scans. Every
  /// input must have the same length; parameters are bound by name like inputs. Throws UserError
  /// for bindings that do not fit the expression (nothing is run then).
  ///
  /// On a GPU the data goes through in pieces, so it may be larger than the device's memory. These
  /// lie on the device as a whole:
  ///
  ///     scans of the whole input, and folds of it by one cluster
  ///     scans of segments with more than 64 MiB of inputs and outputs
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
  /// values. An output with one value an element may be the memory of an input whose elements have
  /// the same size. That memory then holds the output. Returns the number of segments. Where the
  /// data tell it (cf::heads), outputs may have less room than output_count() says. Throws
  /// UserError(too_small) if they have less than there are segments; what fits is written.
  std::int64_t run_into(const CallBindings& bindings, const Outputs& outputs) const;
  /// The same into ranges, one an output: vectors, spans or arrays of its type (bytes for bool).
  template <runtime::OutputArray... R>
    requires(sizeof...(R) > 0)
  std::int64_t run_into(const CallBindings& bindings, R&&... arrays) const {
    return run_into(bindings, Outputs{OutputBinding(arrays)...});
  }

  /// The number of segments of these bindings: the values of an output that has one a segment.
  /// Where the data tell it (cf::heads), the most that there may be: the number of elements.
  [[nodiscard]] std::int64_t output_count(const CallBindings& bindings) const;
  /// Values of one output for these bindings: segments, or elements. Throws std::out_of_range for
  /// an output that there is not.
  [[nodiscard]] std::int64_t output_count(const CallBindings& bindings, std::size_t output) const;

  /// Queues the kernel on memory of its target: device pointers on a GPU, host pointers on the CPU,
  /// where it returns when it is done. On a GPU no device memory is allocated and nothing is
  /// synchronised. Once prepare(args, Sizes::up_to) has run, launches of up to that many elements
  /// compile nothing either, and can be captured in a CUDA graph.
  ///
  /// Throws UserError before anything is queued. Memory that was the device's in an earlier launch
  /// is not checked again. If it was freed since, only the driver can report that.
  ///
  /// From sm_90 on a launch may be programmatic: it starts while the kernel before it on the stream
  /// still runs. It waits for the end of that kernel before it touches memory. Your own kernels
  /// between a writer and this launch may be launched programmatically, too. They must wait as
  /// well, as CUDA asks: a kernel for which they do not wait may not have ended.
  void launch(const LaunchArgs& args) const;
  /// Bytes of scratch that launch needs for these elements and parameters; 0 for most segmented
  /// folds. More elements may need less: ask for every size that is launched.
  [[nodiscard]] std::int64_t scratch_bytes(const LaunchArgs& args) const;
  /// Bytes that LaunchArgs::carry_in and carry_out hold; 0 where nothing goes on from launch to
  /// launch. Their contents are for the same computation, target and build of this library alone.
  [[nodiscard]] std::int64_t carry_bytes() const;
  /// Compiles and loads what launch needs, and returns when a launch takes no longer than any later
  /// one (Options::tiered).
  ///
  ///     Sizes::exactly   for these elements, parameters and alignments
  ///     Sizes::up_to     for any number of elements up to these, at any alignment, with these
  ///                      parameters, and with the strides of inputs that are bound with some
  ///
  /// `Sizes::up_to` compiles at most 16 variants. Where there would be more, launches at alignments
  /// between the lowest and the widest use the code of the lowest; so ask scratch_bytes()
  /// afterwards. Throws UserError for a
  /// negative count, and Sizes::up_to for more elements than the memory of the device holds.
  void prepare(const LaunchArgs& args, Sizes sizes = Sizes::exactly) const;

  /// What the kernel does, with registers where the compiler is at hand; see chainfold::explain.
  /// The text is about the variant compiled last and the plan that it runs: pinned, tuned or by
  /// rules. Before any is compiled it is about the plan that compile() chose, or else about that
  /// for segments (or columns) of 256.
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] const Target& target() const;
  /// "NVIDIA H200" or "CPU sapphirerapids, 16 threads, 512-bit vectors".
  [[nodiscard]] std::string device_name() const;
  /// The plan of the variant compiled last as a text: strategy, lanes, loads, units, error bounds.
  /// Where compile() compiles none, it is at first the plan for any number of elements. Empty
  /// before a plan is chosen.
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
  /// Throws: there is no memory for a vector of so many values of `bytes` each, for output i.
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
    const std::int64_t segments = run_into(bindings, outputs);
    (shrink(std::get<I>(results), I, segments), ...);
  }
  /// Whether the data tell how many values output `o` has.
  [[nodiscard]] bool is_counted(std::size_t output) const;
  template <class T>
  void shrink(std::vector<T>& values, std::size_t i, std::int64_t segments) const {
    if (!is_counted(i)) return;
    values.resize(static_cast<std::size_t>(segments));
    values.shrink_to_fit();
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
