#include "chainfold/tests/support/recurrences.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "chainfold/tests/support/reference_fold.hpp"

namespace chainfold::test {

namespace {

/// A number in [0, 1) that i alone decides.
double noise(std::int64_t i) {
  std::uint64_t x = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9;
  return static_cast<double>((x ^ (x >> 29)) >> 11) * 0x1p-53;
}

template <class T>
Computation computation_of(const RecurrenceCase& what, const dsl::Partition& partition,
                           bool backward) {
  auto a = input<T>("a"), x = input<T>("x");
  const T first = static_cast<T>(what.initial);
  if (what.initial == 0) {
    return backward ? over(partition, linear_recurrence(a, x, chainfold::backward))
                    : over(partition, linear_recurrence(a, x));
  }
  return backward ? over(partition, linear_recurrence(a, x, first, chainfold::backward))
                  : over(partition, linear_recurrence(a, x, first));
}

std::vector<RecurrenceCase> make() {
  using Step = RecurrenceCase::Step;
  const auto step = [](double factor, double value) { return Step{factor, value}; };
  return {
      {"products overflow and meet 0", [=](std::int64_t) { return step(2, 0); }, 0, true},
      {"what grows was taken back",
       [=](std::int64_t i) { return step(2, i == 0   ? 1
                                            : i == 1 ? -2
                                                     : 0); }, 0, true},
      // Products of runs of any length that begin and end anywhere are beyond every range.
      {"up by 2^900 and down again",
       [=](std::int64_t i) { return step(i % 1800 < 900 ? 2 : 0.5, i % 1800 == 0 ? 0x1p-100 : 0); },
       0, true},
      {"down by 2^900 and up again",
       [=](std::int64_t i) { return step(i % 1800 < 900 ? 0.5 : 2, i == 0 ? 1 : 0); }, 0, true},
      // The product of tiles that are ordinary by themselves vanishes and comes back.
      {"down by 2^3000 and up again",
       [=](std::int64_t i) { return step(i % 6000 < 3000 ? 0.5 : 2, i == 0 ? 1 : 0); }, 0, true},
      {"down by 2^2048 and up again, elsewhere",
       [=](std::int64_t i) { return step(i % 1024 < 512 ? 0.0625 : 16, i == 3 ? -1 : 0); }, 0,
       true},
      {"falls in silence", [=](std::int64_t i) { return step(0.5, i % 5000 == 0 ? 3 : 0); }, 0,
       true},
      {"grows beyond every range and comes back",
       [=](std::int64_t i) { return step(i % 9000 < 8000 ? noise(i) : 3, noise(i + 1) - 0.5); }, 1},
      {"a 0 ends what grew",
       [=](std::int64_t i) { return step(i % 97 == 0 ? 0 : 0x1p100, i % 97 == 0 ? 0x1p-60 : 0); },
       0, true},
      {"from a value on", [=](std::int64_t i) { return step(i % 2 == 0 ? 4 : 0.25, 0); }, 3, true},
      // Products vanish within a row; no infinity meets them.
      {"an infinity stays",
       [=](std::int64_t i) {
         return step(0x1p-20, i == 70 ? HUGE_VAL : i == 80 ? -1 : 0);
       },
       0, true},
      {"begins at infinity", [=](std::int64_t) { return step(0x1p-60, 0); }, HUGE_VAL, true},
      {"ordinary", [=](std::int64_t i) { return step(2 * noise(i) - 1, noise(i + 1) - 0.5); }, 0.5},
      {"of one sign, nearly 1",
       [=](std::int64_t i) { return step(1 - noise(i) / 4096, noise(i + 1)); }, 7},
      {"ordinary but for a few",
       [=](std::int64_t i) {
         return step(noise(3 * i) < 1.0 / 4096 ? 1000 : 2 * noise(i) - 1, noise(i + 1) - 0.5);
       },
       0},
      {"ordinary in the middle",
       [=](std::int64_t i) {
         return step(i / 1500 % 3 == 1 ? noise(i) : 3 * noise(i) - 1.5, noise(i + 1) - 0.5);
       },
       1},
  };
}

}  // namespace

const std::vector<RecurrenceCase>& recurrence_cases() {
  static const std::vector<RecurrenceCase> kCases = make();
  return kCases;
}

std::string check_recurrence(const RecurrenceCase& what, DType type, std::int64_t n,
                             std::int64_t segment, bool backward, const Executor& executor) {
  const dsl::Partition partition = segment > 0 ? segments(segment) : whole();
  const Computation computation = type == DType::f32
                                      ? computation_of<float>(what, partition, backward)
                                      : computation_of<double>(what, partition, backward);
  const std::int64_t length = segment > 0 ? segment : n;
  std::vector<Column> inputs;
  for (int input = 0; input < 2; ++input) inputs.emplace_back(type, n);
  const auto at = [&](std::int64_t k) {  // the k-th in the recurrence's direction
    return backward ? n - 1 - k : k;
  };
  for (std::int64_t k = 0; k < n; ++k) {
    const RecurrenceCase::Step step = what.step(k % length);
    inputs[0].set_double(at(k), step.factor);
    inputs[1].set_double(at(k), step.value);
  }
  const std::vector<Column> outputs = executor(computation, inputs, segment);
  if (outputs.size() != 1 || outputs[0].count() != n || outputs[0].type() != type)
    return what.name + ": other outputs";
  const long double u = rounding_unit(type), most = type == DType::f32
                                                        ? std::numeric_limits<float>::max()
                                                        : std::numeric_limits<double>::max();
  const long double least = type == DType::f32 ? 0x1p-149L : 0x1p-1074L;
  long double y = 0, sum = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    if (k % length == 0) {
      y = what.initial;
      sum = std::fabs(y);
    }
    const auto value = [&](std::size_t input) {
      return static_cast<long double>(codegen::double_of_bits(type, inputs[input].get(at(k))));
    };
    y = value(0) * y + value(1);
    sum = std::fabs(value(0)) * sum + std::fabs(value(1));
    const double got = codegen::double_of_bits(type, outputs[0].get(at(k)));
    const auto rounded =
        type == DType::f32 ? static_cast<double>(static_cast<float>(y)) : static_cast<double>(y);
    const long double off = what.exact ? 0 : 2 * u * sum + least;
    const bool fits = std::fabs(y) + off <= most;
    const bool right = got == rounded || (fits && std::fabs(got - y) <= off) ||
                       (!fits && !what.exact && !std::isnan(got));
    if (right) continue;
    return fmt::format("{}: {} of {}, segments of {}, {}: y {} is {}, not {} +- {}", what.name, n,
                       name_of(type), segment, backward ? "backward" : "forward", k, got, rounded,
                       static_cast<double>(off));
  }
  return "";
}

}  // namespace chainfold::test
