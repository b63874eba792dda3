// Everything that the emitter can write goes through NVRTC for every architecture. No GPU is
// needed; what the code computes is tested on one, in tests/gpu.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/emit/cuda/cuda.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/tests/support/cubin_reader.hpp"
#include "chainfold/tests/support/look_back.hpp"
#include "chainfold/tests/support/operation_program.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;
using runtime::Cubin;

class EmitCudaCompile : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!runtime::nvrtc_available()) GTEST_SKIP() << "NVRTC is not here";
    const auto& known = runtime::nvrtc_architectures();
    if (std::find(known.begin(), known.end(), GetParam()) == known.end())
      GTEST_SKIP() << "this NVRTC does not know sm_" << GetParam();
  }
  static Cubin compile(const Program& program) {
    verify(program);
    runtime::NvrtcOptions options;
    options.arch = GetParam();
    options.resource_report = true;
    Cubin cubin = runtime::compile_cubin(emit_cuda(program, GetParam()).text, options);
    EXPECT_EQ(cubin.log.find("warning"), std::string::npos) << cubin.log;
    return cubin;
  }
  static void expect_no_spills(const Cubin& cubin) {
    ASSERT_FALSE(cubin.resources.empty());
    for (const auto& kernel : cubin.resources) {
      EXPECT_EQ(kernel.spill_load + kernel.spill_store, 0) << kernel.name;
      EXPECT_EQ(kernel.stack, 0) << kernel.name;
    }
  }
};

Program empty_program(const std::string& name, int warps) {
  Program p;
  p.name = name;
  p.launches.push_back({});
  p.launches[0].name = name;
  p.launches[0].warps = warps;
  return p;
}

TEST_P(EmitCudaCompile, every_operation_on_every_type) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto type = static_cast<DType>(t);
    // One word a lane is what packed elements need; the widest vectors are left to one
    // architecture.
    const int bytes = GetParam() == 90 ? 16 : std::max(4, size_of(type));
    const Program p = operation_program(type, bytes / size_of(type), 2);
    SCOPED_TRACE(p.name);
    // Division and the like are subroutines with a frame, so spills are not held against these.
    const KernelCode code = read_cubin(compile(p).image)[0];
    EXPECT_GE(code.count_wide("LDG", bytes), 2u);  // f16 and bf16 have no operation on three
  }
}

// Memory of every type and width, plain and masked, in global, scratch and shared memory; shuffles,
// permutations and votes; one kernel a type.
TEST_P(EmitCudaCompile, every_access_of_every_type) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto type = static_cast<DType>(t);
    Program p = empty_program("accesses_" + std::string(name_of(type)), 2);
    p.buffers.push_back({"x", type, BufferRole::input, 0, 16, {}});
    p.buffers.push_back({"y", type, BufferRole::output, 0, 16, {}});
    p.buffers.push_back({"t", type, BufferRole::scratch, 0, 16, SizeExpr(1 << 16)});
    p.params.push_back({"n", DType::i32, ParamRole::user, 0});
    p.params.push_back({"value", type, ParamRole::user, 1});
    p.launches[0].shared.push_back({"s", type, 2048});
    Builder b(p);
    const ValueId mask = b.lt(b.lane(), b.param(0));
    std::vector<std::uint8_t> rotate, transpose, squares, of_two;
    for (int lane = 0; lane < kWarpWidth; ++lane) {
      rotate.push_back(static_cast<std::uint8_t>((lane + 5) % 32));
      transpose.push_back(static_cast<std::uint8_t>(lane / 4 | (lane % 4) << 3));
      squares.push_back(static_cast<std::uint8_t>(lane * lane % 32));
      of_two.push_back(static_cast<std::uint8_t>(lane % 2 * 32 + lane / 2));
    }
    ValueId base = b.i64(0);
    for (int width = 1; width * size_of(type) <= 16; width *= 2) {
      const Address at{base, 8, 8 * width};
      const ValueId plain = b.load(0, at, width), masked = b.load(0, at, width, mask);
      b.store(1, at, plain);
      b.store(1, at, masked, mask);
      b.store(1, at, b.load(2, at, width));
      b.store(2, at, b.load(2, at, width, mask));
      const Address in_block{b.convert(b.mul(b.warp(), b.i32(32 * width)), DType::i64), 8,
                             8 * width};
      b.shared_store(0, in_block, plain);
      b.shared_store(0, in_block, masked, mask);
      b.barrier();
      ValueId value = b.shared_load(0, in_block, width);
      b.store(1, at, b.shared_load(0, in_block, width, mask));
      b.barrier();
      value = b.shuffle_xor(value, 3);
      value = b.shuffle_from(value, b.lane());
      value = b.shuffle_down(b.shuffle_up(value, 4), 9);
      for (const auto& source : {rotate, transpose, squares}) value = b.permute(value, source);
      value = b.permute(value, masked, of_two);
      b.store(1, at, value);
      if (width > 1) {
        b.store(1, at, b.extract(value, 1, 1));
        b.store(1, at,
                b.concat({b.extract(value, width / 2, width / 2), b.extract(value, 0, width / 2)}));
      }
      base = b.add(base, b.i64(4096));
    }
    b.store(1, {base}, b.load_uniform(0, base));
    b.store_uniform(1, base, b.load_uniform(0, base));
    b.store_uniform(1, base, b.first_lane(b.load(0, {base})));
    b.store_uniform(1, base, b.param(1), b.any(mask));
    b.store(1, {base}, b.param(1), b.any(mask));
    b.store(1, {base}, b.param(1), b.all(mask));
    SCOPED_TRACE(p.name);
    const Cubin cubin = compile(p);
    expect_no_spills(cubin);
    const KernelCode code = read_cubin(cubin.image)[0];
    EXPECT_GE(code.count_wide("LDG", 16), 3u);  // a masked load beside a plain one may be merged
    EXPECT_GE(code.count_wide("STG", 16), 4u);
    EXPECT_GE(code.count_wide("LDS", 16), 1u);
    EXPECT_GE(code.count_wide("STS", 16), 1u);
  }
}

