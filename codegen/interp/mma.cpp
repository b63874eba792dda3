#include "chainfold/codegen/interp/mma.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

namespace chainfold::codegen {
namespace {

constexpr int kLanes = 32;
constexpr int kMinExponent = -126;  // of normal f32, and of a zero of any type
constexpr std::uint32_t kInfinity = 0x7f800000u;
constexpr std::uint32_t kNaN = 0x7fffffffu;

// Where a fragment's elements stand: [lane * elements + i] -> row-major index of the matrix.
struct Layout {
  std::array<std::vector<int>, 3> index;
};
const std::vector<int>& layout(const MmaRow& row, Operand operand) {
  static const std::vector<Layout> kLayouts = [] {
    std::vector<Layout> all;
    for (const MmaRow& each : mma_table()) {
      Layout one;
      for (Operand which : {Operand::a, Operand::b, Operand::c}) {
        const int columns = which == Operand::a ? each.k : each.n;
        for (int lane = 0; lane < kLanes; ++lane) {
          for (int i = 0; i < each.elements(which); ++i) {
            const MatrixPosition at = each.position(which, lane, i);
            one.index[static_cast<std::size_t>(which)].push_back(at.row * columns + at.column);
          }
        }
      }
      all.push_back(std::move(one));
    }
    return all;
  }();
  return kLayouts[static_cast<std::size_t>(&row - mma_table().data())]
      .index[static_cast<std::size_t>(operand)];
}

// value = significand * 2^(exponent - fraction bits of the type); infinities and NaN are `special`.
struct Number {
  std::int64_t significand = 0;
  int exponent = kMinExponent;
  bool special = false;
  double value = 0;
};

Number split(std::uint32_t bits, int fraction_bits, int exponent_bits) {
  const std::uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const std::uint32_t top = (1u << exponent_bits) - 1;
  const std::uint32_t field = (bits >> fraction_bits) & top;
  const bool negative = (bits >> (fraction_bits + exponent_bits)) & 1u;
  const int bias = static_cast<int>(top / 2);
  Number number;
  if (field == top) {
    number.special = true;
    number.value = fraction != 0 ? std::nan("") : negative ? -HUGE_VAL : HUGE_VAL;
    return number;
  }
  const std::uint32_t magnitude = field == 0 ? fraction : fraction | (1u << fraction_bits);
  if (magnitude != 0) number.exponent = static_cast<int>(std::max(field, 1u)) - bias;
  number.significand = negative ? -std::int64_t{magnitude} : std::int64_t{magnitude};
  number.value =
      std::ldexp(static_cast<double>(number.significand), number.exponent - fraction_bits);
  return number;
}

struct Format {
  int fraction_bits, exponent_bits;
};
Format format_of(DType input) {
  if (input == DType::f16) return {10, 5};
  if (input == DType::bf16) return {7, 8};
  return {10, 8};  // tf32
}
Number split_input(DType input, Bits bits) {
  const Format format = format_of(input);
  const auto word = static_cast<std::uint32_t>(bits);
  return split(input == DType::f32 ? word >> 13 : word, format.fraction_bits, format.exponent_bits);
}
Number split_f32(std::uint32_t bits) { return split(bits, 23, 8); }

// A significand moved by `shift` bits, cut toward zero.
std::int64_t shifted(std::int64_t significand, int shift) {
  if (shift >= 0) return significand * (std::int64_t{1} << shift);
  if (shift <= -63) return 0;
  return significand / (std::int64_t{1} << -shift);
}

// sum * 2^scale as f32, rounded toward zero; beyond the largest finite value it is infinite.
std::uint32_t round_toward_zero(std::int64_t sum, int scale) {
  if (sum == 0) return 0;
  const std::uint32_t sign = sum < 0 ? 0x80000000u : 0;
  const std::int64_t magnitude = std::abs(sum);
  const int top = std::bit_width(static_cast<std::uint64_t>(magnitude)) - 1;
  const int exponent = std::max(top + scale, kMinExponent);
  if (exponent > 127) return sign | kInfinity;
  const auto kept = static_cast<std::uint32_t>(shifted(magnitude, scale - (exponent - 23)));
  if (kept == 0) return 0;
  if (kept < (1u << 23)) return sign | kept;  // subnormal
  return sign | (static_cast<std::uint32_t>(exponent + 127) << 23) | (kept & 0x7fffffu);
}

// One group: `count` products of a[i] * b[i * stride] and the accumulator.
std::uint32_t fused_sum(const Number* a, const Number* b, std::ptrdiff_t stride, int count,
                        std::uint32_t accumulator, int input_fraction, int fraction_bits) {
  const Number c = split_f32(accumulator);
  int largest = c.exponent;
  bool special = c.special;
  for (int i = 0; i < count; ++i) {
    const Number& y = b[i * stride];
    largest = std::max(largest, a[i].exponent + y.exponent);
    special = special || a[i].special || y.special;
  }
  if (special) {
    double total = c.value;
    for (int i = 0; i < count; ++i) total += a[i].value * b[i * stride].value;
    if (std::isnan(total)) return kNaN;
    return total < 0 ? 0x80000000u | kInfinity : kInfinity;
  }
  std::int64_t sum = shifted(c.significand, c.exponent - largest + fraction_bits - 23);
  for (int i = 0; i < count; ++i) {
    const Number& y = b[i * stride];
    sum += shifted(a[i].significand * y.significand,
                   a[i].exponent + y.exponent - largest + fraction_bits - 2 * input_fraction);
  }
  return round_toward_zero(sum, largest - fraction_bits);
}

void float_mma(const MmaRow& row, int arch, const Bits* a, const Bits* b, Bits* c) {
  const auto size = static_cast<std::size_t>(row.k);
  std::vector<Number> left(static_cast<std::size_t>(row.m) * size),
      right(size * static_cast<std::size_t>(row.n));
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = split_input(row.input, a[i]);
  for (std::size_t i = 0; i < right.size(); ++i) right[i] = split_input(row.input, b[i]);
  const int group = mma_products_per_group(row, arch);
  const int fraction_bits = mma_fraction_bits(row, arch);
  const int input_fraction = format_of(row.input).fraction_bits;
  for (int i = 0; i < row.m; ++i) {
    for (int j = 0; j < row.n; ++j) {
      Bits& out = c[i * row.n + j];
      auto sum = static_cast<std::uint32_t>(out);
      for (int k = 0; k < row.k; k += group) {
        sum = fused_sum(&left[static_cast<std::size_t>(i * row.k + k)],
                        &right[static_cast<std::size_t>(k * row.n + j)], row.n, group, sum,
                        input_fraction, fraction_bits);
      }
      out = sum;
    }
  }
}

template <class Term>
void ordered_mma(const MmaRow& row, const Bits* a, const Bits* b, Bits* c, Term&& add) {
  for (int i = 0; i < row.m; ++i) {
    for (int j = 0; j < row.n; ++j) {
      Bits& out = c[i * row.n + j];
      for (int k = 0; k < row.k; ++k) out = add(a[i * row.k + k], b[k * row.n + j], out);
    }
  }
}

void integer_mma(const MmaRow& row, const Bits* a, const Bits* b, Bits* c) {
  const bool is_signed_input = is_signed(row.input);
  auto widen = [&](Bits bits) {
    return is_signed_input ? static_cast<std::uint32_t>(static_cast<std::int8_t>(bits))
                           : static_cast<std::uint32_t>(static_cast<std::uint8_t>(bits));
  };
  ordered_mma(row, a, b, c, [&](Bits x, Bits y, Bits sum) {
    return Bits{static_cast<std::uint32_t>(sum) + widen(x) * widen(y)};
  });
}

}  // namespace

void interpret_mma(const MmaRow& row, int arch, const Bits* a, const Bits* b, const Bits* c,
                   Bits* d) {
  constexpr std::size_t kLargest = 16 * 32;
  std::array<Bits, kLargest> left, right, sums;
  auto gather = [&](Operand operand, const Bits* from, std::array<Bits, kLargest>& to) {
    const std::vector<int>& at = layout(row, operand);
    for (std::size_t i = 0; i < at.size(); ++i) to[static_cast<std::size_t>(at[i])] = from[i];
  };
  gather(Operand::a, a, left);
  gather(Operand::b, b, right);
  gather(Operand::c, c, sums);
  switch (row.rounding) {
    case MmaRounding::toward_zero:
      float_mma(row, arch, left.data(), right.data(), sums.data());
      break;
    case MmaRounding::exact: integer_mma(row, left.data(), right.data(), sums.data()); break;
    case MmaRounding::to_nearest:
      ordered_mma(row, left.data(), right.data(), sums.data(), [](Bits x, Bits y, Bits sum) {
        return evaluate(Op::fma, DType::f64, DType::f64, x, y, sum);
      });
      break;
  }
  const std::vector<int>& at = layout(row, Operand::c);
  for (std::size_t i = 0; i < at.size(); ++i) d[i] = sums[static_cast<std::size_t>(at[i])];
}

}  // namespace chainfold::codegen
