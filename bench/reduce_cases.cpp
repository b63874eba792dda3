#include <fmt/format.h>

#include <algorithm>

#include "chainfold/bench/suite_reduce.hpp"

namespace chainfold::bench {

std::vector<NamedCase> reduce_cases(std::int64_t bytes) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 27;
  std::vector<NamedCase> cases;
  const auto add = [&](Op op, DType in, DType out, std::int64_t elements, std::int64_t segment,
                       const std::string& suffix = {}) {
    if (segment > elements) return;
    const std::string size = segment > 0 ? std::to_string(segment) : "whole" + suffix;
    cases.push_back({fmt::format("{}/{}/{}", name_of(op), chainfold::name_of(in), size),
                     make_case(op, in, out, elements, segment)});
  };
  for (const DType type : {DType::f16, DType::bf16}) {
    const std::int64_t n = bytes / size_of(type);
    std::vector<std::int64_t> sizes = {8, 16, 24, 32, 37, 100, 400, 500, 777, 1000, 1337, 4099};
    for (std::int64_t s = 64; s <= kLongest; s *= 2) sizes.push_back(s);
    for (std::int64_t s = 1; s <= 7; ++s) sizes.push_back(s);
    std::sort(sizes.begin(), sizes.end());
    for (const std::int64_t s : sizes) add(Op::sum, type, type, n, s);
    if (type != DType::f16) continue;
    // The sum of so many numbers is no f16.
    add(Op::sum, type, DType::f32, n, 0);
    for (const int power : {16, 18, 20, 22, 24}) {
      const std::int64_t few = std::int64_t{1} << power;
      if (few < n) add(Op::sum, type, DType::f32, few, 0, fmt::format("/{}", few));
    }
    for (const Op op : {Op::mean_var, Op::dot, Op::min_max, Op::filtered_sum})
      for (const std::int64_t s : {64, 1000, 4096}) add(op, type, type, n, s);
  }
  for (const DType type : {DType::f32, DType::i32, DType::i8, DType::f64}) {
    for (const std::int64_t s : {8, 16, 32, 64, 100, 256, 777, 1024, 4096, 65536, 0})
      add(Op::sum, type, type == DType::i8 ? DType::i32 : type, bytes / size_of(type), s);
  }
  for (const DType type : {DType::f16, DType::f32}) {
    for (const std::int64_t columns : {1000, 1024, 4096, 4099, 16384, 65536, 1 << 18, 1 << 20}) {
      const std::int64_t n = bytes / size_of(type);
      if (columns > n) continue;
      cases.push_back({fmt::format("axis0/{}/{}", chainfold::name_of(type), columns),
                       make_columns_case(Op::sum, type, type, n, columns)});
    }
  }
  return cases;
}

}  // namespace chainfold::bench
