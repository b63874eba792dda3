// Tuned values of moments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedMoments {
  /// Bytes of a lane's values of a batch: within one, weights of merges are constants, and sums
  /// need no compensation.
  int batch_bytes = 256;
  /// Bytes of a lane's values that rows side by side may take, and their number: more is only code.
  /// Measured on a Zen 4, from cache, GB/s by 1, 2, 4, 8 and 16 rows: f16 of 128 10, 16, 21, 24 and
  /// 26, of 512 20, 24, 28, 30 and 30; f32 of 128 27, 37, 46, 52 and 57.
  int row_bytes = 512, most_rows = 16;
};

}  // namespace chainfold::codegen
