#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "chainfold/bench/suite_reduce.hpp"

namespace chainfold::bench {
namespace {

/// A number in (0, 1] that follows from a place.
double uniform(std::uint64_t i) { return (static_cast<double>(mix(i) >> 11) + 1) * 0x1p-53; }

using Length = std::function<std::int64_t(std::int64_t segment)>;

/// Segments of lengths that `length` tells, until they have `elements` elements.
std::shared_ptr<RaggedSegments> segments_of(const std::string& lengths, std::int64_t mean,
                                            std::int64_t elements, const Length& length) {
  auto all = std::make_shared<RaggedSegments>();
  all->lengths = lengths;
  all->mean = mean;
  all->offsets.push_back(0);
  for (std::int64_t s = 0; all->offsets.back() < elements; ++s)
    all->offsets.push_back(std::min(elements, all->offsets.back() + length(s)));
  return all;
}

std::int64_t geometric(std::int64_t segment, std::int64_t mean) {
  // Numbers from 0 on, of this mean.
  const double stay = static_cast<double>(mean) / static_cast<double>(mean + 1);
  return static_cast<std::int64_t>(std::log(uniform(static_cast<std::uint64_t>(segment))) /
                                   std::log(stay));
}

/// Lengths that fall by a power of their rank, from some millions to one.
std::int64_t zipf(std::int64_t segment) {
  constexpr double kMost = 1 << 22;
  const double draw = uniform(static_cast<std::uint64_t>(segment));
  return static_cast<std::int64_t>(std::min(kMost, 1 / draw));
}

/// So many empty segments, and one of all elements in their middle.
std::shared_ptr<RaggedSegments> one_of_all(std::int64_t elements, std::int64_t segments) {
  auto all = std::make_shared<RaggedSegments>();
  all->lengths = "all_but_one_empty";
  all->offsets.assign(static_cast<std::size_t>(segments / 2), 0);
  all->offsets.resize(static_cast<std::size_t>(segments + 1), elements);
  return all;
}

std::shared_ptr<RaggedSegments> with_flags(const RaggedSegments& segments) {
  auto all = std::make_shared<RaggedSegments>();
  all->lengths = segments.lengths;
  all->mean = segments.mean;
  all->offsets = segments.offsets;
  all->offsets.erase(std::unique(all->offsets.begin(), all->offsets.end()), all->offsets.end());
  all->flags.assign(static_cast<std::size_t>(all->offsets.back()), 0);
  for (std::size_t s = 0; s + 1 < all->offsets.size(); ++s)
    all->flags[static_cast<std::size_t>(all->offsets[s])] = 1;
  return all;
}

}  // namespace

std::vector<LazyCase> ragged_cases(std::int64_t bytes) {
  constexpr std::int64_t kEmpty = 1'000'000;
  std::vector<LazyCase> cases;
  const auto add =
      [&](const std::string& name, Op op, DType type,
          const std::function<std::shared_ptr<const RaggedSegments>(std::int64_t)>& segments) {
        cases.push_back({name, [=] {
                           return NamedCase{
                               name,
                               make_ragged_case(op, type, type, segments(bytes / size_of(type)))};
                         }});
      };
  const auto of_mean = [](const char* lengths, std::int64_t mean) {
    const std::string text = lengths;
    return [text, mean](std::int64_t n) -> std::shared_ptr<const RaggedSegments> {
      return segments_of(text, mean, n, [&](std::int64_t s) {
        return text == "constant" ? mean : geometric(s, mean);
      });
    };
  };
  const auto add_sums = [&](DType type) {
    const std::string_view word = chainfold::name_of(type);
    for (const char* lengths : {"geometric", "constant"})
      for (const std::int64_t mean : {1, 8, 64, 1000})
        add(fmt::format("ragged/{}/{}/{}", lengths, word, mean), Op::sum, type,
            of_mean(lengths, mean));
    add(fmt::format("ragged/zipf/{}", word), Op::sum, type,
        [](std::int64_t n) { return segments_of("zipf", 14, n, zipf); });
    add(fmt::format("ragged/0_to_10/{}", word), Op::sum, type, [](std::int64_t n) {
      return segments_of("0_to_10", 5, n, [](std::int64_t s) {
        return static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(s)) % 11);
      });
    });
    add(fmt::format("ragged/giant/{}", word), Op::sum, type, [](std::int64_t n) {
      // One of three quarters of all, where an eighth has come before.
      return segments_of(
          "giant", 8, n, [n, begun = std::int64_t{0}, had = false](std::int64_t s) mutable {
            const bool giant = !had && begun >= n / 8;
            had = had || giant;
            const std::int64_t length =
                giant ? n - n / 4
                      : static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(s)) % 17);
            begun += length;
            return length;
          });
    });
    add(fmt::format("ragged/all_but_one_empty/{}", word), Op::sum, type,
        [](std::int64_t n) { return one_of_all(n, kEmpty); });
    add(fmt::format("heads/geometric/{}/16", word), Op::sum, type,
        [of_mean](std::int64_t n) -> std::shared_ptr<const RaggedSegments> {
          return with_flags(*of_mean("geometric", 16)(n));
        });
  };
  add_sums(DType::f32);
  for (const std::int64_t mean : {16, 1000})
    add(fmt::format("ragged_scan/geometric/f32/{}", mean), Op::inclusive_sum, DType::f32,
        of_mean("geometric", mean));
  add("ragged_scan/geometric/f16/16", Op::inclusive_sum, DType::f16, of_mean("geometric", 16));
  for (const DType type : {DType::f64, DType::i32}) add_sums(type);
  // Lengths whose sums f16 holds.
  for (const char* lengths : {"geometric", "constant"})
    for (const std::int64_t mean : {8, 64, 1000})
      add(fmt::format("ragged/{}/f16/{}", lengths, mean), Op::sum, DType::f16,
          of_mean(lengths, mean));
  return cases;
}

}  // namespace chainfold::bench
