// Tuned values of elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedElements {
  /// One load a lane of small blocks is what memory likes best where as much is written as read (2
  /// GiB of f16 on an H200, of the ceiling: 1.003 by one load a lane of four warps, 0.995 by two,
  /// 0.98 by four; f32 1.002, 0.994, 0.98; i8 into i32 1.008, 1.000, 0.985).
  int loads = 1, warps = 4;
};

}  // namespace chainfold::codegen
