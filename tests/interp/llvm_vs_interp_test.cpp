// The CPU's code against the interpreter, bit for bit: operations, memory, exchanges and control.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "chainfold/codegen/builder.hpp"
#include "chainfold/runtime/jit_llvm.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/operation_program.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;
using Values = Builder::Values;

std::vector<DType> all_types() {
  std::vector<DType> types;
  for (int t = 0; t < kDTypeCount; ++t) types.push_back(static_cast<DType>(t));
  return types;
}
std::string type_name(const ::testing::TestParamInfo<DType>& info) {
  return std::string(name_of(info.param));
}

class LlvmVsInterp : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
#ifndef CHAINFOLD_TEST_CPU
    if (!runtime::cpu_plugin_available()) GTEST_SKIP() << "built without the CPU plugin";
#endif
  }
};

/// A program with one input `x` and one output `y` and `blocks` blocks; arrays of the same.
struct Bench {
  Program program;
  std::vector<GuardedArray> arrays;
  std::vector<std::uint64_t> params;
  std::mt19937_64 random{7};

  explicit Bench(std::int64_t blocks) {
    program.name = "bench";
    program.launches.push_back({.name = "bench", .grid = blocks, .warps = 1});
  }
  int buffer(DType type, BufferRole role, std::int64_t elements, int alignment = 0,
             GuardedArray::At at = GuardedArray::At::end) {
    const int index = static_cast<int>(program.buffers.size());
    program.buffers.push_back({fmt::format("b{}", index), type, role, index,
                               alignment == 0 ? size_of(type) : alignment, elements});
    GuardedArray& array = arrays.emplace_back(type, elements, at);
    for (std::int64_t i = 0; i < elements; ++i)
      array.set(i, role == BufferRole::input ? random_bits(type, random()) : Bits{0});
    return index;
  }
  [[nodiscard]] std::string run(int ulps = 0) const {
    return difference(program, arrays, params, ulps);
  }
};

// --- operations
// -------------------------------------------------------------------------------------

/// Every pair of difficult values, then random ones, for each operation that is defined on the
/// type.
class LlvmOperations : public LlvmVsInterp {
 protected:
  static std::string run(DType type, int width, int ulps) {
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
    return difference(program, arrays, {static_cast<std::uint64_t>(elements)}, ulps);
  }
};

TEST_P(LlvmOperations, AgreeOnDifficultAndRandomData) { EXPECT_EQ(run(GetParam(), 1, 0), ""); }

TEST_P(LlvmOperations, AgreeOnShortVectors) {
  if (size_of(GetParam()) > 4) {
    EXPECT_EQ(run(GetParam(), 2, 0), "");
  } else {
    EXPECT_EQ(run(GetParam(), 4, 0), "");
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
    const ValueId value = op == Op::convert ? b.convert(x[0], result)
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
  const std::int64_t blocks = (values + 1023) / kWarpWidth;
  Bench bench(blocks);
  bench.buffer(type, BufferRole::input, blocks * kWarpWidth);
  for (std::int64_t i = 0; i < values; ++i)
    bench.arrays[0].set(i, difficult[static_cast<std::size_t>(i)]);
  Builder b(bench.program);
  const ValueId base = b.mul(b.block(), b.i64(kWarpWidth));
  const ValueId x = b.load(0, {base});
  for (const OperationCase& c : operation_cases(type)) {
    if (arity(c.op) != 2) continue;
    for (std::size_t i = 0; i < difficult.size(); i += 5) {
      const ValueId k = b.constant(type, difficult[i]);
      for (const Values& operands : {Values{x, k}, Values{k, x}}) {
        const int out = bench.buffer(c.result, BufferRole::output, blocks * kWarpWidth);
        b.store(out, {base}, b.compute(c.op, operands));
      }
    }
  }
  EXPECT_EQ(bench.run(2), "");
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

TEST_P(LlvmMemory, StoresTouchWhatTheirLanesSay) {
  const DType type = GetParam();
  for (int width = 1; width * size_of(type) <= 16; width *= 2) {
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

INSTANTIATE_TEST_SUITE_P(Types, LlvmMemory,
                         ::testing::Values(DType::boolean, DType::i8, DType::f16, DType::i32,
                                           DType::f32, DType::u64, DType::f64),
                         type_name);

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
  EXPECT_EQ(bench.run(), "");
}

INSTANTIATE_TEST_SUITE_P(Types, LlvmExchanges, ::testing::ValuesIn(all_types()), type_name);

class LlvmControl : public LlvmVsInterp {};

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
            if (!is_defined(op, type) || is_comparison(op) || op == Op::is_finite ||
                op == Op::convert || op == Op::select || op == Op::exp || op == Op::log ||
                op == Op::pow)
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
