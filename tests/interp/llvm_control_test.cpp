// The CPU's code against the interpreter, bit for bit: exchanges between lanes, control, and random
// programs of the whole input together.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/op_table.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/tests/support/llvm_vs_interp.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;
using Values = Builder::Values;

// --- exchanges
// --------------------------------------------------------------------------------------

class LlvmExchanges : public LlvmVsInterp {};

TEST_P(LlvmExchanges, ShufflesPermutationsAndSources) {
  const DType type = GetParam();
  const int width = size_of(type) > 8 ? 1 : 2;
  constexpr std::int64_t kBlocks = 4;
  Bench bench(kBlocks);
  Builder b(bench.program);
  const std::int64_t tile = static_cast<std::int64_t>(kWarpWidth) * width;
  const int in = bench.buffer(type, BufferRole::input, kBlocks * tile, width * size_of(type));
  const int lanes = bench.buffer(DType::i32, BufferRole::input, kBlocks * kWarpWidth);
  const Address at{b.mul(b.block(), b.i64(tile))};
  const ValueId x = b.load(in, at, width);
  const auto keep = [&](ValueId value) {
    b.store(bench.buffer(type, BufferRole::output, kBlocks * tile, width * size_of(type)), at,
            value);
  };
  for (int mask = 0; mask < kWarpWidth; ++mask) keep(b.shuffle_xor(x, mask));
  for (const int distance : {1, 2, 5, 16, 31}) {
    keep(b.shuffle_up(x, distance));
    keep(b.shuffle_down(x, distance));
  }
  for (int i = 0; i < 8; ++i) {
    std::vector<std::uint8_t> source(kWarpWidth);
    for (std::uint8_t& s : source) s = static_cast<std::uint8_t>(bench.random() % kWarpWidth);
    keep(b.permute(x, source));
  }
  const ValueId by_data = b.load(lanes, {b.mul(b.block(), b.i64(kWarpWidth))});
  keep(b.shuffle_from(x, by_data));
  keep(b.shuffle_from(x, b.compute(Op::bit_xor, {b.lane(), b.i32(5)})));
  keep(b.shuffle_from(x, b.i32(-3)));
  keep(b.shuffle_from(x, b.convert(b.block(), DType::i32)));
  // What a transposed reduction does: each lane sends what the other row's lane needs.
  const ValueId y = b.permute(x, std::vector<std::uint8_t>(kWarpWidth, 3));
  for (const int mask : {1, 2, 4, 8, 16}) {
    const ValueId upper =
        b.compute(Op::ne, {b.compute(Op::bit_and, {b.lane(), b.i32(mask)}), b.i32(0)});
    keep(b.shuffle_xor(b.select(upper, x, y), mask));
  }
  for (int i = 0; i < 8; ++i) {
    std::vector<std::uint8_t> source(kWarpWidth);
    for (std::uint8_t& s : source) s = static_cast<std::uint8_t>(bench.random() % (2 * kWarpWidth));
    keep(b.permute(x, y, source));
  }
  EXPECT_EQ(bench.run(), "");
}

INSTANTIATE_TEST_SUITE_P(Types, LlvmExchanges, ::testing::ValuesIn(all_types()), type_name);

class LlvmControl : public LlvmVsInterp {};

/// Ranges of every length around where streams begin, and what is left behind them.
TEST_F(LlvmControl, StrandsTakeEveryBlock) {
  for (const auto& [count, least] :
       {std::pair{2, 1}, {2, 40}, {4, 1}, {4, 7}, {4, 1000}, {8, 1}, {8, 24}}) {
    for (const std::int64_t blocks : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 40, 47, 100}) {
      Bench bench(blocks);
      const int in = bench.buffer(DType::i64, BufferRole::input, blocks);
      const int out = bench.buffer(DType::i64, BufferRole::output, blocks);
      bench.program.launches[0].streams = {.count = count, .least = least};
      Builder b(bench.program);
      const ValueId value = b.add(b.load_uniform(in, b.block()), b.block());
      b.store(out, {b.block()}, value, b.compute(Op::eq, {b.lane(), b.i32(0)}));
      EXPECT_EQ(bench.run(), "") << count << " streams from " << least << ", " << blocks;
    }
  }
}

