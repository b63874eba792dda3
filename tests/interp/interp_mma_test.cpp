#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/interp/mma.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/verify.hpp"

namespace chainfold::codegen {
namespace {

// The matrices of one instruction as doubles, and the way through fragments and back.
struct Matrices {
  explicit Matrices(const MmaRow& the_row)
      : row(the_row),
        a(static_cast<std::size_t>(row.m * row.k)),
        b(static_cast<std::size_t>(row.k * row.n)),
        c(static_cast<std::size_t>(row.m * row.n)) {}

  std::vector<Bits> fragment(Operand operand) const {
    const auto& from = operand == Operand::a ? a : operand == Operand::b ? b : c;
    const int columns = operand == Operand::a ? row.k : row.n;
    const DType type = operand == Operand::c ? row.accumulator : row.input;
    std::vector<Bits> out;
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < row.elements(operand); ++i) {
        const MatrixPosition at = row.position(operand, lane, i);
        out.push_back(
            bits_of_double(type, from[static_cast<std::size_t>(at.row * columns + at.column)]));
      }
    }
    return out;
  }

  std::vector<double> run(int arch) const {
    std::vector<Bits> d = fragment(Operand::c);
    interpret_mma(row, arch, fragment(Operand::a).data(), fragment(Operand::b).data(), d.data(),
                  d.data());
    std::vector<double> out(c.size());
    for (int lane = 0, next = 0; lane < 32; ++lane) {
      for (int i = 0; i < row.elements(Operand::c); ++i) {
        const MatrixPosition at = row.position(Operand::c, lane, i);
        out[static_cast<std::size_t>(at.row * row.n + at.column)] =
            double_of_bits(row.accumulator, d[static_cast<std::size_t>(next++)]);
      }
    }
    return out;
  }

  // sum of a * b + c, and of their absolute values, at (i, j); exact for the data used here.
  std::pair<long double, long double> exact(int i, int j) const {
    long double sum = c[static_cast<std::size_t>(i * row.n + j)], size = std::fabs(sum);
    for (int k = 0; k < row.k; ++k) {
      const long double product =
          static_cast<long double>(a[static_cast<std::size_t>(i * row.k + k)]) *
          b[static_cast<std::size_t>(k * row.n + j)];
      sum += product;
      size += std::fabs(product);
    }
    return {sum, size};
  }

  const MmaRow& row;
  std::vector<double> a, b, c;
};

class InterpMma : public testing::TestWithParam<int> {
 protected:
  const MmaRow& row() const { return mma_table()[static_cast<std::size_t>(GetParam())]; }
};

TEST_P(InterpMma, IsExactOnIntegers) {
  std::mt19937_64 random(GetParam());
  const bool is_unsigned = !is_signed(row().input);
  for (int arch : {80, 90}) {
    for (int round = 0; round < 20; ++round) {
      Matrices m(row());
      auto draw = [&](int limit) {
        const auto x = static_cast<int>(random() % static_cast<unsigned>(2 * limit + 1));
        return static_cast<double>(is_unsigned ? x : x - limit);
      };
      for (double& x : m.a) x = draw(100);
      for (double& x : m.b) x = draw(100);
      for (double& x : m.c) x = draw(100000);
      const std::vector<double> d = m.run(arch);
      for (int i = 0; i < row().m; ++i) {
        for (int j = 0; j < row().n; ++j) {
          ASSERT_EQ(d[static_cast<std::size_t>(i * row().n + j)],
                    static_cast<double>(m.exact(i, j).first));
        }
      }
    }
  }
}

TEST_P(InterpMma, StaysWithinItsBound) {
  if (row().rounding == MmaRounding::exact) {
    EXPECT_EQ(mma_error_bound(row(), 90), 0);  // that it holds is IsExactOnIntegers
    return;
  }
  std::mt19937_64 random(GetParam());
  std::normal_distribution<double> normal;
  for (int arch : {75, 80, 90}) {
    if (arch < row().first_arch) continue;
    double worst = 0;
    for (int round = 0; round < 100; ++round) {
      Matrices m(row());
      const int spread = round % 20;
      auto draw = [&](DType type) {
        const double x =
            std::ldexp(normal(random), static_cast<int>(random() % (2 * 20 + 1)) * spread / 40);
        // The nearest value that the instruction takes as it is; tf32 keeps 10 bits of fraction.
        if (type == DType::f32)
          return double_of_bits(type, bits_of_double(type, x) & ~Bits{0x1fff});
        return double_of_bits(type, bits_of_double(type, x));
      };
      for (double& x : m.a) x = draw(row().input);
      for (double& x : m.b) x = draw(row().input);
      if (round % 2 == 0) {
        for (double& x : m.c) x = draw(row().accumulator);
      }
      const std::vector<double> d = m.run(arch);
      for (int i = 0; i < row().m; ++i) {
        for (int j = 0; j < row().n; ++j) {
          const auto [sum, size] = m.exact(i, j);
          const double error =
              static_cast<double>(std::fabs(d[static_cast<std::size_t>(i * row().n + j)] - sum));
          worst = std::max(worst, error / static_cast<double>(size) * 0x1p24);
        }
      }
    }
    // The exact sum is a long double here: its own rounding matters to f64 alone.
    const double slack = row().accumulator == DType::f64 ? 16 * 0x1p-64 / 0x1p-24 : 1e-9;
    EXPECT_LE(worst, mma_error_bound(row(), arch) + slack) << arch;
    EXPECT_GT(worst, 0) << arch;
  }
}

