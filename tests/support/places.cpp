#include "chainfold/tests/support/places.hpp"

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/ops.hpp"

namespace chainfold::test {

namespace {

namespace cf = chainfold;

/// Elements that are kept by the filter of the computations below.
constexpr double kLow = 0, kHigh = 5;

template <class T>
Computation computation(const dsl::Partition& partition) {
  const auto x = cf::input<T>("x");
  const auto kept = cf::cast<double>(x) < kLow || cf::cast<double>(x) > kHigh;
  return cf::over(partition, cf::argmax(x), cf::argmin(x), cf::argmax(x, cf::where(kept)),
                  cf::argmin(x, cf::where(kept)), cf::max(x));
}

Computation computation_of(DType type, const dsl::Partition& partition) {
  switch (type) {
    case DType::f16: return computation<cf::f16>(partition);
    case DType::bf16: return computation<cf::bf16>(partition);
    case DType::f64: return computation<double>(partition);
    case DType::i8: return computation<std::int8_t>(partition);
    case DType::u16: return computation<std::uint16_t>(partition);
    case DType::i32: return computation<std::int32_t>(partition);
    case DType::u64: return computation<std::uint64_t>(partition);
    default: return computation<float>(partition);
  }
}

/// The first best of elements that count, NaN being better than numbers; -1 of none.
std::int64_t place_of(const std::vector<double>& values, bool largest,
                      const std::function<bool(double)>& counts) {
  std::int64_t best = -1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!counts(value)) continue;
    const double so_far = best < 0 ? 0 : values[static_cast<std::size_t>(best)];
    const bool better =
        best < 0 ||
        (!std::isnan(so_far) && (std::isnan(value) || (largest ? value > so_far : value < so_far)));
    if (better) best = static_cast<std::int64_t>(i);
  }
  return best;
}

}  // namespace

std::string check_places(DType type, std::int64_t n, const Executor& executor) {
  const auto seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const double least = is_float(type) ? -HUGE_VAL : codegen::double_of_bits(type, 0);
  const std::vector<std::function<double(std::int64_t)>> kinds = {
      [&](std::int64_t) { return uniform(-100, 100); },
      [&](std::int64_t) { return std::floor(uniform(0, 3)); },
      [&](std::int64_t) { return 3.0; },
      [&](std::int64_t) { return is_float(type) ? least : -1e30; },
      [&](std::int64_t) { return is_float(type) ? HUGE_VAL : 1e30; },
      [&](std::int64_t i) { return static_cast<double>(i); },
      [&](std::int64_t i) { return static_cast<double>(-i); },
      [&](std::int64_t) { return random() % 997 == 0 ? kNaN : uniform(-1, 1); },
      [&](std::int64_t) { return kNaN; },
  };
  const std::int64_t length = n > 0 ? n : 70'001, rows = n > 0 ? 3 : 1;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    std::vector<Column> inputs;
    inputs.emplace_back(type, rows * length);
    for (std::int64_t i = 0; i < rows * length; ++i)
      inputs[0].set_double(i, kinds[kind](i % length));
    const Computation what = computation_of(type, n > 0 ? cf::segments(n) : cf::whole());
    const std::vector<Column> outputs = executor(what, inputs, n);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::vector<double> values;
      for (std::int64_t i = row * length; i < (row + 1) * length; ++i)
        values.push_back(codegen::double_of_bits(type, inputs[0].get(i)));
      const auto all = [](double) { return true; };
      const auto kept = [](double v) { return v < kLow || v > kHigh; };
      const std::vector<std::int64_t> right = {
          place_of(values, true, all), place_of(values, false, all), place_of(values, true, kept),
          place_of(values, false, kept)};
      for (std::size_t o = 0; o < right.size(); ++o) {
        const auto got = static_cast<std::int64_t>(outputs[o].get(row));
        if (got == right[o]) continue;
        return fmt::format("{} of {} {}, kind {}, row {}: output {} is {} instead of {}, seed {}",
                           n > 0 ? "segments" : "the whole", length, name_of(type), kind, row, o,
                           got, right[o], seed);
      }
    }
  }
  return {};
}

}  // namespace chainfold::test
