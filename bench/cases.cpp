#include "chainfold/bench/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace chainfold::bench {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kShipFrom = 8766, kShipTo = 9131;
constexpr std::int64_t kDiscountFrom = 5, kDiscountTo = 7, kQuantityBelow = 2400;

template <class T>
Computation sum_of(const dsl::Partition& partition, DType out) {
  const auto x = input<T>("x");
  if (out == DType::f16) {
    if constexpr (is_float(kDType<T>)) return over(partition, cast<f16>(sum(x)));
  }
  return over(partition, sum(x));
}

Computation computation_of(Op op, DType in, DType out, const dsl::Partition& partition) {
  switch (op) {
    case Op::sum:
      if (in == DType::f16) return sum_of<f16>(partition, out);
      if (in == DType::f32) return sum_of<float>(partition, out);
      if (in == DType::f64) return sum_of<double>(partition, out);
      if (in == DType::i8) return sum_of<std::int8_t>(partition, out);
      break;
    case Op::mean_rms: {
      const auto x = input<f16>("x");
      if (in == DType::f16) return over(partition, mean(x), sqrt(mean(x * x)));
      break;
    }
    case Op::max:
      if (in == DType::f16) return over(partition, max(input<f16>("x")));
      break;
    case Op::q6: {
      const auto ship = input<std::int32_t>("shipdate");
      const auto disc = input<std::int64_t>("discount");
      const auto qty = input<std::int64_t>("quantity");
      const auto price = input<std::int64_t>("extendedprice");
      const auto hit = ship >= static_cast<std::int32_t>(kShipFrom) &&
                       ship < static_cast<std::int32_t>(kShipTo) && disc >= kDiscountFrom &&
                       disc <= kDiscountTo && qty < kQuantityBelow;
      return over(partition, sum(price * disc, where(hit)));
    }
  }
  throw std::logic_error(
      fmt::format("there is no benchmark of {} over {}", name_of(op), chainfold::name_of(in)));
}

/// Exact integers about a range of elements.
struct Sums {
  Wide sum = 0, magnitude = 0, squares = 0;
  std::int64_t largest = std::numeric_limits<std::int64_t>::min();

  void merge(const Sums& other) {
    sum += other.sum;
    magnitude += other.magnitude;
    squares += other.squares;
    largest = std::max(largest, other.largest);
  }
};

template <class Value>
Sums sums_of(std::int64_t begin, std::int64_t end, bool squares, Value&& value) {
  Sums result;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t k = value(static_cast<std::uint64_t>(i));
    result.sum += k;
    result.magnitude += k < 0 ? -k : k;
    result.largest = std::max(result.largest, k);
    if (squares) result.squares += static_cast<Wide>(k) * k;
  }
  return result;
}

std::int64_t q6_value(std::uint64_t i) {
  const std::int64_t ship = random_shipdate(i), disc = random_discount(i);
  const bool hit = ship >= kShipFrom && ship < kShipTo && disc >= kDiscountFrom &&
                   disc <= kDiscountTo && random_quantity(i) < kQuantityBelow;
  return hit ? random_price(i) * disc : 0;
}

Sums sums_of_range(const Case& test, std::int64_t begin, std::int64_t end) {
  if (test.op == Op::q6) return sums_of(begin, end, false, q6_value);
  const bool squares = test.op == Op::mean_rms;
  switch (test.in) {
    case DType::f16: return sums_of(begin, end, squares, random_f16);
    case DType::f32: return sums_of(begin, end, squares, random_f32);
    case DType::f64: return sums_of(begin, end, false, random_f64);
    default: return sums_of(begin, end, false, random_i8);
  }
}

Source source_of(DType type) {
  switch (type) {
    case DType::f16: return Source::f16;
    case DType::f32: return Source::f32;
    case DType::f64: return Source::f64;
    default: return Source::i8;
  }
}

double scaled(Wide value, int scale) {
  return static_cast<double>(std::ldexp(static_cast<long double>(value), -scale));
}

double read_value(const std::vector<std::byte>& bytes, DType type) {
  const auto as = [&]<class T>(T value) {
    if (bytes.size() != sizeof(T)) throw std::logic_error("an output of another size");
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  };
  switch (type) {
    case DType::f16: return static_cast<float>(as(f16{}));
    case DType::f32: return as(float{});
    case DType::f64: return as(double{});
    case DType::i64: return static_cast<double>(as(std::int64_t{}));
    default: throw std::logic_error("an output type that the benchmark does not check");
  }
}

/// Half the distance between neighbouring numbers around 1.
double unit_of(DType type) {
  switch (type) {
    case DType::f16: return std::ldexp(1.0, -11);
    case DType::f32: return std::ldexp(1.0, -24);
    default: return std::ldexp(1.0, -53);
  }
}

}  // namespace

const char* name_of(Op op) {
  switch (op) {
    case Op::sum: return "sum";
    case Op::mean_rms: return "mean+rms";
    case Op::max: return "max";
    case Op::q6: return "q6";
  }
  return "?";
}

std::vector<Case::Input> Case::inputs() const {
  if (op != Op::q6) return {{"x", source_of(in), in}};
  return {{"shipdate", Source::shipdate, DType::i32},
          {"discount", Source::discount, DType::i64},
          {"quantity", Source::quantity, DType::i64},
          {"extendedprice", Source::price, DType::i64}};
}

