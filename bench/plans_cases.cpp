#include "chainfold/bench/plans_cases.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <istream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace chainfold::bench {

Way pinned_way(const std::string& plan) {
  static_cast<void>(codegen::parse_choice(plan));  // throws what is wrong with it
  return {.impl = "chainfold", .kind = "pinned", .strategy = plan};
}

namespace {

Op op_of(const std::string& word) {
  for (const Op op : {Op::sum,
                      Op::mean_var,
                      Op::mean_rms,
                      Op::dot,
                      Op::max,
                      Op::min_max,
                      Op::filtered_sum,
                      Op::argmax,
                      Op::any,
                      Op::count_above,
                      Op::variance,
                      Op::sum_abs,
                      Op::logsumexp,
                      Op::inclusive_sum,
                      Op::exclusive_sum,
                      Op::inclusive_max,
                      Op::inclusive_argmax,
                      Op::sum_behind,
                      Op::sum_both_ways,
                      Op::decay}) {
    if (word == name_of(op)) return op;
  }
  throw std::runtime_error(fmt::format("there is no op '{}'", word));
}

DType type_of(const std::string& word) {
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i32,
                           DType::i64, DType::boolean})
    if (word == chainfold::name_of(type)) return type;
  throw std::runtime_error(fmt::format("'{}' is no type that is measured", word));
}

std::int64_t number_of(const std::string& word, const char* what) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 0)
    throw std::runtime_error(fmt::format("'{}' is no number of {}", word, what));
  return number;
}

Way way_of(const std::string& text, bool gpu, bool scan) {
  if (text.empty()) return {.impl = "chainfold", .kind = "chosen", .strategy = {}};
  using Peers = std::vector<std::string_view>;
  for (const std::string_view peer : gpu    ? Peers{"cub", "cub-keys", "cub-offsets"}
                                     : scan ? Peers{"std-par"}
                                            : Peers{"openmp-simd"})
    if (text == peer) return {.impl = text, .kind = {}, .strategy = {}};
  return pinned_way(text);
}

NamedCase case_of(const std::string& op, const std::string& in, const std::string& out,
                  const std::string& segment, const std::string& elements, std::int64_t bytes) {
  const DType from = type_of(in), to = type_of(out);
  const std::size_t plus = elements.find('+');
  const std::int64_t offset =
      plus == std::string::npos ? 0 : number_of(elements.substr(plus + 1), "elements");
  std::int64_t count = number_of(elements.substr(0, plus), "elements");
  const bool scan = is_scan(op_of(op));
  if (count == 0) count = bytes / std::max(size_of(from), scan ? size_of(to) : 1);
  const std::int64_t most = bytes / size_of(from);
  if (count > most) {
    throw std::runtime_error(fmt::format(
        "{} elements of {} are more than the {} that are kept; take --elements", count, in, most));
  }
  const std::string name = fmt::format("{}/{}-{}/{}/{}{}", op, in, out, segment, count,
                                       offset > 0 ? fmt::format("+{}", offset) : "");
  constexpr std::string_view kColumns = "columns=";
  if (segment.starts_with(kColumns)) {
    const std::int64_t columns = number_of(segment.substr(kColumns.size()), "columns");
    if (columns == 0 || scan) throw std::runtime_error("columns are of folds, and at least one");
    NamedCase named{name, make_columns_case(op_of(op), from, to, count, columns)};
    named.test.offset = offset;
    return named;
  }
  const std::int64_t size = segment == "whole" ? 0 : number_of(segment, "elements of a segment");
  NamedCase named{name, make_case(op_of(op), from, to, count, size)};
  named.test.offset = offset;
  return named;
}

}  // namespace

std::vector<NamedCase> plans_cases(std::istream& list, std::int64_t bytes, bool gpu) {
  std::vector<NamedCase> cases;
  std::string line;
  for (int number = 1; std::getline(list, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string op, in, out, segment, elements, way, word;
    if (!(words >> op)) continue;
    try {
      if (!(words >> in >> out >> segment >> elements))
        throw std::runtime_error("OP IN OUT SEGMENT ELEMENTS are needed");
      while (words >> word) way += (way.empty() ? "" : " ") + word;
      NamedCase named = case_of(op, in, out, segment, elements, bytes);
      const bool scan = is_scan(named.test.op);
      if (cases.empty() || cases.back().name != named.name) cases.push_back(std::move(named));
      cases.back().ways.push_back(way_of(way, gpu, scan));
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("line {} of the list: {}", number, error.what()));
    }
  }
  return cases;
}

}  // namespace chainfold::bench