TEST_P(EmitCudaCompile, every_matrix_instruction) {
  const auto rows = mma_table();
  for (int index = 0; index < static_cast<int>(rows.size()); ++index) {
    const MmaRow& row = rows[index];
    if (row.first_arch > GetParam()) continue;
    SCOPED_TRACE(row.name);
    Program p = empty_program("mma", 1);
    p.buffers.push_back({"x", row.input, BufferRole::input, 0, 16, {}});
    p.buffers.push_back({"y", row.accumulator, BufferRole::output, 0, 16, {}});
    Builder b(p);
    const int width = 16 / size_of(row.input);
    const int taken = row.elements(Operand::b);
    ValueId c = b.const_fragment(index, Operand::c, {MatrixKind::zeros});
    const ValueId x = b.load(0, {b.i64(0)}, width);
    int step = 0;
    for (const MatrixKind kind : {MatrixKind::ones, MatrixKind::upper, MatrixKind::strict_lower,
                                  MatrixKind::band, MatrixKind::segments}) {
      const ConstMatrix matrix{kind, 16, width, step};
      const ValueId a = b.const_fragment(index, Operand::a, matrix);
      c = b.mma(a, b.pack(index, Operand::b, {{b.extract(x, step * taken, taken), taken}}), c);
      step = (step + 1) * taken < width ? step + 1 : 0;
    }
    for (int i = 0; i < p.type(c).width; ++i) b.store(1, {b.i64(64 * i)}, b.extract(c, i));
    const Cubin cubin = compile(p);
    expect_no_spills(cubin);
    // Older machines run a row as several smaller instructions.
    EXPECT_GE(read_cubin(cubin.image)[0].count(row.sass), 5u);
  }
}

TEST_P(EmitCudaCompile, loops_and_branches_carry_every_shape) {
  const int row = find_mma(DType::f16, GetParam());
  Program p = empty_program("control", 2);
  p.buffers.push_back({"x", DType::f16, BufferRole::input, 0, 16, {}});
  p.buffers.push_back({"y", DType::f32, BufferRole::output, 0, 16, {}});
  p.params.push_back({"n", DType::i64, ParamRole::elements, 0});
  Builder b(p);
  const int taken = mma_table()[row].elements(Operand::b);
  const ValueId a = b.const_fragment(row, Operand::a, {MatrixKind::ones, 0, 8, 0});
  const ValueId zero = b.const_fragment(row, Operand::c, {MatrixKind::zeros});
  const auto results = b.loop(
      b.i64(0), b.param(0), b.i64(256), {zero, b.load(0, {b.i64(0)}, 8), b.splat(b.i32(1))},
      [&](ValueId index, const Builder::Values& carried) {
        ValueId c = carried[0];
        for (int first = 0; first < 8; first += taken)
          c = b.mma(a, b.pack(row, Operand::b, {{b.extract(carried[1], first, taken), taken}}), c);
        const ValueId next = b.load(0, {b.add(index, b.i64(256))}, 8);
        const auto counts = b.branch(
            b.lt(index, b.i64(1000)), [&] { return Builder::Values{b.mul(carried[2], b.i32(3))}; },
            [&] { return Builder::Values{carried[2]}; });
        return Builder::Values{c, next, counts[0]};
      });
  b.store(1, {b.i64(0)}, b.extract(results[0], 0));
  b.store(1, {b.i64(32)}, b.convert(results[2], DType::f32));
  b.store(1, {b.i64(0), 1, 8}, b.convert(b.extract(results[1], 4, 4), DType::f32));
  const Cubin cubin = compile(p);
  expect_no_spills(cubin);
  EXPECT_GE(read_cubin(cubin.image)[0].count("HMMA"), static_cast<std::size_t>(8 / taken));
}

