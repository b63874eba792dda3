// What all machines have that programs are written for.
#pragma once

namespace chainfold::codegen {

/// Lanes of a warp: threads of a GPU's, or elements that a CPU's thread computes at once.
inline constexpr int kWarpWidth = 32;

/// Bytes of a line of memory: of a CPU's caches, and of a GPU's.
inline constexpr int kLineBytes = 64, kGpuLineBytes = 128;

}  // namespace chainfold::codegen
