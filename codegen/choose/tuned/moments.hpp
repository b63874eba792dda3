// Tuned values of moments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedMoments {
  /// Bytes of a lane's values in a batch: within one, weights of merges are constants, and sums
  /// need no compensation.
  int batch_bytes = 256;
  /// Words of a GPU's lane into which the bytes of a batch are widened, at most
  /// (docs/tuned-values.md#moments).
  int most_words = 64;
  /// Bytes of a lane's values that rows side by side may take, and such rows at most: more is only
  /// code (docs/tuned-values.md#moments).
  int row_bytes = 512, most_rows = 16;
};

}  // namespace chainfold::codegen
