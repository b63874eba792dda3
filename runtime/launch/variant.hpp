// KernelVariant: a plan of a graph, compiled and loaded.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/runtime/launch/arguments.hpp"
#include "chainfold/runtime/launch/executable.hpp"
#include "chainfold/runtime/launch/slots.hpp"

namespace chainfold::runtime {

/// Bytes of the widest load. Device allocations and the staging's buffers are aligned to more.
inline constexpr int kWidestLoad = 16;

struct KernelVariant {
  codegen::Compiled compiled;
  std::shared_ptr<const Executable> executable;
  bool reused = false;  ///< the executable was alive in this process already

  /// Runs (CPU) or queues (GPU) launch `index` of the program, whose slots are filled. The first
  /// may overlap with what the stream had before. A GPU's context must be current on this thread.
  void launch(std::size_t index, const Slots& slots, void* stream) const {
    executable->launch(index, slots.grid(index), slots.data(), slots.size(), stream, false);
  }
  /// All launches of the program that have blocks, one after the other. Each may overlap with the
  /// one before it, the program's first with whatever the stream had before.
  void launch_all(const Slots& slots, void* stream) const {
    bool after = false;
    for (std::size_t i = 0; i < compiled.program.launches.size(); ++i) {
      const std::int64_t blocks = slots.grid(i);
      if (blocks == 0) continue;
      executable->launch(i, blocks, slots.data(), slots.size(), stream, after);
      after = true;
    }
  }
};

/// The choice that Options::plan pins. Throws UserError where the text is no plan or it is not
/// legal.
codegen::PlanChoice pinned_choice(const codegen::Graph& graph, const codegen::Target& target,
                                  const codegen::PlanRequest& request, const std::string& plan);
/// The plan of a choice and its program. Throws InternalError for a choice that is not legal.
codegen::Compiled lower_choice(const codegen::Graph& graph, const codegen::Target& target,
                               const codegen::PlanRequest& request,
                               const codegen::PlanChoice& choice);
/// Compiles and loads for a device (< 0: the CPU) what lower_choice gave, as load_executable()
/// does. Throws UserError(unsupported) for more arguments than a launch takes, and what the
/// compilers throw.
KernelVariant load_lowered(const codegen::Graph& graph, const codegen::Target& target, int device,
                           codegen::Compiled lowered, const codegen::PlanChoice& choice,
                           Effort least = Effort::optimised);
/// Both: plans by the choice, compiles and loads.
KernelVariant load_variant(const codegen::Graph& graph, const codegen::Target& target, int device,
                           const codegen::PlanRequest& request, const codegen::PlanChoice& choice,
                           Effort least = Effort::optimised);

}  // namespace chainfold::runtime
