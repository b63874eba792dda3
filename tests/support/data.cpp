#include "chainfold/tests/support/data.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <random>

namespace chainfold::test {

namespace {

constexpr std::size_t kAligned = 256;
constexpr std::byte kSentinelByte{0xC5};

/// A mask of the type's bits.
Bits all_bits(DType type) {
  const int width = 8 * size_of(type);
  return width == 64 ? ~Bits{0} : (Bits{1} << width) - 1;
}

double largest(DType type) {
  switch (type) {
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.FEp127;
    case DType::f32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

double smallest_subnormal(DType type) {
  switch (type) {
    case DType::f16: return 0x1p-24;
    case DType::bf16: return 0x1p-133;
    case DType::f32: return 0x1p-149;
    default: return std::numeric_limits<double>::denorm_min();
  }
}

double smallest_normal(DType type) {
  switch (type) {
    case DType::f16: return 0x1p-14;
    case DType::bf16:
    case DType::f32: return 0x1p-126;
    default: return std::numeric_limits<double>::min();
  }
}

/// Ordinary, or near either end of the type.
Bits constant_bits(DType type, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(-1, 1);
  const double value = unit(random);
  switch (random() % 3) {
    case 0: return codegen::bits_of_double(type, value);
    case 1: return codegen::bits_of_double(type, value * largest(type));
    default: return codegen::bits_of_double(type, value * smallest_normal(type) * 8);
  }
}

Bits float_bits(DType type, std::int64_t i, Fill fill, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(-1, 1);
  auto bits = [&](double value) { return codegen::bits_of_double(type, value); };
  switch (fill) {
    case Fill::uniform: return bits(unit(random));
    case Fill::normal: return bits(std::normal_distribution<double>()(random));
    case Fill::whole: return bits(static_cast<double>(random() % 17) - 8);
    case Fill::adversarial: return bits(i % 4096 == 0 ? 32768 : 0x1p-10 * (1 - 0x1p-11));
    case Fill::nonfinite:
      switch (random() % 61) {
        case 0: return bits(std::numeric_limits<double>::quiet_NaN());
        case 1: return bits(std::numeric_limits<double>::infinity());
        case 2: return bits(-std::numeric_limits<double>::infinity());
        default: return bits(unit(random));
      }
    case Fill::subnormal:
      return bits(smallest_subnormal(type) * (static_cast<double>(random() % 4000) - 2000));
    case Fill::extremes: {
      const double ends[] = {
          largest(type), -largest(type), 0, -0.0, 1, -1, smallest_subnormal(type), 0.5};
      return bits(ends[random() % std::size(ends)]);
    }
    case Fill::constant: return constant_bits(type, random);
    case Fill::near_ends: {
      const double end = random() % 2 == 0 ? largest(type) : smallest_normal(type);
      const double scale = std::exp2(8 * std::fabs(unit(random)));
      return bits(std::copysign(end > 1 ? end / scale : end * scale, unit(random)));
    }
  }
  return 0;
}

Bits integer_bits(DType type, Fill fill, std::mt19937_64& random) {
  const int width = 8 * size_of(type);
  switch (fill) {
    case Fill::whole:
      return codegen::bits_of_int(
          type, static_cast<std::int64_t>(random() % 17) - (is_signed(type) ? 8 : 0));
    case Fill::subnormal: return random() % 3;
    case Fill::extremes: {
      const Bits top = Bits{1} << (width - 1);
      const Bits ends[] = {0, 1, all_bits(type), top, top - 1, all_bits(type) - 1};
      return ends[random() % std::size(ends)];
    }
    case Fill::constant: return random() & all_bits(type);
    case Fill::near_ends: {
      const Bits lowest = is_signed(type) ? Bits{1} << (width - 1) : 0;
      const Bits end = random() % 2 == 0 ? lowest + random() % 16 : lowest - 1 - random() % 16;
      return end & all_bits(type);
    }
    default: {  // half the bits, so that products of two do not always wrap
      const auto value = static_cast<std::int64_t>(random() >> (64 - std::max(8, width / 2)));
      const bool negative = is_signed(type) && random() % 2 == 0;
      return static_cast<Bits>(negative ? -value : value) & all_bits(type);
    }
  }
}

}  // namespace

std::vector<DType> all_types() {
  std::vector<DType> types;
  for (int t = 0; t < kDTypeCount; ++t) types.push_back(static_cast<DType>(t));
  return types;
}

void Column::Free::operator()(std::byte* memory) const { std::free(memory); }

Column::Column(DType type, std::int64_t count, int offset)
    : type_(type), count_(count), offset_(offset) {
  const std::size_t needed = static_cast<std::size_t>(offset) + bytes() + kSentinel;
  memory_.reset(static_cast<std::byte*>(
      std::aligned_alloc(kAligned, (needed + kAligned - 1) / kAligned * kAligned)));
  if (!memory_) throw std::bad_alloc();
  std::memset(memory_.get(), 0, needed);
  std::memset(data() + bytes(), std::to_integer<int>(kSentinelByte), kSentinel);
}

std::size_t Column::bytes() const {
  return static_cast<std::size_t>(count_) * static_cast<std::size_t>(size_of(type_));
}

Bits Column::get(std::int64_t i) const {
  Bits bits = 0;
  const auto size = static_cast<std::size_t>(size_of(type_));
  std::memcpy(&bits, data() + static_cast<std::size_t>(i) * size, size);
  return bits;
}

void Column::set(std::int64_t i, Bits bits) {
  const auto size = static_cast<std::size_t>(size_of(type_));
  std::memcpy(data() + static_cast<std::size_t>(i) * size, &bits, size);
}

void Column::fill(std::byte value) {
  if (count_ > 0) std::memset(data(), std::to_integer<int>(value), bytes());
}

const Column& Column::packed(int first) const {
  packed_ = std::make_unique<Column>(DType::u8, (first + count_ + 7) / 8);
  std::mt19937_64 random(static_cast<std::uint64_t>(count_ + first));
  for (std::int64_t i = 0; i < packed_->count(); ++i) packed_->set(i, random() & 0xff);
  for (std::int64_t i = 0; i < count_; ++i) {
    const std::int64_t at = first + i;
    const Bits others = packed_->get(at / 8) & ~(Bits{1} << (at % 8));
    packed_->set(at / 8, others | get(i) << (at % 8));
  }
  return *packed_;
}

bool Column::sentinel_intact() const {
  const std::byte* end = data() + bytes();
  return std::all_of(end, end + kSentinel, [](std::byte b) { return b == kSentinelByte; });
}

std::string_view name_of(Fill fill) {
  constexpr std::string_view kNames[] = {"uniform",     "normal",    "whole",
                                         "adversarial", "nonfinite", "subnormal",
                                         "extremes",    "constant",  "near_ends"};
  return kNames[static_cast<int>(fill)];
}

Column make_column(DType type, std::int64_t count, Fill fill, std::uint64_t seed, int offset) {
  Column column(type, count, offset);
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < count; ++i) {
    if (fill == Fill::constant && i > 0) {
      column.set(i, column.get(0));
    } else if (type == DType::boolean) {
      column.set(i, random() % 2);
    } else {
      column.set(
          i, is_float(type) ? float_bits(type, i, fill, random) : integer_bits(type, fill, random));
    }
  }
  return column;
}

Column spread(const Column& dense, std::int64_t row, std::int64_t stride, int offset) {
  const std::int64_t rows = (dense.count() + row - 1) / row;
  Column out(dense.type(), rows == 0 ? 0 : dense.count() + (rows - 1) * (stride - row), offset);
  out.fill(std::byte{0xff});
  for (std::int64_t i = 0; i < dense.count(); ++i)
    out.set(i / row * stride + i % row, dense.get(i));
  return out;
}

int first_bit(std::size_t input, std::uint64_t seed) {
  return static_cast<int>((seed + 3 * input) % 8);
}

std::vector<Column> make_inputs(const codegen::Graph& graph, std::int64_t count, Fill fill,
                                std::uint64_t seed, int alignment) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const DType type = graph.inputs[i].type;
    const int offset = alignment >= 256 ? 0 : std::max(alignment, size_of(type));
    columns.push_back(make_column(type, count, fill, seed + 1000 * (i + 1), offset));
  }
  return columns;
}

}  // namespace chainfold::test
