#include <array>
#include <limits>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/emit/cuda/body.hpp"
#include "chainfold/codegen/emit/cuda/cuda.hpp"
#include "chainfold/codegen/emit/cuda/ops.hpp"
#include "chainfold/codegen/emit/cuda/text.hpp"
#include "chainfold/codegen/emit/cuda/warp.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/tests/support/operation_program.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;

TEST(EmitCuda, literals_read_back_exactly) {
  EXPECT_EQ(cuda::literal(DType::i32, 5), "5");
  EXPECT_EQ(cuda::literal(DType::i32, 0xfffffffdu), "(-3)");
  EXPECT_EQ(cuda::literal(DType::i32, 0x80000000u), "(-2147483647 - 1)");
  EXPECT_EQ(cuda::literal(DType::i64, Bits{1} << 63), "(-9223372036854775807ll - 1)");
  EXPECT_EQ(cuda::literal(DType::u64, ~Bits{0}), "18446744073709551615ull");
  EXPECT_EQ(cuda::literal(DType::i8, 0xfd), "(signed char)-3");
  EXPECT_EQ(cuda::literal(DType::boolean, 1), "true");
  EXPECT_EQ(cuda::literal(DType::f16, 0x3c00), "(unsigned short)0x3c00");
  EXPECT_EQ(cuda::literal(DType::f32, 0x3f800000u), "1.0f");
  EXPECT_EQ(cuda::literal(DType::f32, 0x3dcccccdu), "0.10000000149011612f");
  EXPECT_EQ(cuda::literal(DType::f32, 0x80000000u), "(-0.0f)");
  EXPECT_EQ(cuda::literal(DType::f32, 0x7f800000u), "__uint_as_float(0x7f800000u)");
  EXPECT_EQ(cuda::literal(DType::f64, 0x7ff8000000000000u),
            "__longlong_as_double(0x7ff8000000000000ll)");
}

TEST(EmitCuda, permutations_have_closed_forms) {
  const auto text = [](auto&& of_lane) {
    std::vector<std::uint8_t> table;
    for (int lane = 0; lane < kWarpWidth; ++lane)
      table.push_back(static_cast<std::uint8_t>(of_lane(lane)));
    return cuda::permutation(table);
  };
  EXPECT_EQ(text([](int) { return 7; }), "7");
  EXPECT_EQ(text([](int lane) { return lane & 28; }), "(lane & 28)");
  EXPECT_EQ(text([](int lane) { return lane / 4 | (lane % 4) << 3; }),
            "((lane & 28) >> 2) ^ ((lane & 3) << 3)");
  EXPECT_EQ(text([](int lane) { return (lane & 3) << 2 ^ 5; }), "((lane & 3) << 2) ^ 5");
  EXPECT_EQ(text([](int lane) { return (lane + 3) % 32; }), "(lane + 3) & 31");
  const std::string table = text([](int lane) { return lane * lane % 32; });
  EXPECT_EQ(table.rfind("cf_table(lane, 0x", 0), 0u) << table;
}

// Both sides are exchanged by all lanes, whichever of them a lane takes.
TEST(EmitCuda, a_permutation_of_two_values_takes_either) {
  Program p;
  p.buffers.push_back({"x", DType::f32, BufferRole::input, 0, 4, {}});
  p.buffers.push_back({"out", DType::f32, BufferRole::output, 0, 4, {}});
  p.launches.push_back({});
  p.launches[0].name = "interleaved";
  Builder b(p);
  const ValueId low = b.load(0, {b.i64(0)}), high = b.load(0, {b.i64(32)});
  std::vector<std::uint8_t> source;
  for (int lane = 0; lane < kWarpWidth; ++lane)
    source.push_back(static_cast<std::uint8_t>(lane % 2 * kWarpWidth + lane / 2));
  b.store(1, {b.i64(0)}, b.permute(low, high, source));
  verify(p);
  const CudaSource cuda = emit_cuda(p, 90);
  EXPECT_NE(cuda.text.find("= cf_either(0xaaaaaaaau, lane, __shfl_sync(0xffffffffu, "),
            std::string::npos)
      << cuda.text;
  EXPECT_NE(cuda.text.find("CF_DEVICE T cf_either("), std::string::npos) << cuda.text;
}

