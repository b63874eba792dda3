// The CPU's code against the interpreter, bit for bit but for exp, log and pow: operations and
// memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/tests/support/llvm_vs_interp.hpp"
#include "chainfold/tests/support/operation_program.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;
using Values = Builder::Values;

// --- operations
// -------------------------------------------------------------------------------------

/// Every pair of difficult values, then random ones, for each operation that is defined on the
/// type.
class LlvmOperations : public LlvmVsInterp {
 protected:
  static std::string run(DType type, int width) {
    const Program program = operation_program(type, width);
    const std::vector<Bits> difficult = difficult_values(type);
    const auto pairs = static_cast<std::int64_t>(difficult.size() * difficult.size());
    const std::int64_t tile = static_cast<std::int64_t>(kWarpWidth) * width;
    const std::int64_t elements = (pairs + 4096 + tile - 1) / tile * tile;
    std::vector<GuardedArray> arrays;
    for (const Buffer& buffer : program.buffers) arrays.emplace_back(buffer.type, elements);
    std::mt19937_64 random(11);
    const auto some = [&] { return difficult[random() % difficult.size()]; };
    for (std::int64_t i = 0; i < elements; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool paired = i < pairs;
      const bool mixed = random() % 4 == 0;
      arrays[0].set(i, paired ? difficult[at / difficult.size()] : random_bits(type, random()));
      arrays[1].set(i, paired  ? difficult[at % difficult.size()]
                       : mixed ? some()
                               : random_bits(type, random()));
      arrays[2].set(i, mixed ? random_bits(type, random()) : some());
      arrays[3].set(i, random() & 1);
    }
    return difference(program, arrays, {static_cast<std::uint64_t>(elements)});
  }
};

TEST_P(LlvmOperations, AgreeOnDifficultAndRandomData) { EXPECT_EQ(run(GetParam(), 1), ""); }

TEST_P(LlvmOperations, AgreeOnShortVectors) {
  if (size_of(GetParam()) > 4) {
    EXPECT_EQ(run(GetParam(), 2), "");
  } else {
    EXPECT_EQ(run(GetParam(), 4), "");
  }
}

/// The same operations on uniform values: scalar code.
TEST_P(LlvmOperations, AgreeOnUniformValues) {
  const DType type = GetParam();
  const std::vector<Bits> difficult = difficult_values(type);
  constexpr std::int64_t kBlocks = 1500;
  Bench bench(kBlocks);
  for (int i = 0; i < 4; ++i)
    bench.buffer(i == 3 ? DType::boolean : type, BufferRole::input, kBlocks);
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    for (std::size_t b = 0; b < 3; ++b)
      if (bench.random() % 4 != 0)
        bench.arrays[b].set(i, difficult[bench.random() % difficult.size()]);
  }
  const std::vector<OperationCase> cases = operation_cases(type);
  for (const OperationCase& c : cases) bench.buffer(c.result, BufferRole::output, kBlocks);
  Builder b(bench.program);
  Values x;
  for (int i = 0; i < 4; ++i) x.push_back(b.load_uniform(i, b.block()));
  const ValueId first = b.compute(Op::eq, {b.lane(), b.i32(0)});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [op, result] = cases[i];
    const ValueId value = is_cast(op) ? b.cast(op, x[0], result)
                          : op == Op::select
                              ? b.compute(op, {x[3], x[0], x[1]})
                              : b.compute(op, Values(x.begin(), x.begin() + arity(op)));
    b.store(4 + static_cast<int>(i), {b.block()}, value, first);
  }
  EXPECT_EQ(bench.run(), "");
}

/// One operand a constant, where LLVM folds and rewrites most.
TEST_P(LlvmOperations, AgreeWithConstants) {
  const DType type = GetParam();
  std::vector<Bits> difficult = difficult_values(type);
  // Whether pow(signalling NaN, 0) is 1 or NaN is open: libm and LLVM's folding differ.
  if (is_float(type)) {
    const Bits infinity = bits_of_double(type, std::numeric_limits<double>::infinity());
    std::erase(difficult, infinity + 1);
  }
  const auto values = static_cast<std::int64_t>(difficult.size());
  const std::int64_t blocks = (values + kWarpWidth - 1) / kWarpWidth;
  Bench bench(blocks);
  bench.buffer(type, BufferRole::input, blocks * kWarpWidth);
  for (std::int64_t i = 0; i < blocks * kWarpWidth; ++i)
    bench.arrays[0].set(i, difficult[static_cast<std::size_t>(i % values)]);
  Builder b(bench.program);
  const ValueId base = b.mul(b.block(), b.i64(kWarpWidth));
  const ValueId x = b.load(0, {base});
  for (const OperationCase& c : operation_cases(type)) {
    if (arity(c.op) != 2) continue;
    for (std::size_t i = 0; i < difficult.size(); i += 5) {
      const ValueId k = b.constant(type, difficult[i]);
      for (const Values& operands : {Values{x, k}, Values{k, x}}) {
        const int out = bench.buffer(c.result, BufferRole::output, blocks * kWarpWidth);
        bench.program.buffers[static_cast<std::size_t>(out)].name =
            fmt::format("{}_{}", name_of(c.op), out);
        b.store(out, {base}, b.compute(c.op, operands));
      }
    }
  }
  EXPECT_EQ(bench.run(), "");
}

