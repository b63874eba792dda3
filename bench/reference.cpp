#include "chainfold/bench/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "chainfold/bench/query6.hpp"

namespace chainfold::bench {
namespace {

__extension__ using Wide = __int128;

std::int64_t q6_value(std::uint64_t i) {
  using namespace query6_limits;
  const std::int64_t ship = random_shipdate(i), disc = random_discount(i);
  const bool hit = ship >= kShipFrom && ship < kShipTo && disc >= kDiscountFrom &&
                   disc <= kDiscountTo && random_quantity(i) < kQuantityBelow;
  return hit ? random_price(i) * disc : 0;
}

/// Exact integers about a range of elements.
struct Sums {
  Wide sum = 0, magnitude = 0, squares = 0;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  std::int64_t largest = std::numeric_limits<std::int64_t>::min();
  std::int64_t place = 0;  ///< of the first element that is the largest
  std::int64_t above = 0;  ///< elements above zero
  long double exponentials = 0;

  void merge(const Sums& other) {
    sum += other.sum;
    magnitude += other.magnitude;
    squares += other.squares;
    above += other.above;
    exponentials += other.exponentials;
    smallest = std::min(smallest, other.smallest);
    if (other.largest > largest || (other.largest == largest && other.place < place))
      place = other.place;
    largest = std::max(largest, other.largest);
  }
};

/// What costs more than an addition is left out where a case does not ask for it.
struct Wanted {
  bool squares = false, exponentials = false;
  int scale = 0;  ///< of the exponents
};

template <class Value>
Sums sums_of(const Elements& range, const Wanted& wanted, Value&& value) {
  Sums result;
  for (std::int64_t i = 0; i < range.count; ++i) {
    const std::int64_t k = value(static_cast<std::uint64_t>(range.first + i * range.step));
    result.sum += k;
    result.magnitude += k < 0 ? -k : k;
    result.smallest = std::min(result.smallest, k);
    result.above += k > 0 ? 1 : 0;
    if (k > result.largest) {
      result.largest = k;
      result.place = range.first + i * range.step;
    }
    if (wanted.squares) result.squares += static_cast<Wide>(k) * k;
    if (wanted.exponentials)
      result.exponentials += std::exp(std::ldexp(static_cast<double>(k), -wanted.scale));
  }
  return result;
}

Sums sums_of_range(const Case& test, const Elements& place) {
  // Inputs begin behind the first elements of what was filled.
  const Elements range{
      .first = place.first + test.offset, .count = place.count, .step = place.step};
  const Wanted wanted{
      .squares = test.op == Op::mean_rms || test.op == Op::mean_var || test.op == Op::variance,
      .exponentials = test.op == Op::logsumexp,
      .scale = scale_of(test.inputs()[0].source)};
  const auto sums = [&](auto&& value) { return sums_of(range, wanted, value); };
  switch (test.op) {
    case Op::q6: return sums(q6_value);
    case Op::dot: return sums([](std::uint64_t i) { return random_f16(i) * random_other(i); });
    case Op::filtered_sum:
      return sums([](std::uint64_t i) { return std::max(0ll, random_f16(i)); });
    default: break;
  }
  switch (test.source) {
    case Source::f16: return sums(random_f16);
    case Source::bf16: return sums(random_bf16);
    case Source::f64_short:
    case Source::f32: return sums(random_f32);
    case Source::f64: return sums(random_f64);
    case Source::i32: return sums(random_i32);
    case Source::i8: return sums(random_i8);
    case Source::normal: return sums(random_normal);
    case Source::uniform: return sums(random_uniform);
    case Source::balanced: return sums(random_balanced);
    default: throw std::logic_error("a source that only query 6 reads");
  }
}

/// One of `parts` equal shares of the elements.
Elements part_of(const Elements& all, std::int64_t part, std::int64_t parts) {
  const std::int64_t begin = all.count * part / parts, end = all.count * (part + 1) / parts;
  return {.first = all.first + begin * all.step, .count = end - begin, .step = all.step};
}

long double scaled(Wide value, int scale) {
  return std::ldexp(static_cast<long double>(value), -scale);
}

double read_value(const std::vector<std::byte>& bytes, DType type) {
  const auto as = [&]<class T>(T value) {
    if (bytes.size() != sizeof(T)) throw std::logic_error("an output of another size");
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  };
  switch (type) {
    case DType::f16: return static_cast<float>(as(f16{}));
    case DType::bf16: return static_cast<float>(as(bf16{}));
    case DType::f32: return as(float{});
    case DType::f64: return as(double{});
    case DType::boolean: return as(std::uint8_t{});
    case DType::i8: return as(std::int8_t{});
    case DType::i32: return as(std::int32_t{});
    case DType::i64: return static_cast<double>(as(std::int64_t{}));
    default: throw std::logic_error("an output type that the benchmark does not check");
  }
}

/// Half the distance between neighbouring numbers around 1.
double unit_of(DType type) {
  switch (type) {
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    case DType::f32: return 0x1p-24;
    default: return 0x1p-53;
  }
}

/// On all cores where they are many.
Sums sums_of_all(const Case& test, const Elements& all) {
  constexpr std::int64_t kWorthAThread = 1 << 18;
  const std::int64_t workers = std::clamp<std::int64_t>(
      all.count / kWorthAThread, 1, std::max(1u, std::thread::hardware_concurrency()));
  if (workers == 1) return sums_of_range(test, all);
  Sums sums;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (std::int64_t w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      const Sums mine = sums_of_range(test, part_of(all, w, workers));
      const std::lock_guard lock(mutex);
      sums.merge(mine);
    });
  }
  threads.clear();  // joins them
  return sums;
}

