// LaunchStatus: what a launch tells of its data.
#pragma once

#include <cstdint>

namespace chainfold {

/// What a launch tells beside its outputs, in memory of the kernel's target (LaunchArgs::status):
/// on a GPU device memory, from which it is copied once the stream has come there. A launch over
/// cf::offsets writes all of it, once. Others have nothing to tell and leave it alone.
struct LaunchStatus {
  /// The place of the first wrong offset in its array, or, of begins and ends, of the first wrong
  /// segment; -1: all are right. Where one is wrong the launch has written no output.
  std::int64_t wrong_offset = -1;
};

}  // namespace chainfold