INSTANTIATE_TEST_SUITE_P(Types, LlvmOperations, ::testing::ValuesIn(all_types()), type_name);

class LlvmConversions : public LlvmVsInterp {};

TEST_P(LlvmConversions, AgreeOnAllBitsOf16AndOnRandomOnes) {
  const DType from = GetParam();
  constexpr std::int64_t kBlocks = 2048;
  Bench bench(kBlocks);
  bench.buffer(from, BufferRole::input, kBlocks * kWarpWidth);
  for (std::int64_t i = 0; i < kBlocks * kWarpWidth; ++i) {
    if (size_of(from) == 2) bench.arrays[0].set(i, static_cast<Bits>(i));
    // Wider ones mostly near values of 16 bits, where a second rounding would show.
    if (size_of(from) > 2 && is_float(from) && i % 4 != 0) {
      const DType half = i % 4 == 1 ? DType::f16 : DType::bf16;
      const Bits near = bits_of_double(from, double_of_bits(half, static_cast<Bits>(i) & 0xffff));
      const int digits = from == DType::f32 ? 23 : 52;
      const Bits tie = Bits{1} << (digits - (half == DType::f16 ? 11 : 8));
      bench.arrays[0].set(i, near + tie + (bench.random() % 3) - 1);
    }
    if (size_of(from) > 2 && is_integer(from) && i % 4 != 0) {
      const int shift =
          static_cast<int>(bench.random() % static_cast<std::uint64_t>(8 * size_of(from) - 9));
      const Bits sign = i % 4 == 1 ? 1 : ~Bits{0};
      const Bits value = (((bench.random() % 512) << shift) + (bench.random() % 3) - 1) * sign;
      bench.arrays[0].set(i, size_of(from) == 8 ? value : value & 0xffffffff);
    }
  }
  Builder b(bench.program);
  const Address at{b.mul(b.block(), b.i64(kWarpWidth))};
  const ValueId x = b.load(0, at);
  for (const DType to : all_types()) {
    const int out = bench.buffer(to, BufferRole::output, kBlocks * kWarpWidth);
    b.store(out, at, b.convert(x, to));
  }
  EXPECT_EQ(bench.run(), "");
}

INSTANTIATE_TEST_SUITE_P(Types, LlvmConversions, ::testing::ValuesIn(all_types()), type_name);

// --- memory
// -----------------------------------------------------------------------------------------

class LlvmMemory : public LlvmVsInterp {};

/// Loads by every group, width and kind of mask, from arrays between unreadable pages; results go
/// out contiguously.
TEST_P(LlvmMemory, LoadsTouchWhatTheirLanesSay) {
  const DType type = GetParam();
  for (int width = 1; width * size_of(type) <= 16; width *= 2) {
    if (!is_taken(std::countr_zero(static_cast<unsigned>(width)) + static_cast<int>(type)))
      continue;
    constexpr std::int64_t kBlocks = 3;
    Bench bench(kBlocks);
    Builder b(bench.program);
    const ValueId block = b.block();
    const std::int64_t tile = static_cast<std::int64_t>(kWarpWidth) * width;
    for (const int group : {1, 2, 4, 8, 16, 32}) {
      for (const int gap : {0, 1, 3}) {
        const std::int64_t stride = static_cast<std::int64_t>(group + gap) * width;
        const std::int64_t span = kWarpWidth / group * stride;
        for (const int kind : {0, 1, 2, 3}) {  // all, constant lanes, lanes by data, uniform
          // The last block's last groups would lie behind the array if their lanes were touched.
          const int live = kind == 1 ? 13 : kWarpWidth;
          const std::int64_t last = (live - 1) / group * stride + ((live - 1) % group + 1) * width;
          const bool off = kind == 3;
          const std::int64_t elements = (kBlocks - 1) * span + (off ? width : last);
          const int in = bench.buffer(type, BufferRole::input, elements, width * size_of(type));
          const int out =
              bench.buffer(type, BufferRole::output, kBlocks * tile, width * size_of(type));
          ValueId mask = kNoValue;
          if (kind == 1) mask = b.lt(b.lane(), b.i32(live));
          if (kind == 2) {
            const int flags = bench.buffer(DType::boolean, BufferRole::input, kBlocks * kWarpWidth);
            mask = b.load(flags, {b.mul(block, b.i64(kWarpWidth))});
          }
          if (kind == 3) mask = b.lt(block, b.i64(kBlocks - 1));
          const ValueId x = b.load(in, {b.mul(block, b.i64(span)), group, stride}, width, mask);
          b.store(out, {b.mul(block, b.i64(tile))}, x);
        }
      }
    }
    // An array's end is aligned to the width only if its length is: round the lengths up.
    for (GuardedArray& array : bench.arrays) ASSERT_EQ(array.elements() % width, 0);
    EXPECT_EQ(bench.run(), "") << "width " << width;
  }
}

