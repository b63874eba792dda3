// Runs over host memory on a GPU, in chunks.
#pragma once

#include "chainfold/runtime/kernel_state.hpp"

namespace chainfold::runtime {

/// Runs a kernel's pieces over host memory on a GPU: through pinned buffers, in chunks whose bounds
/// depend on the sizes alone, with copies and kernels overlapped.
void run_staged(Kernel::State& state, const Kernel::State::Pieces& pieces);

}  // namespace chainfold::runtime
