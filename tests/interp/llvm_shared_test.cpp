// Shared arrays of blocks of one warp, barriers of one and counts of lanes: the CPU's code beside
// the interpreter.
#include <gtest/gtest.h>

#include <cstdint>

#include "chainfold/codegen/base/machine.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/tests/support/data.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

using codegen::Address;
using codegen::BufferRole;
using codegen::Builder;
using codegen::kWarpWidth;
using codegen::Op;
using codegen::ValueId;

class LlvmShared : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

/// Lanes put elements in an order of their own, and take others, some of them none.
TEST_P(LlvmShared, LanesHaveOffsetsOfTheirOwn) {
  constexpr std::int64_t kBlocks = 3;
  const DType type = GetParam();
  Bench bench(kBlocks);
  const int in = bench.buffer(type, BufferRole::input, kBlocks * 2 * kWarpWidth);
  const int out = bench.buffer(type, BufferRole::output, kBlocks * 2 * kWarpWidth);
  bench.program.launches[0].shared.push_back({"cells", type, 2 * kWarpWidth});
  Builder b(bench.program);
  const ValueId first = b.mul(b.block(), b.i64(2 * kWarpWidth));
  const auto own = [&](ValueId offset) {
    return Address{.base = b.i64(0), .group = 1, .stride = 0, .offset = offset};
  };
  const int width = std::min(2, 16 / size_of(type));
  const ValueId pair = b.load(in, {first}, 1);
  const ValueId other = b.load(in, {b.add(first, b.i64(kWarpWidth))}, 1);
  // 7 and 64 have no common factor.
  const ValueId place = b.rem(b.mul(b.lane(), b.i32(7)), b.i32(kWarpWidth));
  b.shared_store(0, own(place), pair);
  b.shared_store(0, {.base = b.i64(kWarpWidth)}, other);
  b.barrier();
  const ValueId mask = b.compute(Op::ne, {b.rem(b.lane(), b.i32(5)), b.i32(2)});
  const ValueId taken = b.shared_load(
      0, own(b.add(b.sub(b.i32(kWarpWidth - 1), b.lane()), b.i32(kWarpWidth / 2))), 1, mask);
  b.store(out, {first}, taken);
  const ValueId side_by_side = b.shared_load(0, {b.i64(0)}, width);
  b.store(out, {b.add(first, b.i64(kWarpWidth))}, b.extract(side_by_side, width - 1));
  EXPECT_EQ(bench.run(), "");
}
/// The same of loads from buffers, by offsets of either width.
TEST_P(LlvmShared, LanesLoadFromTheirOwnPlaces) {
  constexpr std::int64_t kBlocks = 3;
  const DType type = GetParam();
  Bench bench(kBlocks);
  const int in = bench.buffer(type, BufferRole::input, kBlocks * 2 * kWarpWidth);
  const int out = bench.buffer(type, BufferRole::output, kBlocks * 2 * kWarpWidth);
  Builder b(bench.program);
  const ValueId first = b.mul(b.block(), b.i64(2 * kWarpWidth));
  const ValueId place = b.rem(b.mul(b.lane(), b.i32(7)), b.i32(kWarpWidth));
  const ValueId mask = b.compute(Op::ne, {b.rem(b.lane(), b.i32(5)), b.i32(2)});
  b.store(out, {first},
          b.load(in, {.base = first, .group = 1, .stride = 0, .offset = place}, 1, mask));
  // Four lanes side by side, from where their first one says.
  const ValueId quad = b.mul(b.compute(Op::div, {b.lane(), b.i32(4)}), b.i32(4));
  const ValueId far = b.convert(b.sub(b.i32(kWarpWidth - 4), quad), DType::i64);
  const ValueId behind = b.add(first, b.i64(kWarpWidth));
  b.store(out, {behind}, b.load(in, {.base = behind, .group = 4, .stride = 0, .offset = far}));
  EXPECT_EQ(bench.run(), "");
}
INSTANTIATE_TEST_SUITE_P(Types, LlvmShared, testing::ValuesIn(all_types()),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(LlvmVotes, CountLanes) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::int64_t kBlocks = 8;
  Bench bench(kBlocks);
  const int in = bench.buffer(DType::i8, BufferRole::input, kBlocks * kWarpWidth);
  const int out = bench.buffer(DType::i32, BufferRole::output, kBlocks * kWarpWidth);
  Builder b(bench.program);
  const ValueId first = b.mul(b.block(), b.i64(kWarpWidth));
  const ValueId limit = b.convert(b.sub(b.mul(b.block(), b.i64(37)), b.i64(130)), DType::i8);
  const ValueId count = b.count(b.lt(b.load(in, {first}), b.splat(limit)));
  b.store(out, {first}, b.add(b.mul(b.lane(), count), count));
  EXPECT_EQ(bench.run(), "");
}

}  // namespace
}  // namespace chainfold::test
