// Kernel::State: what a Kernel's copies share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/plan_space.hpp"
#include "chainfold/runtime/arguments.hpp"
#include "chainfold/runtime/executable.hpp"
#include "chainfold/runtime/kernel.hpp"

namespace chainfold {

/// A kernel specialised for one segment size and alignment.
struct KernelVariant {
  codegen::PlanChoice choice;
  codegen::Compiled compiled;
  std::shared_ptr<const runtime::Executable> executable;
};

struct Kernel::State {
  std::shared_ptr<const codegen::Graph> graph;
  /// The same outputs over one segment of whatever length: what a shorter last segment goes
  /// through.
  std::optional<codegen::Graph> tail_graph;
  Options options;
  Target target;
  int device = -1;  // < 0: the CPU

  /// The variant for segments of `segment` elements (0: the whole) in memory aligned to
  /// `alignment`.
  const KernelVariant& variant(bool tail, std::int64_t segment, int alignment);

  /// The choice behind its plans: pinned, tuned or by rules. `tuned`: what a tuning found for it.
  codegen::PlanChoice choice_for(bool tail, std::int64_t segment,
                                 std::optional<TuningResult>& tuned) const;

  /// One piece of work on memory of the target: full segments, or the tail as a whole.
  struct Piece {
    const KernelVariant* variant = nullptr;
    const codegen::Graph* graph = nullptr;
    runtime::Arguments arguments;
    runtime::Slots::Range range;
    std::int64_t output_offset = 0;
  };
  /// The one or two pieces of a call, compiled; `alignment` that of the inputs' memory. `in_place`:
  /// the kernels read that memory, not a copy that begins with each piece.
  std::vector<Piece> pieces(const runtime::Arguments& arguments, int alignment, bool in_place);
  void launch_piece(const Piece& piece, const Outputs& outputs, void* stream, void* scratch);

  std::mutex mutex;
  struct Slot {
    std::once_flag once;
    KernelVariant variant;
  };
  std::map<std::tuple<bool, std::int64_t, int>, std::unique_ptr<Slot>> variants;
  KernelStats stats;
  std::string last_plan;
  std::optional<codegen::PlanChoice> last_choice;
  std::optional<TuningResult> last_tuning;
};

namespace runtime {
/// Runs a kernel's pieces over host memory on a GPU: through pinned buffers, in chunks whose bounds
/// depend on the sizes alone, with copies and kernels overlapped.
void run_staged(Kernel::State& state, const std::vector<Kernel::State::Piece>& pieces,
                const Outputs& outputs);
}  // namespace runtime

}  // namespace chainfold
