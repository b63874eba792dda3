// Tuned values of elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedElements {
  /// Loads of a lane, and warps of a block. Where as much is written as read, memory is fastest by
  /// one load a lane of small blocks (docs/decisions/0036-elements.md).
  int loads = 1, warps = 4;
};

}  // namespace chainfold::codegen