TEST_F(LlvmControl, Votes) {
  constexpr std::int64_t kBlocks = 64;
  Bench bench(kBlocks);
  const int in = bench.buffer(DType::i32, BufferRole::input, kBlocks * kWarpWidth);
  const int out = bench.buffer(DType::boolean, BufferRole::output, kBlocks * 4 * kWarpWidth);
  for (std::int64_t i = 0; i < kBlocks * kWarpWidth; ++i)  // blocks of none, one, all but one, all
    bench.arrays[0].set(
        i, (i / kWarpWidth & 1) ^ static_cast<Bits>((i / kWarpWidth & 2) != 0 && i % 32 == 17));
  Builder b(bench.program);
  const ValueId set =
      b.compute(Op::ne, {b.load(in, {b.mul(b.block(), b.i64(kWarpWidth))}), b.i32(0)});
  const ValueId base = b.mul(b.block(), b.i64(4 * kWarpWidth));
  b.store(out, {base}, b.any(set));
  b.store(out, {b.add(base, b.i64(32))}, b.all(set));
  b.store(out, {b.add(base, b.i64(64))}, b.any(b.both(set, b.lt(b.lane(), b.i32(17)))));
  b.store(out, {b.add(base, b.i64(96))},
          b.all(b.compute(Op::bit_or, {set, b.lt(b.lane(), b.i32(31))})));
  EXPECT_EQ(bench.run(), "");
}

/// Loops without a round, with carried values that change places, loops and branches in each other.
TEST_F(LlvmControl, LoopsAndBranches) {
  constexpr std::int64_t kBlocks = 12;
  Bench bench(kBlocks);
  const int in = bench.buffer(DType::f32, BufferRole::input, 4096, 8);
  const int out = bench.buffer(DType::f32, BufferRole::output, kBlocks * kWarpWidth * 4, 8);
  const int counts = bench.buffer(DType::i64, BufferRole::output, kBlocks * kWarpWidth * 2);
  Builder b(bench.program);
  const ValueId n = b.block(), base = b.mul(n, b.i64(128)), at = b.mul(n, b.i64(2 * kWarpWidth));
  const ValueId zero = b.splat(b.constant(DType::f32, 0));
  const Values sums = b.loop(
      b.i64(0), n, b.i64(3), {zero, b.load(in, {base}), b.i64(1), n},
      [&](ValueId i, const Values& c) {
        const ValueId x = b.load(in, {b.add(base, b.mul(i, b.i64(2)))});
        const Values inner =
            b.loop(i, b.i64(7), b.i64(2), {c[0], c[2]}, [&](ValueId j, const Values& d) {
              return Values{b.add(d[0], b.convert(j, DType::f32)), b.mul(d[1], b.i64(3))};
            });
        const Values chosen = b.branch(
            b.compute(Op::eq, {b.rem(i, b.i64(2)), b.i64(0)}),
            [&] { return Values{b.add(inner[0], x), c[0]}; },
            [&] {
              const Values deeper =
                  b.loop(b.i64(0), c[3], b.i64(1), {inner[0]}, [&](ValueId, const Values& d) {
                    return Values{b.compute(Op::min, {b.add(d[0], x), x})};
                  });
              return Values{deeper[0], b.mul(c[1], x)};
            });
        return Values{chosen[1], chosen[0], b.add(inner[1], b.i64(1)), c[2]};  // places change
      });
  b.store(out, {b.mul(n, b.i64(4 * kWarpWidth))}, sums[0]);
  b.store(out, {b.add(b.mul(n, b.i64(4 * kWarpWidth)), b.i64(32))}, sums[1]);
  b.store(counts, {at}, sums[2]);
  b.store(counts, {b.add(at, b.i64(32))}, sums[3]);
  // Carried short vectors.
  const ValueId two = b.load(in, {base}, 2);
  const Values wide = b.loop(b.i64(0), n, b.i64(1), {two}, [&](ValueId, const Values& c) {
    const ValueId swapped = b.concat({b.extract(c[0], 1), b.extract(c[0], 0)});
    return Values{
        b.add(swapped, b.mul(c[0], b.constant(DType::f32, bits_of_double(DType::f32, 0.5))))};
  });
  b.store(out, {b.add(b.mul(n, b.i64(4 * kWarpWidth)), b.i64(64))}, wide[0]);
  // Counted in 32 bits, from below zero on, up to bounds that may lie below the first.
  const ValueId short_n = b.convert(n, DType::i32);
  const Values sum = b.loop(b.sub(b.i32(3), short_n), b.sub(short_n, b.i32(1)), b.i32(2),
                            {b.i64(7)}, [&](ValueId i, const Values& c) {
                              const ValueId odd = b.mul(c[0], b.i64(3));
                              return Values{b.add(odd, b.convert(i, DType::i64))};
                            });
  b.store(out, {b.add(b.mul(n, b.i64(4 * kWarpWidth)), b.i64(96))},
          b.splat(b.convert(sum[0], DType::f32)));
  b.branch(
      b.lt(n, b.i64(5)),
      [&] {
        b.store(counts, {at}, b.i64(77), b.lt(b.lane(), b.i32(3)));
        return Values{};
      },
      [] { return Values{}; });
  EXPECT_EQ(bench.run(), "");
}

