#include "chainfold/tests/support/ragged.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace chainfold::test {

namespace {

std::vector<std::int64_t> lengths_of(Lengths lengths, std::int64_t elements,
                                     std::mt19937_64& random) {
  const auto up_to = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  std::vector<std::int64_t> all;
  std::int64_t left = elements;
  if (lengths == Lengths::empty)
    return std::vector<std::int64_t>(static_cast<std::size_t>(elements));
  if (lengths == Lengths::last) {
    all.resize(static_cast<std::size_t>(up_to(70)) + 1);
    all[static_cast<std::size_t>(up_to(static_cast<std::int64_t>(all.size()) - 1))] = elements;
    return all;
  }
  if (lengths == Lengths::giant) left = elements / 4;
  std::geometric_distribution<std::int64_t> geometric(0.01);
  while (left > 0) {
    std::int64_t length = 0;
    switch (lengths) {
      case Lengths::ones: length = 1; break;
      case Lengths::short_: length = up_to(65); break;
      case Lengths::geometric: length = geometric(random); break;
      case Lengths::constant: length = 32; break;
      default: length = up_to(3); break;
    }
    length = std::min(length, left);
    all.push_back(length);
    left -= length;
  }
  if (lengths == Lengths::giant) {
    all.insert(all.begin() + up_to(static_cast<std::int64_t>(all.size())), elements - elements / 4);
  }
  return all;
}

}  // namespace

dsl::Partition Ragged::partition() const {
  if (heads) return chainfold::heads(input<bool>("begins"));
  if (type == DType::i32)
    return pairs ? offsets<std::int32_t>("from", "to") : offsets<std::int32_t>("offsets");
  return pairs ? offsets("from", "to") : offsets("offsets");
}

std::vector<Column> Ragged::bounds() const {
  const auto count = static_cast<std::int64_t>(segments.size());
  std::vector<Column> all;
  if (heads) return all;
  const auto set = [](Column& column, std::int64_t i, std::int64_t value) {
    column.set(i, column.type() == DType::i32 ? static_cast<std::uint32_t>(value)
                                              : static_cast<Bits>(value));
  };
  if (pairs) {
    for (int side = 0; side < 2; ++side) {
      Column& column = all.emplace_back(type, count);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto& [begin, end] = segments[static_cast<std::size_t>(i)];
        set(column, i, side == 0 ? begin : end);
      }
    }
    return all;
  }
  Column& column = all.emplace_back(type, count + 1);
  for (std::int64_t i = 0; i < count; ++i)
    set(column, i, segments[static_cast<std::size_t>(i)].first);
  set(column, count, segments.empty() ? 0 : segments.back().second);
  return all;
}

void set_heads(const codegen::Graph& graph, const Ragged& ragged, std::vector<Column>& inputs) {
  for (std::size_t i = 0; i < inputs.size() && ragged.heads; ++i) {
    if (graph.inputs[i].name != "begins") continue;
    inputs[i].fill(std::byte{0});
    // What the first element says does not count.
    for (std::size_t s = 1; s < ragged.segments.size(); ++s)
      inputs[i].set(ragged.segments[s].first, 1);
  }
}

Ragged by_heads(const Ragged& ragged) {
  Ragged other;
  other.heads = true;
  for (const auto& [begin, end] : ragged.segments) {
    if (begin == end) continue;
    other.segments.emplace_back(other.elements, other.elements + end - begin);
    other.elements += end - begin;
  }
  return other;
}

Column of_segments(const Column& all, const Ragged& ragged) {
  std::int64_t count = 0, next = 0;
  for (const auto& [begin, end] : ragged.segments) count += end - begin;
  Column some(all.type(), count);
  for (const auto& [begin, end] : ragged.segments)
    for (std::int64_t i = begin; i < end; ++i) some.set(next++, all.get(i));
  return some;
}

std::string touched_between(const Column& all, const Ragged& ragged, std::byte held) {
  std::vector<bool> taken(static_cast<std::size_t>(all.count()), false);
  for (const auto& [begin, end] : ragged.segments)
    for (std::int64_t i = begin; i < end; ++i) taken[static_cast<std::size_t>(i)] = true;
  for (std::int64_t i = 0; i < all.count(); ++i) {
    const int size = size_of(all.type());
    for (int byte = 0; byte < size && !taken[static_cast<std::size_t>(i)]; ++byte)
      if (all.data()[i * size + byte] != held)
        return fmt::format("element {} is of no segment and was written\n", i);
  }
  return {};
}

Ragged make_ragged(Lengths lengths, std::int64_t elements, std::uint64_t seed, bool pairs,
                   DType type) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  Ragged ragged;
  ragged.pairs = pairs;
  ragged.type = type;
  std::int64_t at = up_to(3) == 0 ? up_to(40) : 0;
  for (const std::int64_t length : lengths_of(lengths, elements, random)) {
    ragged.segments.emplace_back(at, at + length);
    at += length;
    if (pairs) at += up_to(4) == 0 ? up_to(50) : 0;
  }
  ragged.elements = at + (up_to(2) == 0 ? up_to(300) : 0);
  return ragged;
}

}  // namespace chainfold::test