// Sums of 64: eight masked loads in flight, the data from memory to the tensor core without a move.
TEST_P(EmitCudaCompile, a_reduction_is_loads_and_matrix_instructions) {
  const int row = find_mma(DType::f16, GetParam());
  const int taken = mma_table()[row].elements(Operand::b);
  Program p = empty_program("sum_rows", 8);
  p.buffers.push_back({"x", DType::f16, BufferRole::input, 0, 16, {}});
  p.buffers.push_back({"sums", DType::f32, BufferRole::output, 0, 4, {}});
  p.params.push_back({"segments", DType::i64, ParamRole::segments, 0});
  Builder b(p);
  const ValueId tile = b.add(b.mul(b.block(), b.i64(8)), b.convert(b.warp(), DType::i64));
  const ValueId base = b.mul(tile, b.i64(2048)), end = b.mul(b.param(0), b.i64(64));
  const ValueId offset = b.convert(b.mul(b.lane(), b.i32(8)), DType::i64);
  std::vector<ValueId> loads, sums;
  for (int u = 0; u < 8; ++u) {
    const ValueId at = b.add(base, b.i64(u * 256));
    loads.push_back(b.load(0, {at}, 8, b.lt(b.add(offset, at), end)));
  }
  for (int u = 0; u < 8; ++u) {
    ValueId c = b.const_fragment(row, Operand::c, {MatrixKind::zeros});
    for (int first = 0; first < 8; first += taken) {
      const ValueId a = b.const_fragment(row, Operand::a, {MatrixKind::ones, 0, 8, first / taken});
      c = b.mma(a, b.pack(row, Operand::b, {{b.extract(loads[u], first, taken), taken}}), c);
    }
    sums.push_back(b.add(b.extract(c, 0), b.extract(c, 1)));
  }
  ValueId sum = sums[0];
  const ValueId group = b.compute(Op::shr, {b.lane(), b.i32(2)});
  for (int u = 1; u < 8; ++u) sum = b.select(b.compute(Op::eq, {group, b.i32(u)}), sums[u], sum);
  const ValueId out = b.mul(tile, b.i64(32));
  b.store(1, {out}, sum, b.lt(b.add(b.convert(b.lane(), DType::i64), out), b.param(0)));
  const Cubin cubin = compile(p);
  expect_no_spills(cubin);
  const KernelCode code = read_cubin(cubin.image)[0];
  EXPECT_EQ(code.count_wide("LDG", 16), 8u);
  EXPECT_EQ(code.count_wide("STG", 4), 1u);
  EXPECT_EQ(code.count("HMMA"), static_cast<std::size_t>(8 * 8 / taken));
  EXPECT_EQ(code.count("LDL") + code.count("STL"), 0u);
  EXPECT_LT(code.instructions, 160u);
  RecordProperty("compile_ms", std::to_string(cubin.compile_ms));
}

// A ticket is one atomic addition; a tile's publications release, its waits acquire, and in one
// kernel of one warp nothing needs a barrier of the block.
TEST_P(EmitCudaCompile, blocks_wait_for_each_other) {
  for (const int warps : {1, 4}) {
    const Cubin cubin = compile(look_back_program({.warps = warps, .in_place = warps == 4}));
    expect_no_spills(cubin);
    for (const KernelCode& code : read_cubin(cubin.image)) {
      if (code.name != "scan") continue;
      EXPECT_EQ(code.count("ATOMG"), 1u);
      EXPECT_GE(code.count("MEMBAR"), 3u) << "before each level's publication";
      EXPECT_EQ(code.count("BAR"), warps == 1 ? 0u : 4u);
      EXPECT_GE(code.count("LDG") + code.count("LD"), 7u) << "x, and for each level flag and sum";
      EXPECT_EQ(code.count("LDL") + code.count("STL"), 0u);
    }
    for (const auto& kernel : cubin.resources) {
      RecordProperty(kernel.name + std::to_string(warps) + "_registers",
                     std::to_string(kernel.registers));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, EmitCudaCompile,
                         testing::ValuesIn(thinned({75, 80, 86, 89, 90, 100, 120})),
                         [](const auto& arch) { return "sm_" + std::to_string(arch.param); });

}  // namespace
}  // namespace chainfold::test
