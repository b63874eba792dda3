// Atomic additions: their meaning under every schedule, what they make visible, and the races that
// remain races.
#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/emit/cuda/cuda.hpp"
#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/tests/support/interp_fixture.hpp"

namespace chainfold::codegen {
namespace {

using test::all_schedules;
using Memory = test::InterpArrays;

constexpr int kBlocks = 5;

/// Input x, output y and scratch tmp, all i64; the first launch sets what is added to to zero.
Program start() {
  Program program = test::three_arrays();
  program.launches.reserve(3);
  program.launches.push_back({.name = "start", .grid = SizeExpr(1)});
  {
    Builder b(program);
    b.store(2, {b.i64(992)}, b.i64(0));
  }
  program.launches.push_back({.name = "work", .grid = SizeExpr(kBlocks), .warps = 2});
  return program;
}

/// All schedules find the error.
void expect_error(const Program& program, const std::string& part) {
  verify(program);
  test::expect_interp_error(program, part);
}

ValueId lane_is(Builder& b, int lane) { return b.compute(Op::eq, {b.lane(), b.i32(lane)}); }

TEST(Atomic, AdditionsOfLanesWarpsAndBlocksAllCount) {
  Program program = start();
  {
    Builder b(program);
    const ValueId odd = b.compute(Op::ne, {b.rem(b.lane(), b.i32(2)), b.i32(0)});
    const ValueId before =
        b.atomic_add(2, {b.i64(992), 1, 0}, b.convert(b.lane(), DType::i64), odd);
    const ValueId place =
        b.mul(b.add(b.mul(b.block(), b.i64(2)), b.convert(b.warp(), DType::i64)), b.i64(32));
    b.store(1, {place}, before);
  }
  program.launches.push_back({.name = "read", .grid = SizeExpr(1)});
  {
    Builder b(program);
    b.store(1, {b.i64(992)}, b.load(2, {b.i64(992)}), lane_is(b, 0));
  }
  verify(program);
  for (const InterpOptions& options : all_schedules()) {
    Memory memory;
    interpret(program, memory.buffers(), {}, options);
    EXPECT_EQ(memory.y[992], 2 * kBlocks * 256) << "the sum of 1, 3, ..., 31, ten times";
    for (int l = 0; l < 64 * kBlocks; l += 2) EXPECT_EQ(memory.y[static_cast<std::size_t>(l)], 0);
    std::int64_t least = 1 << 20;
    for (int l = 1; l < 64 * kBlocks; l += 2)
      least = std::min(least, memory.y[static_cast<std::size_t>(l)]);
    EXPECT_EQ(least, 0) << "somebody was the first";
  }
}

/// Blocks leave numbers; the last to finish adds them up.
Program last_block(AtomicOrder order) {
  Program program = start();
  Builder b(program);
  const ValueId first_warp = b.compute(Op::eq, {b.warp(), b.i32(0)});
  b.branch(
      first_warp,
      [&] {
        b.store(2, {b.mul(b.block(), b.i64(32))}, b.load(0, {b.mul(b.block(), b.i64(32))}));
        const ValueId before = b.atomic_add(2, {b.i64(992)}, b.i64(1), lane_is(b, 0), order);
        const ValueId last = b.compute(Op::eq, {before, b.i64(kBlocks - 1)});
        b.branch(
            b.any(b.both(lane_is(b, 0), last)),
            [&] {
              ValueId sum = b.splat(b.i64(0));
              for (int block = 0; block < kBlocks; ++block)
                sum = b.add(sum, b.load(2, {b.i64(block * 32)}));
              b.store(1, {b.i64(0)}, sum);
              return Builder::Values{};
            },
            [] { return Builder::Values{}; });
        return Builder::Values{};
      },
      [] { return Builder::Values{}; });
  return program;
}

TEST(Atomic, AcquireReleaseShowsWhatBlocksStoredBefore) {
  const Program program = last_block(AtomicOrder::acquire_release);
  verify(program);
  for (const InterpOptions& options : all_schedules()) {
    Memory memory;
    ASSERT_NO_THROW(interpret(program, memory.buffers(), {}, options)) << print(program);
    for (std::size_t l = 0; l < 32; ++l) {
      std::int64_t expected = 0;
      for (std::size_t block = 0; block < kBlocks; ++block) expected += memory.x[block * 32 + l];
      EXPECT_EQ(memory.y[l], expected);
    }
  }
}

TEST(AtomicFinds, ARelaxedAdditionShowsNothing) {
  expect_error(last_block(AtomicOrder::relaxed), "a race: block ");
}

TEST(AtomicFinds, ReadsOfWhatWasStoredBehindTheAddition) {
  Program program = start();
  Builder b(program);
  const ValueId before =
      b.atomic_add(2, {b.i64(992)}, b.i64(1), lane_is(b, 0), AtomicOrder::acquire_release);
  b.store(2, {b.mul(b.block(), b.i64(32))}, b.load(0, {b.i64(0)}),
          b.compute(Op::eq, {b.splat(b.warp()), b.splat(b.i32(0))}));
  const ValueId last = b.compute(Op::eq, {before, b.i64(2 * kBlocks - 1)});
  b.branch(
      b.any(b.both(lane_is(b, 0), last)),
      [&] {
        for (int block = 0; block < kBlocks; ++block)
          b.store(1, {b.i64(block * 32)}, b.load(2, {b.i64(block * 32)}));
        return Builder::Values{};
      },
      [] { return Builder::Values{}; });
  for (const InterpOptions& options : all_schedules()) {
    Memory memory;
    EXPECT_THROW(interpret(program, memory.buffers(), {}, options), InternalError);
  }
}

TEST(AtomicFinds, OtherAccessesOfTheSameElement) {
  Program reads = start();
  {
    Builder b(reads);
    b.atomic_add(2, {b.i64(992)}, b.i64(1), lane_is(b, 0));
    b.store(1,
            {b.mul(b.add(b.mul(b.block(), b.i64(2)), b.convert(b.warp(), DType::i64)), b.i64(32))},
            b.load(2, {b.i64(992)}));
  }
  expect_error(reads, "a race: ");
  Program writes = start();
  {
    Builder b(writes);
    b.store(2, {b.i64(992)}, b.i64(1), b.both(lane_is(b, 0), b.lt(b.block(), b.i64(1))));
    b.atomic_add(2, {b.i64(992)}, b.i64(1), lane_is(b, 0));
  }
  expect_error(writes, "a race: ");
}

TEST(AtomicFinds, AdditionsToWhatWasNeverWritten) {
  Program program = start();
  Builder b(program);
  b.atomic_add(2, {b.i64(0)}, b.i64(1), lane_is(b, 0));
  expect_error(program, "it was never written");
}

TEST(AtomicVerify, RefusesInputsNarrowTypesAndVectors) {
  auto refused = [](DType type, int buffer, int width, const char* rule) {
    Program program;
    program.name = "test";
    program.buffers = {{"x", type, BufferRole::input, 0, 16, {}},
                       {"y", type, BufferRole::output, 0, 16, {}}};
    program.launches.push_back({.name = "work", .grid = SizeExpr(1)});
    Builder b(program);
    b.atomic_add(buffer, {b.i64(0)}, b.load(0, {b.i64(0)}, width), kNoValue);
    try {
      verify(program);
      ADD_FAILURE() << "accepted:\n" << print(program);
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find(rule), std::string::npos) << error.what();
    }
  };
  refused(DType::i32, 0, 1, "an input is never written");
  refused(DType::i16, 1, 1, "types of 4 or 8 bytes");
  refused(DType::i32, 1, 2, "of width 1");
}

TEST(AtomicPrint, NamesOrderPlaceAndValue) {
  const std::string text = print(last_block(AtomicOrder::acquire_release));
  EXPECT_NE(text.find("atomic_add acquire_release tmp["), std::string::npos) << text;
  EXPECT_EQ(print(last_block(AtomicOrder::relaxed)).find("acquire_release"), std::string::npos);
}

TEST(AtomicCuda, IsFencedWhereItOrders) {
  const std::string fenced = emit_cuda(last_block(AtomicOrder::acquire_release), 90).text;
  EXPECT_NE(fenced.find("= cf_atomic_add_fenced("), std::string::npos);
  EXPECT_NE(fenced.find("__threadfence();"), std::string::npos);
  const std::string relaxed = emit_cuda(last_block(AtomicOrder::relaxed), 90).text;
  EXPECT_NE(relaxed.find("= cf_atomic_add("), std::string::npos);
  EXPECT_EQ(relaxed.find("__threadfence();"), std::string::npos);
}

}  // namespace
}  // namespace chainfold::codegen
