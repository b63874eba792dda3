#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/tests/support/interp_fixture.hpp"

namespace chainfold::codegen {
namespace {

using Values = Builder::Values;
using test::all_schedules;
using Memory = test::InterpArrays;

// Programs over one input x, one output y and scratch, all i64, with one launch to begin with.
Program start(int warps = 1, int grid = 1, int shared_elements = 0) {
  Program program = test::three_arrays();
  Launch launch;
  launch.name = "first";
  launch.grid = SizeExpr(grid);
  launch.warps = warps;
  if (shared_elements > 0) launch.shared = {{"cells", DType::i64, shared_elements}};
  program.launches.push_back(launch);
  return program;
}

void run(const Program& program, Memory& memory, const InterpOptions& options = {}) {
  ASSERT_NO_THROW(verify(program)) << print(program);
  ASSERT_NO_THROW(interpret(program, memory.buffers(), {}, options)) << print(program);
}

ValueId warp_index(Builder& b) { return b.convert(b.warp(), DType::i64); }

TEST(Interp, AButterflyOfShufflesSumsTheWarp) {
  Program program = start();
  Builder b(program);
  ValueId sum = b.load(0, {b.i64(0)});
  for (int mask = 1; mask < kWarpWidth; mask *= 2) sum = b.add(sum, b.shuffle_xor(sum, mask));
  b.store(1, {b.i64(0)}, sum);
  Memory memory;
  run(program, memory);
  for (int l = 0; l < kWarpWidth; ++l) EXPECT_EQ(memory.y[static_cast<std::size_t>(l)], 33 * 16);
}

TEST(Interp, ShufflesPermutationsAndVotes) {
  Program program = start();
  Builder b(program);
  const ValueId x = b.load(0, {b.i64(0)});
  b.store(1, {b.i64(0)},
          b.shuffle_from(x, b.add(b.lane(), b.i32(33))));  // the next lane, modulo 32
  std::vector<std::uint8_t> source(kWarpWidth);
  for (int l = 0; l < kWarpWidth; ++l)
    source[static_cast<std::size_t>(l)] = static_cast<std::uint8_t>(31 - l);
  b.store(1, {b.i64(32)}, b.permute(x, source));
  const ValueId low = b.lt(b.lane(), b.i32(5)), all = b.lt(b.lane(), b.i32(32));
  const ValueId none = b.lt(b.lane(), b.i32(0));
  const ValueId votes =
      b.concat({b.convert(b.any(low), DType::i64), b.convert(b.all(low), DType::i64)});
  const ValueId more =
      b.concat({b.convert(b.all(all), DType::i64), b.convert(b.any(none), DType::i64)});
  b.store(1, {b.i64(64)}, votes);
  b.store(1, {b.i64(128)}, more);
  Memory memory;
  run(program, memory);
  for (std::size_t l = 0; l < 32; ++l) {
    EXPECT_EQ(memory.y[l], static_cast<std::int64_t>((l + 1) % 32 + 1));
    EXPECT_EQ(memory.y[32 + l], static_cast<std::int64_t>(32 - l));
  }
  EXPECT_EQ(memory.y[64], 1);
  EXPECT_EQ(memory.y[65], 0);
  EXPECT_EQ(memory.y[128], 1);
  EXPECT_EQ(memory.y[129], 0);
}

TEST(Interp, LoopsCarryAllValuesAtOnce) {
  Program program = start();
  Builder b(program);
  // (a, b) -> (b, a + b): a wrong order of copies would double instead.
  const Values last =
      b.loop(b.i64(0), b.i64(10), b.i64(1), {b.i64(0), b.i64(1)},
             [&](ValueId, const Values& v) { return Values{v[1], b.add(v[0], v[1])}; });
  // Rounds of a loop with a step, and of one that never runs.
  const Values rounds =
      b.loop(b.i64(3), b.i64(11), b.i64(4), {b.i64(0)}, [&](ValueId index, const Values& v) {
        return Values{b.add(b.mul(v[0], b.i64(100)), index)};
      });
  const Values none = b.loop(b.i64(5), b.i64(5), b.i64(1), {b.i64(7)},
                             [&](ValueId, const Values&) { return Values{b.i64(8)}; });
  b.store(1, {b.i64(0)}, b.splat(last[0]));
  b.store(1, {b.i64(32)}, b.splat(rounds[0]));
  b.store(1, {b.i64(64)}, b.splat(none[0]));
  Memory memory;
  run(program, memory);
  EXPECT_EQ(memory.y[0], 55);
  EXPECT_EQ(memory.y[32], 307);
  EXPECT_EQ(memory.y[64], 7);
}

TEST(Interp, BranchesYieldOfTheSideTaken) {
  Program program = start(1, 2);
  Builder b(program);
  const ValueId first = b.compute(Op::eq, {b.block(), b.i64(0)});
  const ValueId value = b.branch(
      first, [&] { return Values{b.splat(b.i64(10))}; },
      [&] { return Values{b.load(0, {b.i64(100)})}; })[0];
  b.store(1, {b.mul(b.block(), b.i64(32))}, value);
  for (const InterpOptions& options : all_schedules()) {
    Memory memory;
    run(program, memory, options);
    EXPECT_EQ(memory.y[3], 10);
    EXPECT_EQ(memory.y[32 + 3], 104);
  }
}

TEST(Interp, AddressesFollowGroupsAndStridesAndMasks) {
  Program program = start();
  Builder b(program);
  // Four lanes a row of 100, two elements a lane; lanes of 20 and above read nothing.
  const ValueId mask = b.lt(b.lane(), b.i32(20));
  const ValueId pairs = b.load(0, {b.i64(2), 4, 100}, 2, mask);
  b.store(1, {b.i64(0)}, pairs);
  b.store(1, {b.i64(64)}, b.add(b.extract(pairs, 1), b.i64(1)), mask);
  Memory memory;
  memory.y.fill(-5);
  run(program, memory);
  for (std::size_t l = 0; l < 32; ++l) {
    const auto x = static_cast<std::int64_t>(3 + (l / 4) * 100 + (l % 4) * 2);
    EXPECT_EQ(memory.y[2 * l], l < 20 ? x : 0);
    EXPECT_EQ(memory.y[2 * l + 1], l < 20 ? x + 1 : 0);
    EXPECT_EQ(memory.y[64 + l], l < 20 ? x + 2 : -5);
  }
}

TEST(Interp, AStepKnownAtLaunchStandsForAStride) {
  Program program = start();
  Builder b(program);
  const ValueId hundred = b.mul(b.add(b.block(), b.i64(1)), b.i64(100));
  b.store(1, {b.i64(0)}, b.load(0, {.base = b.i64(2), .group = 4, .step = hundred}, 2));
  Memory memory;
  run(program, memory);
  for (std::size_t l = 0; l < 32; ++l) {
    EXPECT_EQ(memory.y[2 * l], static_cast<std::int64_t>(3 + (l / 4) * 100 + (l % 4) * 2));
  }
}

// Each warp sums its part; one warp sums the warps' results after the barrier. Two rounds share the
// cells.
Program block_sums(bool first_barrier = true, bool second_barrier = true) {
  constexpr int kWarps = 4;
  Program program = start(kWarps, 5, kWarps);
  Builder b(program);
  const ValueId start_at = b.add(b.mul(b.block(), b.i64(256)), b.mul(warp_index(b), b.i64(32)));
  const ValueId warp_zero = b.compute(Op::eq, {b.warp(), b.i32(0)});
  b.loop(b.i64(0), b.i64(2), b.i64(1), {}, [&](ValueId round, const Values&) {
    const ValueId in_range = b.lt(b.add(start_at, b.mul(round, b.i64(128))), b.i64(1024));
    ValueId sum = b.load(0, {b.add(start_at, b.mul(round, b.i64(128)))}, 1, in_range);
    for (int mask = 1; mask < kWarpWidth; mask *= 2) sum = b.add(sum, b.shuffle_xor(sum, mask));
    b.shared_store(0, {warp_index(b)}, sum, b.lt(b.lane(), b.i32(1)));
    if (first_barrier) b.barrier();
    b.branch(
        warp_zero,
        [&] {
          ValueId parts = b.shared_load(0, {b.i64(0)}, 1, b.lt(b.lane(), b.i32(kWarps)));
          for (int mask = 1; mask < kWarps; mask *= 2)
            parts = b.add(parts, b.shuffle_xor(parts, mask));
          b.store(1, {b.add(b.mul(b.block(), b.i64(2)), round)}, parts, b.lt(b.lane(), b.i32(1)));
          return Values{};
        },
        [] { return Values{}; });
    if (second_barrier) b.barrier();
    return Values{};
  });
  return program;
}

TEST(Interp, SharedReductionsAgreeUnderEverySchedule) {
  const Program program = block_sums();
  for (const InterpOptions& options : all_schedules()) {
    Memory memory;
    run(program, memory, options);
    for (std::size_t part = 0; part < 8; ++part) {
      const auto first = static_cast<std::int64_t>(part * 128 + 1);
      EXPECT_EQ(memory.y[part], 128 * first + 127 * 64);
    }
    EXPECT_EQ(memory.y[8], 0);
  }
}

TEST(Interp, FindsSharedRacesUnderEverySchedule) {
  // Without the first barrier the parts are read while others write (or before they are written).
  for (const InterpOptions& options : all_schedules()) {
    Memory memory;
    EXPECT_THROW(interpret(block_sums(false, true), memory.buffers(), {}, options), InternalError);
  }
  // Without the second, the next round overwrites what warp 0 still reads.
  test::expect_interp_error(block_sums(true, false), "a race: ");
}

TEST(Interp, LaunchesSeeWhatEarlierOnesStored) {
  Program program = start(1, 4);
  {
    Builder b(program);
    const ValueId at = b.mul(b.block(), b.i64(32));
    b.store(2, {at}, b.mul(b.load(0, {at}), b.i64(10)));
  }
  program.launches.push_back({"second", SizeExpr(4), 1, 0, {}, {}});
  {
    Builder b(program);
    const ValueId other = b.mul(b.sub(b.i64(3), b.block()), b.i64(32));
    b.store(1, {b.mul(b.block(), b.i64(32))}, b.load(2, {other}));
  }
  Memory memory;
  run(program, memory, {.schedule = Schedule::random, .seed = 3});
  EXPECT_EQ(memory.y[0], 970);
  EXPECT_EQ(memory.y[127], 320);
  // Run alone, the second launch takes scratch as it is.
  memory.tmp.fill(4);
  interpret(program, memory.buffers(), {}, {}, 1);
  EXPECT_EQ(memory.y[0], 4);
  EXPECT_THROW(interpret(program, memory.buffers(), {}, {}, 2), InternalError);
}

TEST(Interp, ParametersEnterByTheirType) {
  Program program = start();
  program.params = {{"n", DType::i64, ParamRole::segments, 0},
                    {"u", DType::i32, ParamRole::user, 0}};
  program.launches[0].grid = SizeExpr::param(0, "n");
  Builder b(program);
  const ValueId sum = b.add(b.param(0), b.convert(b.param(1), DType::i64));
  b.store(1, {b.mul(b.block(), b.i64(32))}, b.splat(sum));
  Memory memory;
  const std::vector<std::uint64_t> params{2, 0xdead'ffff'fffeu};  // only the low 32 bits count: -2
  interpret(program, memory.buffers(), params, {});
  EXPECT_EQ(memory.y[0], 0);
  EXPECT_EQ(memory.y[63], 0);
  EXPECT_THROW(interpret(program, memory.buffers(), {}, {}), InternalError);
}

// --- what hardware hides
// --------------------------------------------------------------------------------

TEST(InterpFinds, AccessesOutOfBounds) {
  for (std::int64_t base : {-1, 1024 - 31}) {
    Program program = start();
    Builder b(program);
    const ValueId at = b.i64(base);  // named: the order of arguments is the compiler's
    const ValueId x = b.load(0, {at});
    b.store(1, {at}, x);
    test::expect_interp_error(program, "outside of [0, 1024)");
    test::expect_interp_error(program, base < 0 ? "lane 0, %1 = load x[%0]" : "lane 31, ");
  }
  Program program = start(1, 1, 16);
  Builder b(program);
  b.shared_store(0, {b.i64(0)}, b.load(0, {b.i64(0)}));
  test::expect_interp_error(program, "outside of [0, 16)");
}

TEST(InterpFinds, MisalignedWideAccesses) {
  Program program = start();
  Builder b(program);
  const ValueId odd = b.add(b.block(), b.i64(1));
  b.store(1, {b.i64(0)}, b.load(0, {odd}, 2));
  test::expect_interp_error(program, "not aligned to 2 elements");
}

TEST(Interp, WideAccessesLieAnywhereIfTheTargetSaysSo) {
  Program program = start();
  program.accesses_anywhere = true;
  Builder b(program);
  const ValueId odd = b.add(b.block(), b.i64(1));
  b.store(1, {odd}, b.load(0, {b.i64(3)}, 2));
  Memory memory;
  run(program, memory);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(memory.y[i + 1], memory.x[i + 3]) << i;
}

TEST(InterpFinds, ReadsOfPoison) {
  Program shared = start(1, 1, 64);
  {
    Builder b(shared);
    const ValueId zero = b.i64(0), one = b.i64(1);
    b.shared_store(0, {zero}, b.load(0, {zero}));
    b.store(1, {zero}, b.shared_load(0, {one}));  // one too far
  }
  test::expect_interp_error(
      shared,
      "lane 31, %3 = shared_load cells[%1] : lane<i64>: reads element 32: it was never written");
  for (int buffer : {1, 2}) {
    Program program = start();
    Builder b(program);
    b.store(1, {b.i64(64)}, b.load(buffer, {b.i64(0)}));
    test::expect_interp_error(program, "never written");
  }
}

TEST(InterpFinds, SharedMemoryDoesNotOutliveItsBlock) {
  Program program = start(1, 2, 32);
  Builder b(program);
  b.branch(
      b.compute(Op::eq, {b.block(), b.i64(0)}),
      [&] {
        b.shared_store(0, {b.i64(0)}, b.load(0, {b.i64(0)}));
        return Values{};
      },
      [] { return Values{}; });
  b.store(1, {b.mul(b.block(), b.i64(32))}, b.shared_load(0, {b.i64(0)}));
  test::expect_interp_error(program, "block 1, warp 0");
}

TEST(InterpFinds, RacesBetweenBlocks) {
  Program both_write = start(1, 2);
  {
    Builder b(both_write);
    b.store(1, {b.mul(b.block(), b.i64(31))}, b.load(0, {b.i64(0)}));
  }
  test::expect_interp_error(both_write, "a race: block ");
  Program reads =
      start(1, 2);  // block 0 writes, block 1 reads what was initialised by an earlier launch
  {
    Builder b(reads);
    b.store(2, {b.mul(b.block(), b.i64(32))}, b.load(0, {b.i64(0)}));
  }
  reads.launches.push_back({"second", SizeExpr(2), 1, 0, {}, {}});
  {
    Builder b(reads);
    b.branch(
        b.compute(Op::eq, {b.block(), b.i64(0)}),
        [&] {
          b.store(2, {b.i64(0)}, b.load(0, {b.i64(0)}));
          return Values{};
        },
        [&] {
          b.store(1, {b.i64(0)}, b.load(2, {b.i64(0)}));
          return Values{};
        });
  }
  test::expect_interp_error(reads, "a race: ");
}

TEST(InterpFinds, RacesBetweenWarpsInGlobalMemory) {
  Program program = start(2, 1);
  Builder b(program);
  b.store(1, {b.mul(warp_index(b), b.i64(16))}, b.load(0, {b.i64(0)}));
  test::expect_interp_error(program, "no barrier between");
}

TEST(InterpFinds, TwoLanesOfOneStore) {
  Program program = start();
  Builder b(program);
  b.store(1, {b.i64(0), 16, 8}, b.load(0, {b.i64(0)}));
  test::expect_interp_error(program, "two lanes of one store");
}

TEST(InterpFinds, Deadlocks) {  // programs that `verify` would refuse
  auto divergent = [](bool else_barrier) {
    Program program = start(3, 2);
    Builder b(program);
    b.branch(
        b.compute(Op::eq, {b.warp(), b.i32(1)}),
        [&] {
          b.barrier();
          return Values{};
        },
        [&] {
          if (else_barrier) b.barrier();
          return Values{};
        });
    return program;
  };
  EXPECT_THROW(verify(divergent(false)), InternalError);
  test::expect_interp_error(divergent(false), "ended without reaching this barrier");
  test::expect_interp_error(divergent(true), "waits at another barrier");
}

TEST(InterpFinds, LoopsWithoutProgress) {
  Program program = start();
  Builder b(program);
  b.loop(b.i64(0), b.i64(3), b.i64(0), {}, [](ValueId, const Values&) { return Values{}; });
  test::expect_interp_error(program, "step must be positive");
}

TEST(Interp, LoopsInThirtyTwoBits) {
  const auto loop_to = [](std::int32_t lo, std::int32_t hi) {
    Program program = start();
    Builder b(program);
    const ValueId sum =
        b.loop(b.i32(lo), b.i32(hi), b.i32(3), {b.i64(0)}, [&](ValueId i, const Values& c) {
          return Values{b.add(c[0], b.convert(i, DType::i64))};
        })[0];
    b.store(1, {b.i64(0)}, b.splat(sum));
    return program;
  };
  Memory memory;
  run(loop_to(-4, 5), memory);
  EXPECT_EQ(memory.y[0], -4 - 1 + 2);
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  run(loop_to(kMost - 4, kMost - 3), memory);
  EXPECT_EQ(memory.y[0], kMost - 4);
  test::expect_interp_error(loop_to(kMost - 4, kMost), "leaves 32 bits");
}

}  // namespace
}  // namespace chainfold::codegen