/// Rows that end within a lane's load, and whatever else a mask of elements leaves out.
TEST_P(LlvmMemory, LoadsTouchWhatTheirElementsSay) {
  const DType type = GetParam();
  for (int width = 2; width * size_of(type) <= 16; width *= 2) {
    if (!is_taken(std::countr_zero(static_cast<unsigned>(width)) + static_cast<int>(type)))
      continue;
    constexpr std::int64_t kBlocks = 3;
    Bench bench(kBlocks);
    bench.program.accesses_anywhere = true;
    Builder b(bench.program);
    const ValueId block = b.block();
    const std::int64_t tile = static_cast<std::int64_t>(kWarpWidth) * width;
    Builder::Values steps;
    for (int i = 0; i < width; ++i) steps.push_back(b.i32(i));
    for (const int group : {1, 2, 4, 8, 16, 32}) {
      for (int left = 1; left < width; left += width / 2) {
        const std::int64_t stride = static_cast<std::int64_t>(group - 1) * width + left;
        const std::int64_t span = kWarpWidth / group * stride;
        const int in = bench.buffer(type, BufferRole::input, kBlocks * span);
        const int flags = bench.buffer(DType::boolean, BufferRole::input, kBlocks * tile);
        const int out = bench.buffer(type, BufferRole::output, 2 * kBlocks * tile);
        const ValueId turn = b.mul(b.rem(b.lane(), b.i32(group)), b.i32(width));
        const ValueId inside =
            b.lt(b.add(turn, b.concat(steps)), b.i32(static_cast<std::int32_t>(stride)));
        const ValueId some = b.load(flags, {b.mul(block, b.i64(tile))}, width);
        const Address rows{b.mul(block, b.i64(span)), group, stride};
        const ValueId at = b.mul(block, b.i64(2 * tile));
        b.store(out, {at}, b.load(in, rows, width, inside));
        b.store(out, {b.add(at, b.i64(tile))}, b.load(in, rows, width, b.both(inside, some)));
      }
    }
    EXPECT_EQ(bench.run(), "") << "width " << width;
  }
}

TEST_P(LlvmMemory, StoresTouchWhatTheirLanesSay) {
  const DType type = GetParam();
  for (int width = 1; width * size_of(type) <= 16; width *= 2) {
    if (!is_taken(std::countr_zero(static_cast<unsigned>(width)) + static_cast<int>(type)))
      continue;
    constexpr std::int64_t kBlocks = 3;
    Bench bench(kBlocks);
    Builder b(bench.program);
    const ValueId block = b.block();
    const std::int64_t tile = static_cast<std::int64_t>(kWarpWidth) * width;
    const int in = bench.buffer(type, BufferRole::input, kBlocks * tile, width * size_of(type));
    const ValueId x = b.load(in, {b.mul(block, b.i64(tile))}, width);
    for (const int group : {1, 2, 4, 8, 16, 32}) {
      for (const int gap : {0, 1, 3}) {
        const std::int64_t stride = static_cast<std::int64_t>(group + gap) * width;
        const std::int64_t span = kWarpWidth / group * stride;
        for (const int kind : {0, 1, 2, 3}) {
          const int live = kind == 1 ? 13 : kWarpWidth;
          const std::int64_t last = (live - 1) / group * stride + ((live - 1) % group + 1) * width;
          const std::int64_t elements = (kBlocks - 1) * span + (kind == 3 ? width : last);
          const int out = bench.buffer(type, BufferRole::output, elements, width * size_of(type));
          ValueId mask = kNoValue;
          if (kind == 1) mask = b.lt(b.lane(), b.i32(live));
          if (kind == 2) {
            const int flags = bench.buffer(DType::boolean, BufferRole::input, kBlocks * kWarpWidth);
            mask = b.load(flags, {b.mul(block, b.i64(kWarpWidth))});
          }
          if (kind == 3) mask = b.lt(block, b.i64(kBlocks - 1));
          b.store(out, {b.mul(block, b.i64(span)), group, stride}, x, mask);
        }
      }
    }
    EXPECT_EQ(bench.run(), "") << "width " << width;
  }
}

