// Operations that the builder writes as others: bit for bit the same.
#include "chainfold/codegen/program/builder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {
namespace {

/// What becomes of a lane's values of `type` divided by a constant, and its constant operand.
struct Divided {
  Op op;
  Bits by;
};
Divided divided_by(DType type, double divisor, int width = 1) {
  Program program;
  program.buffers = {{"x", type, BufferRole::input, 0, 16, {}}};
  program.launches.push_back({.name = "divide", .grid = 1, .warps = 1});
  Builder b(program);
  const ValueId x = b.load(0, {b.i64(0)}, width);
  const ValueId result = b.compute(Op::div, {x, b.constant(type, bits_of_double(type, divisor))});
  EXPECT_EQ(program.type(result), lane(type, width));
  for (const Instr& instr : program.launches[0].body.body) {
    const auto* compute = std::get_if<Compute>(&instr.op);
    if (compute != nullptr) return {compute->op, b.constant_of(compute->operands[1]).value()};
  }
  throw std::logic_error("nothing is computed");
}

TEST(Builder, MultipliesByExactReciprocals) {
  std::mt19937_64 random(3);
  for (const DType type : {DType::f32, DType::f64}) {
    const int least = type == DType::f32 ? -126 : -1022, bits = size_of(type) * 8;
    for (const double divisor : {1.0, -1.0, 2.0, 64.0, -1024.0, 0.125, std::ldexp(1.0, -least),
                                 std::ldexp(1.0, least - 1), -std::ldexp(1.0, least + 1)}) {
      const auto [op, inverse] = divided_by(type, divisor, 4);
      ASSERT_EQ(op, Op::mul) << divisor;
      const Bits by = bits_of_double(type, divisor);
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
  for (const DType type : {DType::f16, DType::bf16, DType::i32})
    EXPECT_EQ(divided_by(type, 2.0).op, Op::div) << name_of(type);
}

/// Products with nothing are nothing where one integer is multiplied, and stay what they are
/// elsewhere: of floats 0 times infinity is no 0, of lanes and vectors a constant is no value.
TEST(Builder, MultipliesByZeroWithoutComputing) {
  const auto computes = [](DType type, bool lanes, int width, bool zero_first) {
    Program program;
    program.buffers = {{"x", type, BufferRole::input, 0, 16, {}}};
    program.params = {{"p", type}};
    program.launches.push_back({.name = "multiply", .grid = 1, .warps = 1});
    Builder b(program);
    const ValueId x = lanes ? b.load(0, {b.i64(0)}, width) : b.param(0);
    const ValueId zero = b.constant(type, 0);
    const ValueId result =
        zero_first ? b.compute(Op::mul, {zero, x}) : b.compute(Op::mul, {x, zero});
    EXPECT_EQ(program.type(result), lanes ? lane(type, width) : uniform(type));
    const bool constant = b.constant_of(result).has_value();
    EXPECT_EQ(b.constant_of(result).value_or(0), Bits{0});
    return !constant;
  };
  for (const bool zero_first : {false, true}) {
    for (const DType type : {DType::i32, DType::i64, DType::u64})
      EXPECT_FALSE(computes(type, false, 1, zero_first)) << name_of(type);
    EXPECT_TRUE(computes(DType::i32, true, 1, zero_first));
    EXPECT_TRUE(computes(DType::i32, true, 4, zero_first));
    for (const DType type : {DType::f32, DType::f64})
      EXPECT_TRUE(computes(type, false, 1, zero_first)) << name_of(type);
  }
}

}  // namespace
}  // namespace chainfold::codegen