std::int64_t Case::bytes_read() const {
  std::int64_t bytes = 0;
  for (const Input& input : inputs()) bytes += elements * size_of(input.type);
  return bytes;
}

std::int64_t Case::bytes_written() const {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < computation.outputs(); ++i)
    bytes += segments() * size_of(computation.output_type(i));
  return bytes;
}

std::string Case::name() const {
  const std::string size = segment > 0 ? fmt::format("S={}", segment) : "whole";
  const std::string type = op == Op::q6 ? "i64" : std::string(chainfold::name_of(in));
  return fmt::format("{} {}->{} {}", bench::name_of(op), type, chainfold::name_of(out), size);
}

Case make_case(Op op, DType in, DType out, std::int64_t elements, std::int64_t segment) {
  if (segment > 0) elements -= elements % segment;
  if (elements < 1)
    throw std::runtime_error(fmt::format("too few elements for segments of {}", segment));
  return {.op = op,
          .in = in,
          .out = out,
          .elements = elements,
          .segment = segment,
          .computation = computation_of(op, in, out, segment > 0 ? segments(segment) : whole())};
}

std::vector<Expected> reference(const Case& test, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kWorthAThread = 1 << 18;
  const std::int64_t count = end - begin;
  const std::int64_t workers = std::clamp<std::int64_t>(
      count / kWorthAThread, 1, std::max(1u, std::thread::hardware_concurrency()));
  Sums sums;
  if (workers == 1) {
    sums = sums_of_range(test, begin, end);
  } else {
    std::mutex mutex;
    std::vector<std::jthread> threads;
    for (std::int64_t w = 0; w < workers; ++w) {
      threads.emplace_back([&, w] {
        const Sums mine =
            sums_of_range(test, begin + count * w / workers, begin + count * (w + 1) / workers);
        const std::lock_guard lock(mutex);
        sums.merge(mine);
      });
    }
  }
  const int scale = test.op == Op::q6 ? 0 : scale_of(source_of(test.in));
  const auto n = static_cast<double>(count);
  const double magnitude = scaled(sums.magnitude, scale);
  switch (test.op) {
    case Op::sum:
    case Op::q6: return {{.value = scaled(sums.sum, scale), .magnitude = magnitude}};
    case Op::max: {
      const double value = scaled(sums.largest, scale);
      return {{.value = value, .magnitude = std::fabs(value)}};
    }
    case Op::mean_rms: {
      const double rms = std::sqrt(scaled(sums.squares, 2 * scale) / n);
      return {{.value = scaled(sums.sum, scale) / n, .magnitude = magnitude / n},
              {.value = rms, .magnitude = rms}};
    }
  }
  return {};
}

double bound_of_plan(const std::string& plan) {
  constexpr std::string_view kWords = "error bound ";
  double bound = 0;
  for (std::size_t at = plan.find(kWords); at != std::string::npos; at = plan.find(kWords, at + 1))
    bound = std::max(bound, std::strtod(plan.c_str() + at + kWords.size(), nullptr));
  return bound;
}

std::vector<std::int64_t> Checker::sample() const {
  constexpr std::int64_t kElements = 1 << 23, kMost = 500;
  const std::int64_t count = test_.segments();
  const std::int64_t length = test_.elements / count;
  const std::int64_t wanted =
      std::min({count, kMost, std::max<std::int64_t>(3, kElements / length)});
  std::vector<std::int64_t> result = {0, count - 1};
  for (std::int64_t i = 2; i < wanted; ++i) {
    result.push_back(static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(i)) %
                                               static_cast<std::uint64_t>(count)));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

void Checker::check(std::int64_t segment, const std::vector<std::vector<std::byte>>& outputs) {
  const std::int64_t length = test_.elements / test_.segments();
  const std::vector<Expected> expected = reference(test_, segment * length, (segment + 1) * length);
  if (outputs.size() != expected.size()) throw std::logic_error("another number of outputs");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const DType type = test_.computation.output_type(i);
    const double value = read_value(outputs[i], type);
    const double error = std::fabs(value - expected[i].value);
    double allowed = 0;  // integers and maxima are exact
    if (test_.op != Op::max && is_float(type)) {
      const DType inner = type == DType::f64 ? DType::f64 : DType::f32;
      // The fold's bound, a few roundings of what is done with it, and the one of a narrowing cast.
      allowed = (bound_u_ + 4) * unit_of(inner) * expected[i].magnitude;
      if (type == DType::f16) allowed += unit_of(type) * std::fabs(expected[i].value) + 0x1p-25;
    }
    if (!(error <= allowed)) {
      throw std::runtime_error(fmt::format(
          "{}: output {} of segment {} is {:.17g}, exactly it is {:.17g}; the error {:g} is "
          "above {:g}",
          test_.name(), i, segment, value, expected[i].value, error, allowed));
    }
    if (is_float(type) && expected[i].magnitude > 0)
      max_error_u_ = std::max(max_error_u_, error / (unit_of(type) * expected[i].magnitude));
  }
}

}  // namespace chainfold::bench
