// Operations that the builder writes as others: bit for bit the same.
#include "chainfold/codegen/builder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "chainfold/codegen/ops.hpp"
#include "chainfold/codegen/program.hpp"

namespace chainfold::codegen {
namespace {

/// What becomes of a lane's value of `type` divided by a constant.
Compute divided_by(DType type, double divisor) {
  Program program;
  program.buffers = {{"x", type, BufferRole::input, 0, 16, {}}};
  program.launches.push_back({.name = "divide", .grid = 1, .warps = 1});
  Builder b(program);
  const ValueId x = b.load(0, {b.i64(0)}, 1);
  b.compute(Op::div, {x, b.constant(type, bits_of_double(type, divisor))});
  Compute result;
  for (const Instr& instr : program.launches[0].body.body)
    if (const auto* compute = std::get_if<Compute>(&instr.op)) result = *compute;
  return result;
}

TEST(Builder, MultipliesByExactReciprocals) {
  std::mt19937_64 random(3);
  for (const DType type : {DType::f32, DType::f64}) {
    const int least = type == DType::f32 ? -126 : -1022, bits = size_of(type) * 8;
    for (const double divisor : {1.0, -1.0, 2.0, 64.0, -1024.0, 0.125, std::ldexp(1.0, -least),
                                 std::ldexp(1.0, least - 1), -std::ldexp(1.0, least + 1)}) {
      ASSERT_EQ(divided_by(type, divisor).op, Op::mul) << divisor;
      const Bits by = bits_of_double(type, divisor), inverse = bits_of_double(type, 1 / divisor);
      for (int i = 0; i < 2000; ++i) {
        Bits x = random() >> (64 - bits);
        if (i % 3 == 0) x &= ~(Bits{0x7f} << (bits - 8));  // small ones, subnormal many of them
        EXPECT_EQ(evaluate(Op::div, type, type, x, by), evaluate(Op::mul, type, type, x, inverse))
            << double_of_bits(type, x) << " / " << divisor;
      }
    }
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double divisor : {3.0, -72.0, 0.1, 0.0, infinity, infinity - infinity,
                                 std::ldexp(1.0, least - 2), std::ldexp(1.0, 1 - least)})
      EXPECT_EQ(divided_by(type, divisor).op, Op::div) << divisor;
  }
}

}  // namespace
}  // namespace chainfold::codegen