TEST_P(InterpMma, SumsOfDataStayWithinTheirBound) {
  if (row().rounding != MmaRounding::toward_zero) return;
  std::mt19937_64 random(GetParam());
  for (int arch : {75, 80, 90}) {
    if (arch < row().first_arch) continue;
    double worst = 0;
    for (int round = 0; round < 60; ++round) {
      // One large element a row, and others just above what its alignment cuts off.
      Matrices m(row());
      for (double& x : m.a)
        x = std::ldexp(1 - std::ldexp(static_cast<double>(random() % 4), -7), -10 - round % 6);
      for (int i = 0; i < row().m; ++i)
        m.a[static_cast<std::size_t>(i * row().k) + random() % static_cast<unsigned>(row().k)] =
            32768 - 128 * static_cast<double>(random() % 2);
      for (double& x : m.b) x = random() % 4 != 0 ? 1 : 0;
      const std::vector<double> d = m.run(arch);
      for (int i = 0; i < row().m; ++i) {
        for (int j = 0; j < row().n; ++j) {
          const auto [sum, size] = m.exact(i, j);
          if (size == 0) continue;
          const double error =
              static_cast<double>(std::fabs(d[static_cast<std::size_t>(i * row().n + j)] - sum));
          worst = std::max(worst, error / static_cast<double>(size) * 0x1p24);
        }
      }
    }
    EXPECT_LE(worst, mma_sum_error_bound(row(), arch) + 1e-9) << arch;
    EXPECT_GT(worst, mma_sum_error_bound(row(), arch) / 4) << arch << ": the data is too tame";
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, InterpMma, testing::Range(0, static_cast<int>(mma_table().size())),
                         [](const auto& instance) {
                           std::string name(
                               mma_table()[static_cast<std::size_t>(instance.param)].name);
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(InterpMmaModel, IntegersWrap) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(find_mma(DType::i8, 80))];
  Matrices m(row);
  m.a.assign(m.a.size(), 1);
  m.b.assign(m.b.size(), 1);
  m.c.assign(m.c.size(), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(m.run(80)[0], static_cast<double>(std::numeric_limits<std::int32_t>::min()) + 31);
}

// One large value, then many whose last bits are cut when they are aligned with it: the relative
// error of a chain of L instructions on one accumulator, in units of 2^-24.
double chain_error(int arch, int length, double small = 0x1p-10 * (1 - 0x1p-11)) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(find_mma(DType::f16, 80))];
  Matrices m(row);
  m.a.assign(m.a.size(), 1);
  m.b.assign(m.b.size(), small);
  long double exact = 0;
  for (int step = 0; step < length; ++step) {
    m.b[0] = step == 0 ? 32768 : m.b[1];
    exact += m.exact(0, 0).first - m.c[0];
    m.c = m.run(arch);
  }
  return static_cast<double>(std::fabs(m.c[0] - exact) / exact) * 0x1p24;
}

// The figures were measured on an H200; a quarter unit allows for their rounding.
TEST(InterpMmaModel, ChainsErrAsMeasuredOnHopper) {
  EXPECT_NEAR(chain_error(90, 1), 7.5, 0.25);
  EXPECT_NEAR(chain_error(90, 2), 15.5, 0.25);
  EXPECT_NEAR(chain_error(90, 4), 31.5, 0.25);
  EXPECT_NEAR(chain_error(90, 8), 63.5, 0.25);
  EXPECT_NEAR(chain_error(90, 16), 127, 0.75);
}

// One fraction bit less: values just below 2^-9 vanish beside 2^15 on Ampere, where Hopper keeps
// half.
TEST(InterpMmaModel, ChainsErrMoreOnAmpereButWithinTheBound) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(find_mma(DType::f16, 80))];
  const double small = 0x1p-9 * (1 - 0x1p-11);
  EXPECT_NEAR(chain_error(80, 1, small), 15, 0.25);
  EXPECT_NEAR(chain_error(90, 1, small), 9, 0.25);  // half lost, and 1.5 in the last rounding
  for (int length : {1, 4, 16}) {
    EXPECT_LE(chain_error(80, length, small), length * mma_error_bound(row, 80));
    EXPECT_LE(chain_error(90, length, small), length * mma_error_bound(row, 90));
  }
}

