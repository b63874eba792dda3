#include "chainfold/codegen/target/mma_table.hpp"

#include <cstddef>

namespace chainfold::codegen {
namespace {

// One aligned sum of g products and C. Each of the g + 1 terms loses less than 2^-F of the largest,
// and rounding toward zero less than 2^-23 of the result. So the bound is (g + 1) * 2^(24-F) + 2
// units, k / g times.
constexpr double chained_bound(int k, int group, int fraction_bits) {
  const double unit = fraction_bits >= 24 ? 1.0 / (1 << (fraction_bits - 24)) : 2.0;
  return static_cast<double>(k / group) * ((group + 1) * unit + 2.0);
}

constexpr auto kZero = MmaRounding::toward_zero;
constexpr auto kNearest = MmaRounding::to_nearest;
constexpr auto kExact = MmaRounding::exact;

// Fraction bits and groups: MMA-Sim (arXiv 2511.10909), for the row's first architecture.
// Instructions of f64 sum k IEEE products one after the other, which errs by k * 2^-53 at most
// (Jeannerod and Rump, 2013).
constexpr MmaRow kRows[] = {
    {"m16n8k16.f32.f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "HMMA", 16, 8, 16,
     DType::f16, DType::f32, 80, 24, 8, kZero, chained_bound(16, 8, 24)},
    {"m16n8k16.f32.bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "HMMA", 16, 8, 16,
     DType::bf16, DType::f32, 80, 24, 8, kZero, chained_bound(16, 8, 24)},
    {"m16n8k8.f32.f16", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "HMMA", 16, 8, 8,
     DType::f16, DType::f32, 75, 24, 0, kZero, chained_bound(8, 8, 24)},
    {"m16n8k8.f32.tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "HMMA", 16, 8, 8,
     DType::f32, DType::f32, 80, 24, 4, kZero, chained_bound(8, 4, 24)},
    {"m8n8k4.f64.f64", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "DMMA", 8, 8, 4,
     DType::f64, DType::f64, 80, 0, 1, kNearest, 4 * 0x1p-53 / 0x1p-24},
    {"m16n8k32.i32.i8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "IMMA", 16, 8, 32,
     DType::i8, DType::i32, 80, 0, 0, kExact, 0},
    {"m16n8k32.i32.u8", "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32", "IMMA", 16, 8, 32,
     DType::u8, DType::i32, 80, 0, 0, kExact, 0},
    {"m8n8k16.i32.i8", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "IMMA", 8, 8, 16,
     DType::i8, DType::i32, 75, 0, 0, kExact, 0},
    {"m8n8k16.i32.u8", "mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32", "IMMA", 8, 8, 16,
     DType::u8, DType::i32, 75, 0, 0, kExact, 0},
    {"m16n8k8.f32.bf16", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", "HMMA", 16, 8, 8,
     DType::bf16, DType::f32, 80, 24, 0, kZero, chained_bound(8, 8, 24)},
};

constexpr int kHopper = 90;

}  // namespace

int MmaRow::elements(Operand operand) const noexcept {
  switch (operand) {
    case Operand::a: return m * k / 32;
    case Operand::b: return k * n / 32;
    case Operand::c: return m * n / 32;
  }
  return 0;
}

int MmaRow::registers(Operand operand) const noexcept {
  const int bytes = size_of(operand == Operand::c ? accumulator : input);
  return elements(operand) * bytes / 4;
}

// All shapes follow one rule: a register holds `run` neighbours along k (f64: one element), four
// lanes hold 4 * run of them. The registers of A alternate between the upper and the lower eight
// rows.
MatrixPosition MmaRow::position(Operand operand, int lane, int i) const noexcept {
  const int g = lane / 4, t = lane % 4;
  if (operand == Operand::c) return {g + 8 * (i / 2), 2 * t + i % 2};
  const int run = size_of(input) >= 4 ? 1 : 4 / size_of(input);
  const int reg = i / run;
  const int halves = m / 8;
  const int along = t * run + i % run;
  if (operand == Operand::a) return {g + 8 * (reg % halves), along + 4 * run * (reg / halves)};
  return {along + 4 * run * reg, g};
}

std::span<const MmaRow> mma_table() noexcept { return kRows; }

int find_mma(DType input, int arch) noexcept {
  int best = -1;
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    const MmaRow& row = kRows[i];
    if (row.input != input || row.first_arch > arch) continue;
    if (best < 0 || row.m * row.n * row.k > kRows[best].m * kRows[best].n * kRows[best].k) {
      best = static_cast<int>(i);
    }
  }
  return best;
}

double mma_error_bound(const MmaRow& row, int arch) noexcept {
  if (row.rounding != MmaRounding::toward_zero) return row.error_bound_u;
  return chained_bound(row.k, mma_products_per_group(row, arch), mma_fraction_bits(row, arch));
}

double mma_sum_error_bound(const MmaRow& row, int arch) noexcept {
  const double bound = mma_error_bound(row, arch);
  if (row.rounding != MmaRounding::toward_zero) return bound;
  // Each group has one term that loses nothing; the first one besides adds to nothing.
  const double unit = mma_fraction_bits(row, arch) >= 25 ? 0.5 : 1.0;
  return bound - unit * (1 + row.k / mma_products_per_group(row, arch));
}

int find_mma_of(DType input, int arch, int elements) noexcept {
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].input == input && kRows[i].first_arch <= arch &&
        kRows[i].elements(Operand::a) == elements)
      return static_cast<int>(i);
  }
  return -1;
}

int mma_fraction_bits(const MmaRow& row, int arch) noexcept {
  if (row.rounding != MmaRounding::toward_zero) return 0;
  return arch >= kHopper ? 25 : row.fraction_bits;
}

int mma_products_per_group(const MmaRow& row, int arch) noexcept {
  if (row.rounding == MmaRounding::toward_zero && arch >= kHopper) return row.k;
  return row.products_per_group == 0 ? row.k : row.products_per_group;
}

}  // namespace chainfold::codegen
