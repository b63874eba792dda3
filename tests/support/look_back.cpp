#include "chainfold/tests/support/look_back.hpp"

#include <numeric>
#include <random>

#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/verify.hpp"

namespace chainfold::test {

using namespace codegen;

namespace {

constexpr int kX = 0, kY = 1, kSums = 2, kFlags = 3, kCounter = 4;
constexpr int kTotals = 0, kCarry = 1;  // shared arrays

class Writer {
 public:
  Writer(Program& program, const LookBack& shape) : b_(program), shape_(shape) {}

  void start() {
    const ValueId at = b_.mul(b_.block(), b_.i64(kWarpWidth));
    b_.store(kFlags, {at}, b_.i32(0), below(at, begin_of(shape_.levels)));
    b_.store(kCounter, {at}, b_.i64(0), below(at, b_.i64(1)));
  }

  void scan() {
    b_.loop(b_.i64(0), b_.i64(shape_.rounds), b_.i64(1), {}, [&](ValueId, const Builder::Values&) {
      tile(b_.ticket(kCounter));
      return Builder::Values{};
    });
  }

 private:
  ValueId is_zero(ValueId value) {
    return b_.compute(Op::eq, {value, b_.constant(b_.type(value).elem, 0)});
  }
  /// The lanes l with first + l < end.
  ValueId below(ValueId first, ValueId end) {
    return b_.lt(b_.add(b_.convert(b_.lane(), DType::i64), first), end);
  }
  ValueId tiles() {
    const std::int64_t size = std::int64_t{kWarpWidth} * shape_.warps;
    return b_.div(b_.add(b_.param(0), b_.i64(size - 1)), b_.i64(size));
  }
  /// Where the slots of a level begin; of the one behind the last: how many slots there are.
  ValueId begin_of(int level) {
    ValueId begin = b_.i64(0);
    for (std::int64_t k = 0, size = 1; k < level; ++k, size *= shape_.fan)
      begin = b_.add(begin, b_.div(tiles(), b_.i64(size)));
    return begin;
  }
  ValueId sum_of_lanes(ValueId value) {
    for (int mask = 1; mask < kWarpWidth; mask *= 2)
      value = b_.add(value, b_.shuffle_xor(value, mask));
    return value;
  }

  void publish(ValueId slot, ValueId sum, ValueId ticket) {
    b_.store(kSums, {slot}, sum, is_zero(b_.lane()));
    b_.publish(kFlags, slot, ticket);
  }

  /// The sum of all tiles before this one, whose own is `total`.
  ValueId carry_of(ValueId ticket, ValueId total) {
    ValueId carry = b_.splat(b_.i64(0)), fold = total;
    publish(ticket, total, ticket);
    std::int64_t size = 1;  // of a level's groups, in tiles
    for (int level = 0; level < shape_.levels; ++level, size *= shape_.fan) {
      const ValueId group = b_.div(ticket, b_.i64(size));
      const ValueId digit = b_.rem(group, b_.i64(shape_.fan)), first = b_.sub(group, digit);
      const ValueId slot = b_.add(begin_of(level), first);
      const ValueId last_of_first =
          b_.sub(b_.mul(b_.add(first, b_.i64(1)), b_.i64(size)), b_.i64(1));
      b_.await({.flags = kFlags,
                .first = slot,
                .count = digit,
                .ticket = ticket,
                .publisher = last_of_first,
                .stride = b_.i64(size)});
      const ValueId before = sum_of_lanes(b_.load(kSums, {slot}, 1, below(b_.i64(0), digit)));
      carry = b_.add(carry, before);
      fold = b_.add(fold, before);
      if (level + 1 == shape_.levels) break;
      const std::int64_t next = size * shape_.fan;
      b_.branch(
          is_zero(b_.rem(b_.add(ticket, b_.i64(1)), b_.i64(next))),
          [&] {
            publish(b_.add(begin_of(level + 1), b_.div(ticket, b_.i64(next))), fold, ticket);
            return Builder::Values{};
          },
          [] { return Builder::Values{}; });
    }
    return carry;
  }

