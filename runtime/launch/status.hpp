// LaunchStatus: what a launch tells of its data.
#pragma once

#include <cstdint>

namespace chainfold {

/// What a launch tells beside its outputs, in memory of the kernel's target (LaunchArgs::status).
/// On a GPU that is device memory, to be copied once the stream has come there. A launch over
/// cf::offsets or cf::heads writes all of it, once. Others have nothing to tell and leave it alone.
struct LaunchStatus {
  /// The place of the first wrong offset in its array, or, of begins and ends, of the first wrong
  /// segment; -1: all are right. Where one is wrong the launch has written no output.
  std::int64_t wrong_offset = -1;
  /// How many segments there are: the values that outputs with one a segment need, whether they had
  /// room for them or not.
  std::int64_t segments = 0;
};

}  // namespace chainfold
