#include <fmt/format.h>

#include <algorithm>

#include "chainfold/bench/suite_reduce.hpp"

namespace chainfold::bench {

namespace {

using chainfold::name_of;

/// Cases with their names.
class Cases {
 public:
  void add(Op op, DType in, DType out, std::int64_t elements, std::int64_t segment,
           const std::string& suffix = {}) {
    if (segment > elements) return;
    const std::string size = segment > 0 ? std::to_string(segment) : "whole";
    all.push_back({fmt::format("{}/{}/{}{}", bench::name_of(op), name_of(in), size, suffix),
                   make_case(op, in, out, elements, segment)});
  }
  void add_columns(DType type, std::int64_t elements, std::int64_t columns,
                   const std::string& suffix = {}) {
    if (columns > elements) return;
    all.push_back({fmt::format("axis0/{}/{}{}", name_of(type), columns, suffix),
                   make_columns_case(Op::sum, type, type, elements, columns)});
  }
  std::vector<NamedCase> all;
};

/// What a sum of so many elements of a type fits into.
DType sum_type(DType type, std::int64_t segment) {
  if (type == DType::i8) return DType::i32;
  return type == DType::f16 && segment == 0 ? DType::f32 : type;
}

/// Sums of segments of every kind of size: few elements, powers of two, what is no multiple of
/// anything.
void add_sums(Cases& cases, DType type, std::int64_t n) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 27;
  std::vector<std::int64_t> sizes = {8, 16, 32};
  for (std::int64_t s = 64; s <= kLongest; s *= 2) sizes.push_back(s);
  for (const std::int64_t odd : {24, 37, 100, 400, 500, 777, 1000, 1337, 4099})
    sizes.push_back(odd);
  for (std::int64_t s = 1; s <= 7; ++s) sizes.push_back(s);
  for (const std::int64_t s : sizes) cases.add(Op::sum, type, sum_type(type, s), n, s);
}

void add_cached(Cases& cases, std::int64_t bytes) {
  const std::size_t first = cases.all.size();
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8}) {
    const std::int64_t n = bytes / size_of(type);
    for (const std::int64_t s : {8, 16, 64, 1000, 4096, 0}) {
      const bool common = type == DType::f16 || type == DType::f32;
      if (common || s == 64) cases.add(Op::sum, type, sum_type(type, s), n, s, "/cache");
    }
  }
  for (const Op op : {Op::mean_var, Op::dot, Op::min_max, Op::filtered_sum})
    for (const std::int64_t s : {64, 1000})
      cases.add(op, DType::f16, DType::f16, bytes / (op == Op::dot ? 4 : 2), s, "/cache");
  for (const DType type : {DType::f16, DType::f32})
    cases.add_columns(type, bytes / size_of(type), 1024, "/cache");
  for (std::size_t i = first; i < cases.all.size(); ++i) cases.all[i].test.cached = true;
}

}  // namespace

std::vector<NamedCase> reduce_cases(std::int64_t bytes, std::int64_t cached_bytes) {
  Cases cases;
  const std::int64_t halves = bytes / 2;
  add_sums(cases, DType::f16, halves);
  cases.add(Op::sum, DType::f16, DType::f32, halves, 0);
  add_sums(cases, DType::bf16, halves);
  for (const DType type : {DType::f16, DType::f32}) {
    for (const int power : {16, 18, 20, 22, 24}) {
      const std::int64_t few = std::int64_t{1} << power;
      if (few < bytes / size_of(type))
        cases.add(Op::sum, type, DType::f32, few, 0, fmt::format("/{}", few));
    }
  }
  for (const Op op : {Op::mean_var, Op::dot, Op::min_max, Op::filtered_sum})
    for (const std::int64_t s : {64, 1000, 4096}) cases.add(op, DType::f16, DType::f16, halves, s);
  for (const DType type : {DType::f32, DType::i32, DType::i8, DType::f64}) {
    add_sums(cases, type, bytes / size_of(type));
    cases.add(Op::sum, type, sum_type(type, 0), bytes / size_of(type), 0);
  }
  for (const DType type : {DType::f16, DType::f32})
    for (const std::int64_t columns :
         {1000, 1001, 1024, 4096, 4099, 16384, 65536, 1 << 18, 1 << 20})
      cases.add_columns(type, bytes / size_of(type), columns);
  if (cached_bytes > 0) add_cached(cases, cached_bytes);
  return std::move(cases.all);
}

}  // namespace chainfold::bench