TEST(InterpMmaModel, ArchitecturesDiffer) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(find_mma(DType::f16, 80))];
  Matrices m(row);
  m.a.assign(m.a.size(), 1);
  m.b.assign(m.b.size(), 0);
  m.b[0] = 32768;  // column 0: 2^15,
  m.b[static_cast<std::size_t>(row.n)] =
      0x1p-10;  // and 2^-10, the last bit that 25 fraction bits keep
  m.b[static_cast<std::size_t>(2 * row.n)] = -32768;
  EXPECT_EQ(m.run(90)[0], 0x1p-10);
  EXPECT_EQ(m.run(80)[0], 0);
}

TEST(InterpMmaModel, SpecialValuesSpreadAlongTheirRowOrColumn) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(find_mma(DType::bf16, 80))];
  const double infinity = std::numeric_limits<double>::infinity();
  Matrices m(row);
  m.b[static_cast<std::size_t>(3 * row.n + 2)] =
      infinity;  // column 2; A is zero there: 0 * inf is NaN
  m.a[5] = 1;    // row 0, k = 5
  m.b[static_cast<std::size_t>(5 * row.n + 4)] = -infinity;  // column 4
  const std::vector<double> d = m.run(90);
  for (int i = 0; i < row.m; ++i) {
    EXPECT_TRUE(std::isnan(d[static_cast<std::size_t>(i * row.n + 2)]));
    EXPECT_EQ(d[static_cast<std::size_t>(i * row.n + 1)], 0);
  }
  EXPECT_EQ(d[4], -infinity);
}

TEST(InterpMmaModel, RangeEnds) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(find_mma(DType::bf16, 80))];
  Matrices m(row);
  m.a[0] = 0x1p-70;
  m.b[0] = -0x1.8p-70;  // -1.5 * 2^-140: subnormal, exact
  m.b[1] = 0x1p-79;     // 2^-149
  m.b[2] = 0x1.fep-80;  // below: cut to 0
  m.b[3] = -0x1.fep-80;
  std::vector<double> d = m.run(90);
  EXPECT_EQ(d[0], -0x1.8p-140);
  EXPECT_EQ(d[1], 0x1p-149);
  EXPECT_EQ(d[2], 0);
  EXPECT_FALSE(std::signbit(d[3]));
  m.a[0] = 0x1p100;
  m.b[0] = 0x1p28;
  m.b[1] = 0x1.fep27;
  d = m.run(90);
  EXPECT_EQ(d[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(d[1], 0x1.fep127);
}

TEST(InterpMmaModel, Tf32CutsItsInputs) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(find_mma(DType::f32, 80))];
  Matrices m(row);
  m.a[0] = 1;
  m.b[0] = 0x1.fffffep0;
  EXPECT_EQ(m.run(80)[0], 0x1.ffcp0);
}

// A whole program: a warp loads 8 f16 a lane; two chained instructions with the permuted ones sum
// each quad's 32 consecutive elements.
TEST(InterpMmaProgram, OnesSumWhatAQuadLoaded) {
  Program program;
  program.name = "quads";
  program.buffers = {{"x", DType::f16, BufferRole::input, 0, 16, {}},
                     {"y", DType::f32, BufferRole::output, 0, 16, {}}};
  Launch launch;
  launch.name = "quads";
  program.launches.push_back(launch);
  program.launches[0].grid = SizeExpr(1);
  Builder b(program);
  const int row = find_mma(DType::f16, 80);
  const ValueId x = b.load(0, {b.i64(0)}, 8);
  ValueId sum = b.const_fragment(row, Operand::c, {MatrixKind::zeros});
  for (int step = 0; step < 2; ++step) {
    const ValueId data = b.pack(row, Operand::b, {{b.extract(x, 4 * step, 4), 0}});
    sum = b.mma(b.const_fragment(row, Operand::a, {MatrixKind::segments, 16, 8, step}), data, sum);
  }
  // Row r < 2 holds the sum of half r of each run; lane l < 8 holds C(l / 4, 2 * (l % 4) .. + 1).
  b.store(1, {b.i64(0)}, b.extract(sum, 0, 2), b.lt(b.lane(), b.i32(8)));
  ASSERT_NO_THROW(verify(program)) << print(program);
  alignas(16) std::array<std::uint16_t, 256> in{};
  alignas(16) std::array<float, 16> out{};
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<std::uint16_t>(bits_of_int(DType::f16, static_cast<std::int64_t>(i)));
  }
  const std::array<InterpBuffer, 2> buffers{InterpBuffer{in.data(), 256},
                                            InterpBuffer{out.data(), 16}};
  interpret(program, buffers, {});
  for (int half = 0; half < 2; ++half) {
    for (int quad = 0; quad < 8; ++quad) {
      const int first = quad * 32 + half * 16;
      EXPECT_EQ(out[static_cast<std::size_t>(half * 8 + quad)],
                static_cast<float>(16 * first + 120));
    }
  }
}

}  // namespace
}  // namespace chainfold::codegen
