#include "chainfold/tests/support/places.hpp"

#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
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

/// Programs of one running place each, as plans know them, and of two.
enum class Running { best, best_behind, best_kept, worst_backward, both };
constexpr Running kRunning[] = {Running::best, Running::best_behind, Running::best_kept,
                                Running::worst_backward, Running::both};

template <class T>
Computation running(Running what, const dsl::Partition& partition) {
  const auto x = cf::input<T>("x");
  const auto kept = cf::cast<double>(x) < kLow || cf::cast<double>(x) > kHigh;
  switch (what) {
    case Running::best: return cf::over(partition, cf::inclusive(cf::argmax(x)));
    case Running::best_behind: return cf::over(partition, cf::exclusive(cf::argmax(x)));
    case Running::best_kept:
      return cf::over(partition, cf::inclusive(cf::argmax(x, cf::where(kept))));
    case Running::worst_backward:
      return cf::over(partition, cf::inclusive(cf::argmin(x), cf::backward));
    case Running::both: break;
  }
  return cf::over(partition, cf::inclusive(cf::argmax(x)), cf::exclusive(cf::argmin(x)));
}

/// What `make` gives for the type.
template <class Make>
Computation of_type(DType type, const Make& make) {
  switch (type) {
    case DType::f16: return make.template operator()<cf::f16>();
    case DType::bf16: return make.template operator()<cf::bf16>();
    case DType::f64: return make.template operator()<double>();
    case DType::i8: return make.template operator()<std::int8_t>();
    case DType::u16: return make.template operator()<std::uint16_t>();
    case DType::i32: return make.template operator()<std::int32_t>();
    case DType::u64: return make.template operator()<std::uint64_t>();
    default: return make.template operator()<float>();
  }
}

/// Whether an element takes the place of the best so far, NaN being better than numbers.
bool is_better(double value, double so_far, bool largest) {
  return !std::isnan(so_far) && (std::isnan(value) || (largest ? value > so_far : value < so_far));
}

/// The first best of elements that count, NaN being better than numbers; -1 of none.
std::int64_t place_of(const std::vector<double>& values, bool largest,
                      const std::function<bool(double)>& counts) {
  std::int64_t best = -1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!counts(value)) continue;
    const double so_far = best < 0 ? 0 : values[static_cast<std::size_t>(best)];
    const bool better = best < 0 || is_better(value, so_far, largest);
    if (better) best = static_cast<std::int64_t>(i);
  }
  return best;
}

using Kind = std::function<double(std::int64_t)>;

std::vector<Kind> kinds_of(DType type, std::mt19937_64& random) {
  const auto uniform = [&random](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const double least = is_float(type) ? -HUGE_VAL : -1e30, most = -least;
  return {
      [=](std::int64_t) { return uniform(-100, 100); },
      [=](std::int64_t) { return std::floor(uniform(0, 3)); },
      [](std::int64_t) { return 3.0; },
      [](std::int64_t i) { return i % 3 == 0 ? -0.0 : 0.0; },
      [=](std::int64_t) { return least; },
      [=](std::int64_t) { return most; },
      [](std::int64_t i) { return static_cast<double>(i); },
      [](std::int64_t i) { return static_cast<double>(-i); },
      [=, &random](std::int64_t) { return random() % 997 == 0 ? kNaN : uniform(-1, 1); },
      [=](std::int64_t) { return kNaN; },
  };
}

}  // namespace

std::string check_places(DType type, std::int64_t n, const Executor& executor) {
  const auto seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const std::vector<Kind> kinds = kinds_of(type, random);
  const std::int64_t length = n > 0 ? n : 70'001, rows = n > 0 ? 3 : 1;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    std::vector<Column> inputs;
    inputs.emplace_back(type, rows * length);
    for (std::int64_t i = 0; i < rows * length; ++i)
      inputs[0].set_double(i, kinds[kind](i % length));
    const dsl::Partition partition = n > 0 ? cf::segments(n) : cf::whole();
    const Computation what = of_type(type, [&]<class T>() { return computation<T>(partition); });
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

std::string check_running_places(DType type, std::int64_t n, const Executor& executor) {
  const auto seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const std::vector<Kind> kinds = kinds_of(type, random);
  const std::int64_t length = n > 0 ? n : 9'001, rows = n > 0 ? 1 + 6'000 / n : 1;
  for (std::size_t turn = 0; turn < kinds.size() * std::size(kRunning); ++turn) {
    const std::size_t kind = turn / std::size(kRunning);
    const Running what = kRunning[turn % std::size(kRunning)];
    std::vector<Column> inputs;
    inputs.emplace_back(type, rows * length);
    for (std::int64_t i = 0; i < rows * length; ++i)
      inputs[0].set_double(i, kinds[kind](i % length));
    const dsl::Partition partition = n > 0 ? cf::segments(n) : cf::whole();
    const std::vector<Column> outputs =
        executor(of_type(type, [&]<class T>() { return running<T>(what, partition); }), inputs, n);
    const bool backward = what == Running::worst_backward;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t best = -1, worst = -1;
      const auto value = [&](std::int64_t i) {
        return codegen::double_of_bits(type, inputs[0].get(row * length + i));
      };
      for (std::int64_t step = 0; step < length; ++step) {
        const std::int64_t i = backward ? length - 1 - step : step;
        const std::int64_t best_before = best, worst_before = worst;
        const double v = value(i);
        const bool kept = v < kLow || v > kHigh;
        const bool counts = what != Running::best_kept || kept;
        // Backward an equal one comes first, as the first NaN does.
        const auto takes = [&](std::int64_t so_far, bool largest) {
          if (so_far < 0) return true;
          const double b = value(so_far);
          const bool same = v == b || (std::isnan(v) && std::isnan(b));
          return is_better(v, b, largest) || (backward && same);
        };
        if (counts && takes(best, true)) best = i;
        if (counts && takes(worst, false)) worst = i;
        std::vector<std::int64_t> right = {best};
        if (what == Running::best_behind) right = {best_before};
        if (backward) right = {worst};
        if (what == Running::both) right = {best, worst_before};
        for (std::size_t o = 0; o < right.size(); ++o) {
          const auto got = static_cast<std::int64_t>(outputs[o].get(row * length + i));
          if (got == right[o]) continue;
          return fmt::format(
              "running places {} of {} {}, kind {}, row {}, element {}: output {} is {} instead "
              "of {}, seed {}",
              turn % std::size(kRunning), length, name_of(type), kind, row, i, o, got, right[o],
              seed);
        }
      }
    }
  }
  return {};
}

}  // namespace chainfold::test
