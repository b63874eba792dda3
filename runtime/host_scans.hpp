// Runs over host memory on a GPU, whole.
#pragma once

#include "chainfold/runtime/device/context.hpp"
#include "chainfold/runtime/kernel_state.hpp"

namespace chainfold::runtime {

/// Runs a kernel over host memory on a GPU, with a piece's inputs and outputs whole on the device,
/// and one launch. Returns what that tells.
LaunchStatus run_on_device(const Context& context, const Kernel::State::Piece& piece);

}  // namespace chainfold::runtime