TEST_F(LlvmControl, UniformConditionsAndWidths) {
  constexpr std::int64_t kBlocks = 6;
  Bench bench(kBlocks);
  const int in = bench.buffer(DType::i16, BufferRole::input, kBlocks * 128, 8);
  const int out = bench.buffer(DType::i16, BufferRole::output, kBlocks * 128 * 3, 8);
  Builder b(bench.program);
  const ValueId x = b.load(in, {b.mul(b.block(), b.i64(128))}, 4);
  const ValueId even = b.compute(Op::eq, {b.rem(b.block(), b.i64(2)), b.i64(0)});
  const ValueId base = b.mul(b.block(), b.i64(3 * 128));
  b.store(out, {base}, b.select(even, x, b.load_uniform(in, b.block())));
  b.store(out, {b.add(base, b.i64(128))},
          b.select(b.lt(b.extract(x, 2), b.extract(x, 0)), x, b.constant(DType::i16, 9)));
  const ValueId turned =
      b.concat({b.extract(x, 2, 2), b.load_uniform(in, b.block()), b.extract(x, 0)});
  b.store(out, {b.add(base, b.i64(256))}, b.compute(Op::max, {turned, x}));
  EXPECT_EQ(bench.run(), "");
}

/// Random programs: a growing pool of lane values of several types under every kind of instruction.
TEST_F(LlvmControl, RandomPrograms) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    constexpr std::int64_t kBlocks = 8;
    Bench bench(kBlocks);
    bench.random.seed(seed);
    constexpr DType kTypes[] = {DType::i32, DType::f32, DType::i64, DType::f64, DType::u8};
    for (const DType type : kTypes) {
      const int in = bench.buffer(type, BufferRole::input, kBlocks * kWarpWidth);
      const std::vector<Bits> difficult = difficult_values(type);
      for (std::int64_t i = 0; i < kBlocks * kWarpWidth; i += 3)
        bench.arrays[static_cast<std::size_t>(in)].set(
            i, difficult[bench.random() % difficult.size()]);
    }
    Builder b(bench.program);
    const Address at{b.mul(b.block(), b.i64(kWarpWidth))};
    Values pool;
    for (int i = 0; i < 5; ++i) pool.push_back(b.load(i, at));
    const auto pick = [&](const Values& from) { return from[bench.random() % from.size()]; };
    const auto same = [&](DType type) {
      Values some;
      for (const ValueId id : pool)
        if (b.type(id).elem == type) some.push_back(id);
      return pick(some);
    };
    const auto step = [&](ValueId x) -> ValueId {
      const DType type = b.type(x).elem;
      switch (bench.random() % 8) {
        case 0: return b.shuffle_xor(x, static_cast<int>(bench.random() % 32));
        case 1: return b.convert(x, kTypes[bench.random() % 5]);
        case 2: return b.select(b.compute(Op::le, {x, same(type)}), x, same(type));
        case 3: return b.select(b.any(b.compute(Op::gt, {x, same(type)})), same(type), x);
        default:
          for (;;) {
            const Op op = static_cast<Op>(bench.random() % kOpCount);
            if (!is_defined(op, type) || is_test(op) || is_cast(op) || op == Op::select ||
                codegen::is_inexact(op))
              continue;
            Values operands{x};
            while (static_cast<int>(operands.size()) < arity(op)) operands.push_back(same(type));
            return b.compute(op, operands);
          }
      }
    };
    for (int i = 0; i < 30; ++i) {
      const ValueId x = pick(pool);
      if (bench.random() % 6 == 0) {
        pool.push_back(b.loop(b.i64(0), b.rem(b.block(), b.i64(4)), b.i64(1), {x},
                              [&](ValueId, const Values& c) {
                                const ValueId next = step(c[0]);
                                return Values{b.type(next).elem == b.type(x).elem ? next : c[0]};
                              })[0]);
      } else {
        pool.push_back(step(x));
      }
    }
    for (const ValueId id : pool) {
      const int out = bench.buffer(b.type(id).elem, BufferRole::output, kBlocks * kWarpWidth);
      b.store(out, at, id);
    }
    EXPECT_EQ(bench.run(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace chainfold::test
