// What a plan must respect: what a caller allows, and what is known of launches.
#pragma once

#include <cstdint>

namespace chainfold {

/// What a result may deviate from the exact one: reference in docs/numerics.md. `exact` and
/// `reproducible` are not supported yet; `fast` allows more than `accurate` and may be the same.
/// `as_published` promises nothing: it admits pinned plans that compute as the papers do, with
/// partial sums that are rounded to the inputs' type. See
/// docs/decisions/0008-published-strategies.md.
enum class Accuracy : std::uint8_t { exact, reproducible, accurate, fast, as_published };
/// Whether NaN and infinities may occur in the data (ieee), or the caller promises they do not.
enum class NonFinite : std::uint8_t { ieee, assume_finite };
/// run_to_run: the same inputs, device, version and plan give the same bits.
enum class Determinism : std::uint8_t { not_guaranteed, run_to_run, gpu_to_gpu };

namespace codegen {

/// What a plan must respect.
struct PlanRequest {
  Accuracy accuracy = Accuracy::accurate;
  NonFinite nonfinite = NonFinite::ieee;
  Determinism determinism = Determinism::run_to_run;
  /// Elements a segment, or the number of columns; 0: one segment, its length known at launch.
  std::int64_t segment = 0;
  int base_alignment = 16;  ///< bytes that every input pointer (and stride) is a multiple of
  bool allow_mma = true;    ///< false: SIMT only, for comparison
  /// Each input's rows (segments, or rows of the columns) lie as far apart as the launch says.
  bool strided = false;
  /// The launch has no more elements (its size class, size_class_of); 0: any number.
  std::int64_t size_limit = 0;

  /// Whether there is one segment, the whole input, of a length that is known at launch.
  [[nodiscard]] bool is_whole() const { return segment == 0; }
  /// Whether launches may have any number of elements.
  [[nodiscard]] bool is_unlimited() const { return size_limit == 0; }
};

}  // namespace codegen
}  // namespace chainfold