  /// The same of a block of several warps: the first one looks back, for all. In `before` comes
  /// what lies before this warp within the tile.
  ValueId carry_of_block(ValueId ticket, ValueId total, ValueId& before) {
    const ValueId warp = b_.warp();
    b_.shared_store(kTotals, {b_.convert(warp, DType::i64)}, total, is_zero(b_.lane()));
    b_.barrier();
    const ValueId totals =
        b_.shared_load(kTotals, {b_.i64(0)}, 1, b_.lt(b_.lane(), b_.i32(shape_.warps)));
    before = sum_of_lanes(b_.select(b_.lt(b_.lane(), warp), totals, b_.splat(b_.i64(0))));
    b_.branch(
        is_zero(warp),
        [&] {
          b_.shared_store(kCarry, {b_.i64(0)}, carry_of(ticket, sum_of_lanes(totals)));
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
    b_.barrier();
    return b_.shared_load(kCarry, {b_.i64(0)});
  }

  void tile(ValueId ticket) {
    b_.branch(
        b_.lt(ticket, tiles()),
        [&] {
          const ValueId warp = b_.convert(b_.warp(), DType::i64);
          const ValueId at =
              b_.mul(b_.add(b_.mul(ticket, b_.i64(shape_.warps)), warp), b_.i64(kWarpWidth));
          const ValueId mask = below(at, b_.param(0));
          ValueId sum = b_.load(kX, {at}, 1, mask);
          for (int d = 1; d < kWarpWidth; d *= 2) {
            const ValueId more = b_.add(sum, b_.shuffle_up(sum, d));
            sum = b_.select(b_.lt(b_.lane(), b_.i32(d)), sum, more);
          }
          const ValueId total = b_.shuffle_from(sum, b_.i32(kWarpWidth - 1));
          ValueId before = b_.splat(b_.i64(0));
          const ValueId carry =
              shape_.warps == 1 ? carry_of(ticket, total) : carry_of_block(ticket, total, before);
          b_.store(kY, {at}, b_.add(sum, b_.add(carry, before)), mask);
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  }

  Builder b_;
  const LookBack& shape_;
};

}  // namespace

Program look_back_program(const LookBack& shape) {
  Program program;
  program.name = "look_back";
  program.in_place = shape.in_place;
  program.params = {{"elements", DType::i64, ParamRole::elements, 0}};
  const SizeExpr elements = SizeExpr::param(0, "elements");
  const SizeExpr tiles = ceil_div(elements, std::int64_t{kWarpWidth} * shape.warps);
  SizeExpr slots = 0;
  for (std::int64_t k = 0, size = 1; k < shape.levels; ++k, size *= shape.fan)
    slots = slots + ceil_div(tiles, size);
  program.buffers = {{"x", DType::i64, BufferRole::input, 0, 8, {}},
                     {"y", DType::i64, BufferRole::output, 0, 8, {}},
                     {"sums", DType::i64, BufferRole::scratch, 0, 8, slots},
                     {"flags", DType::i32, BufferRole::scratch, 1, 4, slots},
                     {"counter", DType::i64, BufferRole::scratch, 2, 8, 1}};
  program.launches.push_back(
      {.name = "start", .grid = ceil_div(max(slots, 1), kWarpWidth), .warps = 1});
  Writer(program, shape).start();
  program.launches.push_back(
      {.name = "scan", .grid = ceil_div(tiles, shape.rounds), .warps = shape.warps});
  if (shape.warps > 1) {
    program.launches.back().shared = {{"totals", DType::i64, shape.warps},
                                      {"carry", DType::i64, kWarpWidth}};
  }
  Writer(program, shape).scan();
  verify(program);
  return program;
}

LookBackMemory::LookBackMemory(const Program& program, std::int64_t elements, std::uint64_t seed)
    : params{static_cast<std::uint64_t>(elements)} {
  const auto size = [&](int buffer) {
    return static_cast<std::size_t>(
        program.buffers[static_cast<std::size_t>(buffer)].elements.evaluate(params));
  };
  x.resize(static_cast<std::size_t>(elements));
  y.resize(x.size());
  expected.resize(x.size());
  sums.resize(size(kSums));
  // What scratch holds is nobody's business: it must not look like zero.
  flags.assign(size(kFlags), 77);
  counter.assign(size(kCounter), 77);
  std::mt19937_64 random(seed);
  for (std::int64_t& value : x) value = static_cast<std::int64_t>(random() % 2'000'001) - 1'000'000;
  std::partial_sum(x.begin(), x.end(), expected.begin());
}

std::array<InterpBuffer, 5> LookBackMemory::buffers(const Program& program) {
  const auto of = [](auto& values) {
    return InterpBuffer{values.data(), static_cast<std::int64_t>(values.size())};
  };
  return {of(x), of(program.in_place ? x : y), of(sums), of(flags), of(counter)};
}

std::vector<std::uint64_t> LookBackMemory::arguments(const Program& program) {
  std::vector<std::uint64_t> slots;
  for (const InterpBuffer& buffer : buffers(program))
    slots.push_back(reinterpret_cast<std::uintptr_t>(buffer.data));
  slots.insert(slots.end(), params.begin(), params.end());
  return slots;
}

}  // namespace chainfold::test
