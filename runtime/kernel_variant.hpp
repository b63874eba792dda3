// KernelVariant: a plan of a graph, compiled and loaded.
#pragma once

#include <cstddef>
#include <memory>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/plan_space.hpp"
#include "chainfold/runtime/arguments.hpp"
#include "chainfold/runtime/executable.hpp"

namespace chainfold::runtime {

struct KernelVariant {
  codegen::Compiled compiled;
  std::shared_ptr<const Executable> executable;
  bool reused = false;  ///< the executable was alive in this process already

  /// Runs (CPU) or queues (GPU) launch `index` of the program, whose slots are filled.
  void launch(std::size_t index, const Slots& slots, void* stream) const {
    executable->launch(index, slots.grid(index), slots.data(), slots.size(), stream);
  }
  /// All launches of the program, one after the other.
  void launch_all(const Slots& slots, void* stream) const {
    for (std::size_t i = 0; i < compiled.program.launches.size(); ++i) launch(i, slots, stream);
  }
};

/// Plans by the choice, compiles and loads for a device (< 0: the CPU). Throws
/// UserError(unsupported) for more arguments than a launch takes, InternalError for a choice that
/// is not legal, and what the compilers throw.
KernelVariant load_variant(const codegen::Graph& graph, const codegen::Target& target, int device,
                           const codegen::PlanRequest& request, const codegen::PlanChoice& choice);

}  // namespace chainfold::runtime
