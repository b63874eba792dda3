// Loads of bits: the CPU's code against the interpreter, from arrays between unreadable pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/tests/support/llvm_vs_interp.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;

class LlvmBits : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

/// Every group, width and kind of mask, from every bit of a byte on, to the last bit of memory and
/// from the first one on.
TEST_P(LlvmBits, LoadsTouchWhatTheirLanesSay) {
  const int width = GetParam();
  constexpr std::int64_t kBlocks = 3;
  const std::int64_t tile = static_cast<std::int64_t>(kWarpWidth) * width;
  for (int first = 0; first < 8; ++first) {
    if (!is_taken(first + width)) continue;
    Bench bench(kBlocks);
    Builder b(bench.program);
    const ValueId block = b.block();
    for (const int group : {1, 2, 4, 8, 16, 32}) {
      for (const int gap : {0, 1, 3}) {
        const std::int64_t stride = static_cast<std::int64_t>(group) * width + gap;
        const std::int64_t span = kWarpWidth / group * stride;
        for (const int kind : {0, 1, 2, 3}) {  // all, constant lanes, lanes by data, uniform
          if ((first + 2 * group + gap + kind) % 5 != 0) continue;
          // The last block's last groups would lie behind the array if their lanes were touched.
          const int live = kind == 1 ? 13 : kWarpWidth;
          const std::int64_t last = (live - 1) / group * stride + ((live - 1) % group + 1) * width;
          const std::int64_t all = (kBlocks - 1) * span + (kind == 3 ? 1 : last);
          // Memory ends with the last bit that is loaded.
          const bool at_end = (first + group + gap) % 3 != 0;
          const std::int64_t from = at_end ? (16 - all % 8 + 7 - first) % 8 : first;
          const int in = bench.packed_input(
              from + all, at_end ? GuardedArray::At::end : GuardedArray::At::begin);
          const int out = bench.buffer(DType::boolean, BufferRole::output, kBlocks * tile, width);
          ValueId mask = kNoValue;
          if (kind == 1) mask = b.lt(b.lane(), b.i32(live));
          if (kind == 2) {
            const int flags = bench.buffer(DType::boolean, BufferRole::input, kBlocks * kWarpWidth);
            mask = b.load(flags, {b.mul(block, b.i64(kWarpWidth))});
          }
          if (kind == 3) mask = b.lt(block, b.i64(kBlocks - 1));
          const ValueId at = b.add(b.mul(block, b.i64(span)), b.i64(from));
          b.store(out, {b.mul(block, b.i64(tile))}, b.load(in, {at, group, stride}, width, mask));
        }
      }
    }
    EXPECT_EQ(bench.run(), "") << "from bit " << first;
  }
}

/// One bit for all lanes, up to the last one of memory.
TEST(LlvmUniformBits, Loads) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  for (const std::int64_t count : {1, 7, 8, 9, 31, 64, 65}) {
    for (const auto side : {GuardedArray::At::end, GuardedArray::At::begin}) {
      Bench bench(count);
      Builder b(bench.program);
      const int in = bench.packed_input(count, side);
      const int out = bench.buffer(DType::boolean, BufferRole::output, count * kWarpWidth);
      b.store(out, {b.mul(b.block(), b.i64(kWarpWidth))}, b.load_uniform(in, b.block()));
      EXPECT_EQ(bench.run(), "") << count;
    }
  }
}

/// Rows that begin before the first bit of all, whose lanes there are off.
TEST_P(LlvmBits, MaskedLanesBeforeTheFirstBitTouchNothing) {
  const int width = GetParam();
  constexpr std::int64_t kBlocks = 2;
  const std::int64_t tile = static_cast<std::int64_t>(kWarpWidth) * width;
  Bench bench(kBlocks);
  Builder b(bench.program);
  const ValueId block = b.block();
  for (int before = 1; before < kWarpWidth; before += 5) {
    const std::int64_t off = static_cast<std::int64_t>(before) * width;
    const int in = bench.packed_input(kBlocks * tile - off, GuardedArray::At::begin);
    const int out = bench.buffer(DType::boolean, BufferRole::output, kBlocks * tile, width);
    const ValueId first = b.mul(block, b.i64(tile));
    const ValueId lane = b.add(b.convert(b.lane(), DType::i64), b.mul(block, b.i64(kWarpWidth)));
    const ValueId mask = b.compute(Op::ge, {lane, b.i64(before)});
    b.store(out, {first}, b.load(in, {b.sub(first, b.i64(off))}, width, mask));
  }
  EXPECT_EQ(bench.run(), "");
}

/// Rows that end within a lane's load, and whatever else a mask of elements leaves out.
using LlvmBitsOfElements = LlvmBits;
TEST_P(LlvmBitsOfElements, LoadsTouchWhatTheirElementsSay) {
  const int width = GetParam();
  constexpr std::int64_t kBlocks = 3;
  Bench bench(kBlocks);
  bench.program.accesses_anywhere = true;
  Builder b(bench.program);
  const ValueId block = b.block();
  const std::int64_t tile = static_cast<std::int64_t>(kWarpWidth) * width;
  Builder::Values steps;
  for (int i = 0; i < width; ++i) steps.push_back(b.i32(i));
  for (const int group : {1, 2, 4, 8, 16, 32}) {
    for (int left = 1; left < width; left += std::max(1, width / 2)) {
      const std::int64_t stride = static_cast<std::int64_t>(group - 1) * width + left;
      const std::int64_t span = kWarpWidth / group * stride;
      const std::int64_t from = (left + group) % 8;
      const int in = bench.packed_input(from + kBlocks * span);
      const int flags = bench.buffer(DType::boolean, BufferRole::input, kBlocks * tile);
      const int out = bench.buffer(DType::boolean, BufferRole::output, 2 * kBlocks * tile);
      const ValueId turn = b.mul(b.rem(b.lane(), b.i32(group)), b.i32(width));
      const ValueId inside =
          b.lt(b.add(turn, b.concat(steps)), b.i32(static_cast<std::int32_t>(stride)));
      const ValueId some = b.load(flags, {b.mul(block, b.i64(tile))}, width);
      const Address rows{b.add(b.mul(block, b.i64(span)), b.i64(from)), group, stride};
      const ValueId at = b.mul(block, b.i64(2 * tile));
      b.store(out, {at}, b.load(in, rows, width, inside));
      b.store(out, {b.add(at, b.i64(tile))}, b.load(in, rows, width, b.both(inside, some)));
    }
  }
  EXPECT_EQ(bench.run(), "");
}
INSTANTIATE_TEST_SUITE_P(Widths, LlvmBits, ::testing::Values(1, 2, 4, 8, 16));
INSTANTIATE_TEST_SUITE_P(Widths, LlvmBitsOfElements, ::testing::Values(2, 4, 8, 16));

}  // namespace
}  // namespace chainfold::test