/// Of `count` elements from `first` on.
std::vector<Expected> expected_of(const Case& test, const Sums& sums, std::int64_t first,
                                  std::int64_t count) {
  int scale = scale_of(test.inputs()[0].source);
  if (test.op == Op::dot) scale *= 2;
  const auto n = static_cast<double>(count);
  const auto magnitude = static_cast<double>(scaled(sums.magnitude, scale));
  const std::int64_t some = std::max<std::int64_t>(1, count);
  const auto mean = static_cast<double>(scaled(sums.sum, scale) / some);
  const auto exactly = [&](std::int64_t k) {
    const auto value = static_cast<double>(scaled(k, scale));
    return Expected{.value = value, .magnitude = std::fabs(value)};
  };
  switch (test.op) {
    case Op::sum:
    case Op::dot:
    case Op::filtered_sum:
    case Op::inclusive_sum:
    case Op::exclusive_sum:
    case Op::sum_behind:
    case Op::sum_both_ways:
    case Op::decay:
    case Op::q6: {
      if (test.out == DType::i32) {  // modulo 2^32
        const auto low = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums.sum));
        return {{.value = static_cast<double>(low), .magnitude = magnitude}};
      }
      const auto value = static_cast<double>(scaled(sums.sum, scale));
      return {{.value = value, .magnitude = magnitude}};
    }
    case Op::sum_abs: return {{.value = magnitude, .magnitude = magnitude}};
    case Op::max:
    case Op::inclusive_max: return {exactly(sums.largest)};
    case Op::argmax:
    case Op::inclusive_argmax:
      return {{.value = static_cast<double>(sums.place - test.offset - first)}};
    case Op::any: return {{.value = sums.above > 0 ? 1.0 : 0.0}};
    case Op::count_above: return {{.value = static_cast<double>(sums.above)}};
    case Op::logsumexp: {
      // An error of a part of the sum is an error of as much of the logarithm itself.
      const auto value = static_cast<double>(std::log(sums.exponentials));
      return {{.value = value, .magnitude = 1 + std::fabs(value)}};
    }
    case Op::min_max: return {exactly(sums.smallest), exactly(sums.largest)};
    case Op::mean_rms: {
      const auto rms = static_cast<double>(std::sqrt(scaled(sums.squares, 2 * scale) / count));
      return {{.value = mean, .magnitude = magnitude / n}, {.value = rms, .magnitude = rms}};
    }
    case Op::variance:
    case Op::mean_var: {
      // n * squares - sum^2 is exact in integers: below 2^127 for up to 2^32 elements of f16, and
      // for 2^29 of f32 and i32.
      const Wide deviations = count * sums.squares - sums.sum * sums.sum;
      const long double variance = scaled(deviations, 2 * scale) / count / count;
      const Expected second{
          .value = static_cast<double>(variance),
          .magnitude = static_cast<double>(scaled(sums.squares, 2 * scale) / count)};
      if (test.op == Op::variance) return {second};
      return {{.value = mean, .magnitude = magnitude / n}, second};
    }
  }
  return {};
}

