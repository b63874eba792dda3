#include <fmt/format.h>

#include <algorithm>

#include "chainfold/bench/suite_reduce.hpp"

namespace chainfold::bench {

std::vector<NamedCase> scan_cases(std::int64_t bytes) {
  std::vector<NamedCase> cases;
  const auto add = [&](const char* name, Op op, DType in, DType out, std::int64_t n,
                       std::int64_t segment) -> NamedCase* {
    if (n < std::max<std::int64_t>(segment, 1)) return nullptr;
    const std::string size = segment > 0 ? std::to_string(segment) : "whole";
    cases.push_back({fmt::format("{}/{}/{}", name, chainfold::name_of(in), size),
                     make_case(op, in, out, n, segment)});
    return &cases.back();
  };
  const std::int64_t halves = bytes / 2;
  for (const std::int64_t s :
       {16, 32, 64, 128, 256, 512, 1024, 24, 100, 1000, 4096, 65536, 1 << 20, 1 << 24})
    add("scan", Op::inclusive_sum, DType::f16, DType::f16, halves, s);
  for (const DType type :
       {DType::f16, DType::bf16, DType::f32, DType::i32, DType::i8, DType::f64}) {
    const DType out = type == DType::i8 ? DType::i32 : type;
    add("scan", Op::inclusive_sum, type, out, bytes / size_of(out), 0);
  }
  for (const DType type : {DType::f16, DType::f32}) {
    for (const int power : {16, 18, 20, 22}) {
      const std::int64_t few = std::int64_t{1} << power;
      if (few >= bytes / size_of(type)) continue;
      add("scan_small", Op::inclusive_sum, type, type, few, 0);
      cases.back().name = fmt::format("scan_small/{}/{}", chainfold::name_of(type), few);
    }
  }
  for (const std::int64_t s : {500, 777, 4099, 33'001, 100'001})
    add("scan", Op::inclusive_sum, DType::f16, DType::f16, halves, s);
  for (const std::int64_t s : {1024, 0}) {
    add("scan_exclusive", Op::exclusive_sum, DType::f16, DType::f16, halves, s);
    add("scan_max", Op::inclusive_max, DType::f16, DType::f16, halves, s);
    if (NamedCase* in_place =
            add("scan_in_place", Op::inclusive_sum, DType::f16, DType::f16, halves, s))
      in_place->test.in_place = true;
  }
  for (const DType type : {DType::i8, DType::f32, DType::f64}) {
    for (const std::int64_t s : {64, 1000, 4099, 65536, 0})
      add("scan_max", Op::inclusive_max, type, type, bytes / size_of(type), s);
  }
  for (const std::int64_t s : {64, 1000, 4096, 65536, 0})
    add("recurrence", Op::decay, DType::f32, DType::f32, bytes / 4, s);
  for (const Op op : {Op::sum_behind, Op::sum_both_ways}) {
    const char* const name = op == Op::sum_behind ? "scan_behind" : "scan_both_ways";
    for (const std::int64_t s : {37, 333, 1000, 3001, 20'001, 65536, 0})
      add(name, op, DType::f32, DType::f32, bytes / 4, s);
    for (const std::int64_t s : {100, 333, 1501, 20'001, 0})
      add(name, op, DType::f16, DType::f16, halves, s);
  }
  return cases;
}

}  // namespace chainfold::bench
