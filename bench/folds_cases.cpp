#include <fmt/format.h>

#include <algorithm>

#include "chainfold/bench/suite_reduce.hpp"
#include "chainfold/bench/typed_folds.hpp"

namespace chainfold::bench {

std::vector<NamedCase> folds_cases(std::int64_t bytes) {
  std::vector<NamedCase> cases;
  const auto add = [&](Op op, DType type, std::int64_t segment, std::int64_t offset) {
    const std::int64_t in = size_of(type);
    const std::int64_t out = size_of(typed_fold(op, type, whole()).output_type(0));
    const std::int64_t n = bytes / (is_scan(op) ? std::max(in, out) : in);
    if (n < std::max<std::int64_t>(segment, 1)) return;
    const std::string size = segment > 0 ? std::to_string(segment) : "whole";
    cases.push_back({fmt::format("{}/{}/{}{}", bench::name_of(op), chainfold::name_of(type), size,
                                 offset > 0 ? "/off" : ""),
                     make_case(op, type, n, segment)});
    cases.back().test.offset = offset;
  };
  for (const std::int64_t offset : {0, 1}) {
    for (const Op op : {Op::argmax, Op::max, Op::count_above, Op::any, Op::variance, Op::sum_abs,
                        Op::logsumexp, Op::min_max, Op::inclusive_max, Op::inclusive_argmax}) {
      for (const DType type :
           {DType::f16, DType::i8, DType::f32, DType::f64, DType::bf16, DType::i32}) {
        if (!has_every_type(op, type)) continue;
        for (const std::int64_t s : {7, 64, 1000, 4099, 65536, 0}) add(op, type, s, offset);
      }
    }
  }
  return cases;
}

}  // namespace chainfold::bench