/// The recurrence at an element, from those before it that still count.
Expected decay_of(const Case& test, std::int64_t begin, std::int64_t index) {
  constexpr std::int64_t kCounts = 2048;
  const int scale = scale_of(test.inputs()[0].source);
  long double y = 0, magnitude = 0;
  for (std::int64_t i = std::max(begin, index - kCounts); i <= index; ++i) {
    const long double x = scaled(sums_of_range(test, {.first = i, .count = 1}).sum, scale);
    y = kDecay * y + x;
    magnitude = kDecay * magnitude + std::fabs(x);
  }
  return {.value = static_cast<double>(y), .magnitude = static_cast<double>(magnitude)};
}

/// Some numbers below `count`, ascending: the first, the last, and up to `wanted` in all.
std::vector<std::int64_t> some_of(std::int64_t count, std::int64_t wanted, std::uint64_t seed) {
  std::vector<std::int64_t> some = {0, count - 1};
  for (std::int64_t i = 2; i < wanted; ++i) {
    some.push_back(static_cast<std::int64_t>(mix(seed + static_cast<std::uint64_t>(i)) %
                                             static_cast<std::uint64_t>(count)));
  }
  return some;
}

void sort_and_thin(std::vector<std::int64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

/// Elements of some segments.
std::vector<std::int64_t> elements_of_segments(const Case& test,
                                               const std::vector<std::int64_t>& segments) {
  constexpr std::int64_t kAll = 2000, kLeast = 4, kFewSegments = 8;
  const auto count = static_cast<std::int64_t>(segments.size());
  std::vector<std::int64_t> elements;
  for (const std::int64_t segment : segments) {
    const auto [begin, length, step] = test.elements_of(segment);
    if (length == 0) continue;
    const std::int64_t wanted = std::min(length, std::max(kLeast, kAll / count / 2));
    std::vector<std::int64_t> places =
        some_of(length, wanted, static_cast<std::uint64_t>(segment) << 20);
    for (std::int64_t power = 2; count <= kFewSegments && power < length; power *= 2) {
      places.push_back(power - 1);
      places.push_back(power);
    }
    for (const std::int64_t place : places) elements.push_back(begin + place);
  }
  sort_and_thin(elements);
  return elements;
}

}  // namespace

std::vector<std::vector<Expected>> references(const Case& test,
                                              const std::vector<std::int64_t>& indices) {
  std::vector<std::vector<Expected>> result;
  const std::int64_t own = test.op == Op::exclusive_sum ? 0 : 1;  // whether the element is in
  Sums sums, all;
  std::int64_t begin = -1, next = -1;
  for (const std::int64_t index : indices) {
    if (!is_scan(test.op)) {
      const Elements all = test.elements_of(index);
      result.push_back(expected_of(test, sums_of_all(test, all), all.first, all.count));
      continue;
    }
    const Elements segment = test.segment_around(index);
    if (test.op == Op::decay) {
      result.push_back({decay_of(test, segment.first, index)});
      continue;
    }
    if (begin != segment.first) {
      begin = next = segment.first;
      sums = {};
      if (knows_all(test.op)) all = sums_of_all(test, segment);
    }
    const std::int64_t end = index + own;
    sums.merge(sums_of_all(test, {.first = next, .count = end - next}));
    next = end;
    Sums of_element = test.op == Op::sum_both_ways ? all : sums;
    if (test.op == Op::sum_behind) {
      of_element.sum -= all.sum;
      of_element.magnitude += all.magnitude;
    }
    result.push_back(expected_of(test, of_element, begin, end - begin));
  }
  return result;
}