TEST_P(LlvmMemory, MaskedLanesBeforeTheFirstElementTouchNothing) {
  const DType type = GetParam();
  Bench bench(2);
  const int in = bench.buffer(type, BufferRole::input, 64, 0, GuardedArray::At::begin);
  const int out = bench.buffer(type, BufferRole::output, 64, 0, GuardedArray::At::begin);
  Builder b(bench.program);
  const ValueId base = b.sub(b.mul(b.block(), b.i64(16)), b.i64(20));
  const ValueId index = b.add(base, b.convert(b.lane(), DType::i64));
  const ValueId inside =
      b.both(b.compute(Op::ge, {index, b.i64(0)}), b.compute(Op::lt, {b.lane(), b.i32(36)}));
  const ValueId later =
      b.both(inside, b.lt(b.lane(), b.add(b.i32(20), b.convert(b.block(), DType::i32))));
  b.store(out, {base}, b.load(in, {base}, 1, inside), b.both(later, inside));
  EXPECT_EQ(bench.run(), "");
}

TEST_P(LlvmMemory, ParametersAndUniformLoadsAndScratch) {
  const DType type = GetParam();
  constexpr std::int64_t kBlocks = 5;
  Bench bench(kBlocks);
  const int in = bench.buffer(type, BufferRole::input, 64, 2 * size_of(type));
  const int scratch = bench.buffer(type, BufferRole::scratch, kBlocks * kWarpWidth);
  const int out = bench.buffer(type, BufferRole::output, kBlocks * kWarpWidth * 3);
  bench.program.params = {{"count", DType::i64, ParamRole::elements, 0},
                          {"value", type, ParamRole::user, 0}};
  bench.params = {3, random_bits(type, bench.random())};
  {
    Builder b(bench.program);
    const ValueId base = b.mul(b.block(), b.i64(kWarpWidth));
    const ValueId chosen =
        b.select(b.lt(b.block(), b.param(0)), b.load_uniform(in, b.block()), b.param(1));
    b.store(scratch, {base}, b.select(b.lt(b.lane(), b.i32(9)), chosen, b.load(in, {b.block()})));
  }
  bench.program.launches.push_back({.name = "second", .grid = kBlocks, .warps = 1});
  {
    Builder b(bench.program);
    const ValueId last = b.sub(b.i64(kBlocks - 1), b.block());
    const ValueId x = b.load(scratch, {b.mul(last, b.i64(kWarpWidth))});
    const ValueId base = b.mul(b.block(), b.i64(3 * kWarpWidth));
    b.store(out, {base}, x);
    b.store(out, {b.add(base, b.i64(kWarpWidth))}, b.param(1));
    b.store(out, {b.add(base, b.i64(2 * kWarpWidth))}, b.load_uniform(scratch, b.block()));
  }
  EXPECT_EQ(bench.run(), "");
}

/// Of values that a warp has once: all, masked ones, and those of lane 0.
TEST_P(LlvmMemory, UniformStores) {
  const DType type = GetParam();
  constexpr std::int64_t kBlocks = 7;
  Bench bench(kBlocks);
  const int in = bench.buffer(type, BufferRole::input, kBlocks);
  const int flags = bench.buffer(DType::boolean, BufferRole::input, kBlocks);
  const int out = bench.buffer(type, BufferRole::output, kBlocks);
  const int some = bench.buffer(type, BufferRole::output, kBlocks);
  const int others = bench.buffer(type, BufferRole::output, kBlocks);
  Builder b(bench.program);
  const ValueId at = b.block(), x = b.load_uniform(in, at);
  b.store_uniform(out, at, x);
  b.store_uniform(some, at, x, b.load_uniform(flags, at));
  const ValueId first = b.first_lane(b.load(in, {.base = b.i64(3), .group = 1}));
  b.store_uniform(others, at, first);
  EXPECT_EQ(bench.run(), "");
}

INSTANTIATE_TEST_SUITE_P(Types, LlvmMemory,
                         ::testing::Values(DType::boolean, DType::i8, DType::f16, DType::i32,
                                           DType::f32, DType::u64, DType::f64),
                         type_name);

}  // namespace
}  // namespace chainfold::test
