// Runs over host memory on a GPU, in chunks.
#pragma once

#include "chainfold/runtime/kernel_state.hpp"

namespace chainfold::runtime {

/// Runs a kernel's pieces over host memory on a GPU, in chunks that go through pinned buffers.
/// Copies and kernels overlap. The bounds of the chunks depend on the sizes alone.
LaunchStatus run_staged(Kernel::State& state, const Kernel::State::Pieces& pieces);

}  // namespace chainfold::runtime