std::vector<Expected> reference(const Case& test, std::int64_t index) {
  return references(test, {index}).front();
}

Checker::Checker(const Case& test) : test_(test) {
  constexpr std::int64_t kElements = 1 << 23, kMost = 500;
  const std::int64_t count = test.segments(),
                     length = std::max<std::int64_t>(1, test.elements / count);
  const std::int64_t wanted =
      std::min({count, kMost, std::max<std::int64_t>(3, kElements / length)});
  sample_ = some_of(count, wanted, 0);
  sort_and_thin(sample_);
  if (test.ragged) {  // the longest one is hardly ever drawn
    std::int64_t longest = 0;
    for (std::int64_t s = 1; s < count; ++s)
      if (test.elements_of(s).count > test.elements_of(longest).count) longest = s;
    sample_.push_back(longest);
    sort_and_thin(sample_);
  }
  if (is_scan(test.op)) sample_ = elements_of_segments(test, sample_);
  expected_ = references(test, sample_);
}

Deviation Checker::check(const ValuesOf& values, double bound_u, bool may_overflow) const {
  // A variance has no proven bound: a few dozen roundings of a merge or of a sum of squares. Nor
  // has logsumexp, whose exponentials err by a few units each.
  const bool unproven =
      test_.op == Op::mean_var || test_.op == Op::variance || test_.op == Op::logsumexp;
  const double own = unproven ? 64 : 4;
  const bool exact =
      test_.op == Op::max || test_.op == Op::min_max || test_.op == Op::inclusive_max;
  Deviation largest;
  for (std::size_t s = 0; s < sample_.size(); ++s) {
    // Of a scan, what is behind all of a segment: other prefixes of normal data may be near zero.
    const auto ends = [&](const Elements& all) { return all.first + all.count; };
    const bool total =
        !is_scan(test_.op) || ends(test_.segment_around(sample_[s])) == sample_[s] + 1;
    const std::vector<std::vector<std::byte>> outputs = values(sample_[s]);
    const std::vector<Expected>& expected = expected_[s];
    if (outputs.size() != expected.size()) throw std::logic_error("another number of outputs");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const DType type = test_.computation.output_type(i);
      const double value = read_value(outputs[i], type);
      if (may_overflow && !std::isfinite(value)) {
        largest.overflow = true;
        continue;
      }
      const double error = std::fabs(value - expected[i].value);
      double allowed = 0;
      if (!exact && is_float(type)) {
        const DType inner = type == DType::f64 ? DType::f64 : DType::f32;
        allowed = (bound_u + own) * unit_of(inner) * expected[i].magnitude;
        if (size_of(type) == 2)
          allowed += unit_of(type) * std::fabs(expected[i].value) + 0x1p-25;  // the narrowing cast
      }
      if (!(error <= allowed)) {
        throw WrongResult(fmt::format(
            "{}: output {} of {} {} is {:.17g}, exactly it is {:.17g}; the error {:g} is "
            "above {:g}",
            test_.name(), i, is_scan(test_.op) ? "element" : "segment", sample_[s], value,
            expected[i].value, error, allowed));
      }
      if (is_float(type) && expected[i].magnitude > 0)
        largest.units = std::max(largest.units, error / (unit_of(type) * expected[i].magnitude));
      if (error > 0 && total)
        largest.percent = std::max(largest.percent, 100 * error / std::fabs(expected[i].value));
    }
  }
  return largest;
}

}  // namespace chainfold::bench
