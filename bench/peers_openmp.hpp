// The loops that a C++ programmer writes instead, with OpenMP; compiled at -O3 for the machine at
// hand in a file of their own, which includes nothing whose inline functions could leak into the
// rest.
#pragma once

#include <cstdint>

namespace chainfold::bench::openmp {

/// The threads that the loops below use.
void set_threads(int threads);

/// Sums of segments; plain: as written; simd: with leave to reorder the sum of a segment.
void sum_f32(const float* in, std::int64_t segments, std::int64_t length, float* out);
void sum_f32_simd(const float* in, std::int64_t segments, std::int64_t length, float* out);
/// Whether the compiler has a 16-bit float type; without it the two functions do nothing.
bool has_f16();
void sum_f16(const void* in, std::int64_t segments, std::int64_t length, float* out);
void sum_f16_simd(const void* in, std::int64_t segments, std::int64_t length, float* out);
/// The sum of the whole input, threads and lanes adding their own parts.
float sum_all_f32(const float* in, std::int64_t n);
/// TPC-H query 6 with the published constants.
std::int64_t q6(const std::int32_t* ship, const std::int64_t* disc, const std::int64_t* qty,
                const std::int64_t* price, std::int64_t n);

/// What fold() computes, of elements of which type. Sums of f16 and bf16 are added in f32, of i8 in
/// i32, and stored as the input's type (of i8 as i32; a whole f16 sum as f32). Places and counts
/// are i64, of any type.
enum class Fold { sum, mean_var, dot, min_max, filtered_sum, max, argmax, count_above };
enum class Type { f16, bf16, f32, f64, i8, i32 };
/// Folds of segments with leave to reorder; threads share out the segments, or each of them where
/// they are few. Returns false where there is no loop for it or the compiler lacks the type.
bool fold(Fold what, Type type, const void* x, const void* y, std::int64_t segments,
          std::int64_t length, bool whole, void* first, void* second);
/// Sums of segments [offsets[i], offsets[i + 1]), or, `scan`, running sums within them, of f32, f64
/// and i32. Threads take some segments at a time, as they come.
bool sum_ragged(Type type, const void* x, const std::int64_t* offsets, std::int64_t segments,
                bool scan, void* out);
/// Sums of the columns of a row-major matrix, rounded like those of fold().
bool sum_columns(Type type, const void* x, std::int64_t rows, std::int64_t columns, void* out);

/// The ceilings: the sum of 64-bit words, which accounts for all of them, and a copy. Every thread
/// reads `streams` places at once (1, 2, 4 or 8): more than one keep more of the memory busy.
struct ReadResult {
  std::uint64_t sum = 0, words = 0;
};
ReadResult read(const std::uint64_t* in, std::int64_t words, int streams);
/// `past_caches`: by stores that leave the caches alone, where the architecture has them.
void copy(const void* in, void* out, std::int64_t bytes, bool past_caches);
/// The ceilings of the caches: every thread goes over its own part so many times in a row.
ReadResult read_again(const std::uint64_t* in, std::int64_t words, std::int64_t times);
void copy_again(const void* in, void* out, std::int64_t bytes, std::int64_t times);

}  // namespace chainfold::bench::openmp