// f32, four a lane, with a mask: the text that goldens are made of.
TEST(EmitCuda, a_kernel_reads_like_its_program) {
  Program p;
  p.buffers.push_back({"my x", DType::f32, BufferRole::input, 0, 16, {}});
  p.buffers.push_back({"out", DType::f32, BufferRole::output, 0, 4, {}});
  p.params.push_back({"n", DType::i64, ParamRole::elements, 0});
  p.params.push_back({"scale", DType::f32, ParamRole::literal, 0});
  p.launches.push_back({});
  p.launches[0].name = "scaled";
  p.launches[0].warps = 4;
  p.launches[0].min_blocks = 2;
  Builder b(p);
  const ValueId base = b.mul(b.block(), b.i64(128));
  const ValueId mask = b.lt(b.add(b.convert(b.lane(), DType::i64), base), b.param(0));
  const ValueId x = b.load(0, {base, 8, 64}, 4, mask);
  const ValueId y = b.mul(x, b.param(1));
  const ValueId last = b.extract(y, 3), first = b.extract(y, 0);
  const ValueId s = b.add(first, last);
  b.store(1, {base}, b.shuffle_xor(s, 16), mask);
  verify(p);
  const CudaSource source = emit_cuda(p, 90);
  EXPECT_EQ(source.kernels, std::vector<std::string>{"scaled"});
  EXPECT_EQ(source.text, source.prelude + source.kernels_text);
  // The numbers of values are the Builder's business.
  std::string text = std::regex_replace(source.kernels_text, std::regex("v[0-9]+"), "v");
  EXPECT_EQ(text, R"(extern "C" __global__ void __launch_bounds__(128, 2)
scaled(const float* __restrict__ b0_my_x,
    float* b1_out,
    unsigned long long p0_n_slot,
    unsigned long long p1_scale_slot) {
  const int lane = (int)(threadIdx.x & 31u);
  const long long p0_n = (long long)p0_n_slot;
  const float p1_scale = __uint_as_float((unsigned)p1_scale_slot);
  const long long v = (long long)blockIdx.x;
  const long long v = (long long)((unsigned long long)v * (unsigned long long)128ll);
  const long long v = (long long)lane;
  const long long v = (long long)((unsigned long long)v + (unsigned long long)v);
  const bool v = v < p0_n;
  float v_0, v_1, v_2, v_3;
  cf_ldg_if(v, b0_my_x + v + (lane >> 3) * 64 + (lane & 7) * 4, v_0, v_1, v_2, v_3);
  const float v_0 = v_0 * p1_scale,
              v_1 = v_1 * p1_scale,
              v_2 = v_2 * p1_scale,
              v_3 = v_3 * p1_scale;
  const float v = v_0 + v_3;
  const float v = __shfl_xor_sync(0xffffffffu, v, 16);
  cf_st_if(v, b1_out + v + lane, v);
}
)");
  EXPECT_NE(source.prelude.find("NAME##_if"), std::string::npos);
  EXPECT_EQ(source.prelude.find("cf_div"), std::string::npos) << "a helper that nobody calls";
}

/// Operators of C++ are undefined where signed integers overflow, and take elements of one and two
/// bytes for int.
TEST(EmitCuda, integers_wrap) {
  const std::vector<std::string> args{"a", "b", "c"};
  const auto text = [&](Op op, DType type) {
    return cuda::expression(op, type, type, std::span(args).first(arity(op)));
  };
  EXPECT_EQ(text(Op::add, DType::i32), "(int)((unsigned)a + (unsigned)b)");
  EXPECT_EQ(text(Op::sub, DType::i64),
            "(long long)((unsigned long long)a - (unsigned long long)b)");
  EXPECT_EQ(text(Op::mul, DType::u16), "(unsigned short)((unsigned)a * (unsigned)b)");
  EXPECT_EQ(text(Op::mul, DType::u64), "a * b");
  EXPECT_EQ(text(Op::fma, DType::i8),
            "(signed char)((unsigned)(signed char)((unsigned)a * (unsigned)b) + (unsigned)c)");
  EXPECT_EQ(text(Op::min, DType::i16), "(short)(a < b ? a : b)");
  EXPECT_EQ(text(Op::max, DType::u32), "(a > b ? a : b)");
  EXPECT_EQ(text(Op::max, DType::f32), "cf_max(a, b)");
}

TEST(EmitCuda, every_helper_called_is_there) {
  const std::regex call("\\bcf_[a-z0-9_]+");
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto type = static_cast<DType>(t);
    const Program p = operation_program(type, 16 / size_of(type));
    const CudaSource source = emit_cuda(p, 90);
    std::set<std::string> called;
    for (auto it =
             std::sregex_iterator(source.kernels_text.begin(), source.kernels_text.end(), call);
         it != std::sregex_iterator(); ++it)
      called.insert(it->str());
    EXPECT_FALSE(called.empty());
    for (const std::string& name : called)
      EXPECT_NE(source.prelude.find(name), std::string::npos) << name << " for " << name_of(type);
  }
  // Helpers of helpers come along.
  const std::string prelude = cuda_prelude_for("cf_bf16_of_f64(x)");
  EXPECT_NE(prelude.find("cf_bf16_of_f32("), std::string::npos);
}

TEST(EmitCuda, strides_beyond_32_bits_are_computed_in_64) {
  const auto address = [](std::int64_t stride) {
    Program p;
    p.buffers.push_back({"x", DType::f32, BufferRole::input, 0, 16, {}});
    p.buffers.push_back({"y", DType::f32, BufferRole::output, 0, 16, {}});
    p.launches.push_back({});
    p.launches[0].name = "k";
    Builder b(p);
    b.store(1, {b.i64(0)}, b.load(0, {b.i64(0), 1, stride}));
    return emit_cuda(p, 90).kernels_text;
  };
  EXPECT_NE(address(67108863).find("b0_x + 0ll + lane * 67108863,"), std::string::npos)
      << address(67108863);
  EXPECT_NE(address(67108864).find("lane * 67108864ll,"), std::string::npos) << address(67108864);
  EXPECT_NE(address(-3).find("lane * (-3),"), std::string::npos);
}

TEST(EmitCuda, a_matrix_instruction_the_target_lacks_is_a_defect) {
  Program p;
  p.buffers.push_back({"y", DType::f32, BufferRole::output, 0, 16, {}});
  p.launches.push_back({});
  p.launches[0].name = "k";
  Builder b(p);
  const int row = find_mma(DType::f16, 90);
  const ValueId c = b.const_fragment(row, Operand::c, {MatrixKind::zeros});
  const ValueId a = b.const_fragment(row, Operand::a, {MatrixKind::ones});
  const ValueId d = b.mma(a, b.pack(row, Operand::b, {{kNoValue, 4}}), c);
  b.store(0, {b.i64(0)}, b.extract(d, 0));
  EXPECT_NO_THROW(emit_cuda(p, 80));
  try {
    emit_cuda(p, 75);
    FAIL() << "m16n8k16 was emitted for sm_75";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("m16n8k16.f32.f16 needs sm_80"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace chainfold::test
