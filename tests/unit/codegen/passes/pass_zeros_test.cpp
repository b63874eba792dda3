// Which additions of zero go, and that no bit of a result changes with them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/passes/dead.hpp"
#include "chainfold/codegen/passes/zeros.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/codegen/program/visit.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;

constexpr int kInput = 0, kOutput = 1, kRecords = 2, kCounter = 3;
constexpr int kLoads = 4, kStores = 8;

/// One warp, an input and an output of f32, a shared array of 32.
Program one_warp() {
  Program program;
  program.name = "zeros";
  program.buffers = {{"x", DType::f32, BufferRole::input, 0, 16, {}},
                     {"y", DType::f32, BufferRole::output, 0, 16, {}}};
  program.launches.push_back({.name = "only", .grid = SizeExpr(1), .warps = 1});
  program.launches[0].shared.push_back({"s", DType::f32, kWarpWidth});
  return program;
}

std::size_t additions(const Program& program) {
  std::size_t count = 0;
  for_each_instr(program.launches[0].body, [&](const Instr& instr) {
    const auto* compute = std::get_if<Compute>(&instr.op);
    count += compute != nullptr && compute->op == Op::add &&
                     is_float(program.type(instr.results[0]).elem)
                 ? 1
                 : 0;
  });
  return count;
}

/// Additions of floats that are left of a program whose body is written by `write(b, x, zero)` and
/// gives what is stored.
template <class F>
std::size_t left_of(F&& write) {
  Program program = one_warp();
  program.buffers.push_back({"records", DType::i64, BufferRole::scratch, 0, 16, SizeExpr(64)});
  program.buffers.push_back({"counter", DType::i64, BufferRole::scratch, 1, 16, SizeExpr(32)});
  program.launches[0].rings.push_back({"stage", 1});
  {
    Builder b(program);
    const ValueId x = b.load(kInput, {b.i64(0)}, 1);
    b.store(kOutput, {b.i64(0)}, write(b, x, b.splat(b.constant(DType::f32, 0))));
  }
  verify(program);
  drop_zeros(program);
  eliminate_dead(program);
  verify(program);
  return additions(program);
}

using V = ValueId;

TEST(DropZeros, KeepsTheSumOfZeroAndWhatMayBeMinusZero) {
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) { return b.add(x, zero); }), 1);
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) { return b.add(zero, x); }), 1);
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) { return b.add(b.mul(x, zero), zero); }), 1);
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) {
              const V narrow = b.convert(b.convert(b.add(x, zero), DType::f16), DType::f32);
              return b.add(narrow, zero);  // what is small and negative became -0.0
            }),
            2);
  EXPECT_EQ(left_of([](Builder& b, V x, V) {
              const V minus = b.splat(b.constant(DType::f32, 0x80000000));
              return b.add(x, minus);
            }),
            1);
}

TEST(DropZeros, DropsASecondZero) {
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) { return b.add(b.add(x, zero), zero); }), 1);
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) { return b.add(zero, b.mul(x, x)); }), 0);
  EXPECT_EQ(
      left_of([](Builder& b, V x, V zero) { return b.add(b.shuffle_up(b.add(x, zero), 1), zero); }),
      1);
}

TEST(DropZeros, SeesThroughLoops) {
  const auto loop = [](bool starts) {
    return left_of([starts](Builder& b, V x, V zero) {
      const V first = starts ? b.add(x, zero) : x;
      const V sum =
          b.loop(b.i64(0), b.i64(3), b.i64(1), {first}, [&](V, const Builder::Values& carried) {
            return Builder::Values{b.add(carried[0], x)};
          })[0];
      return b.add(sum, zero);
    });
  };
  EXPECT_EQ(loop(true), 2);   // the loop's own and the first
  EXPECT_EQ(loop(false), 2);  // the loop's own and the last
}

TEST(DropZeros, KnowsWhatSharedMemoryHolds) {
  const auto through = [](bool sums) {
    return left_of([sums](Builder& b, V x, V zero) {
      b.shared_store(0, {b.i64(0)}, sums ? b.add(x, zero) : x);
      b.barrier();
      return b.add(b.shared_load(0, {b.i64(0)}), zero);
    });
  };
  EXPECT_EQ(through(true), 1);
  EXPECT_EQ(through(false), 1);
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) {
              b.shared_store(0, {b.i64(0)}, b.add(x, zero));
              b.barrier();
              const V y = b.add(b.shared_load(0, {b.i64(0)}), zero);
              b.barrier();
              b.shared_store(0, {b.i64(0)}, x);
              return y;
            }),
            2);
}

TEST(DropZeros, KnowsWhatCopiesAndSlotsBring) {
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) {
              b.shared_store(0, {b.i64(0)}, b.add(x, zero));
              b.barrier();
              b.copy_async({.buffer = kInput,
                            .first = b.i64(0),
                            .array = 0,
                            .to = b.i64(0),
                            .elements = kWarpWidth,
                            .limit = b.i64(kWarpWidth),
                            .ring = 0,
                            .slot = b.i64(0)});
              b.copy_wait(0, b.i64(0), b.i64(0));
              return b.add(b.shared_load(0, {b.i64(0)}), zero);
            }),
            2);
  const auto through_slot = [](bool sums) {
    return left_of([sums](Builder& b, V x, V zero) {
      const V ticket = b.ticket(kCounter);
      b.publish(kRecords, ticket, ticket, {sums ? b.add(x, zero) : x, x});
      const V before = b.sub(ticket, b.i64(1));
      const Builder::Values told = b.await({.flags = kRecords,
                                            .first = before,
                                            .count = b.i64(1),
                                            .ticket = ticket,
                                            .publisher = before,
                                            .stride = b.i64(1)},
                                           {DType::f32, DType::f32});
      return b.mul(b.add(told[0], zero), b.add(told[1], zero));
    });
  };
  EXPECT_EQ(through_slot(true), 2);   // what was published, and of the other field
  EXPECT_EQ(through_slot(false), 2);  // of both fields
}

TEST(DropZeros, KeepsWhatGivesAnotherType) {
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) {
              const V one = b.constant(DType::f32, 0x3f800000);  // uniform beside a lane's zero
              return b.mul(b.add(one, zero), x);
            }),
            1);
  EXPECT_EQ(left_of([](Builder& b, V x, V zero) {
              const V wide = b.concat({b.add(x, zero), b.mul(x, x)});
              return b.extract(b.add(wide, zero), 1);
            }),
            1);
}

/// A program of random operations in which zeros are frequent.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed) {
    Builder b(program_);
    std::vector<V> values{b.splat(b.constant(DType::f32, 0)),
                          b.splat(b.constant(DType::f32, 0x80000000))};
    for (int i = 0; i < kLoads; ++i)
      values.push_back(b.load(kInput, {b.i64(std::int64_t{i} * kWarpWidth)}, 1));
    grow(b, values, 20);
    b.shared_store(0, {b.i64(0)}, any(values));
    b.barrier();
    values.push_back(b.shared_load(0, {b.i64(0)}));
    const std::vector<V> before = values;
    const Builder::Values carried = b.loop(b.i64(0), b.i64(3), b.i64(1), {any(values), any(values)},
                                           [&](V, const Builder::Values& inside) {
                                             std::vector<V> seen = before;
                                             seen.insert(seen.end(), inside.begin(), inside.end());
                                             grow(b, seen, 12);
                                             return Builder::Values{seen.back(), any(seen)};
                                           });
    values.insert(values.end(), carried.begin(), carried.end());
    grow(b, values, 20);
    for (int i = 0; i < kStores; ++i) {
      const V value = values[values.size() - 1 - static_cast<std::size_t>(i)];
      b.store(kOutput, {b.i64(std::int64_t{i} * kWarpWidth)}, value);
    }
  }
  Program& program() { return program_; }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  V any(const std::vector<V>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }
  void grow(Builder& b, std::vector<V>& values, int count) {
    const V zero = values[0];
    for (int i = 0; i < count; ++i) {
      const V x = any(values), y = any(values);
      switch (below(26)) {
        case 0: values.push_back(b.sub(x, y)); break;
        case 1: values.push_back(b.mul(x, y)); break;
        case 2: values.push_back(b.compute(Op::neg, {x})); break;
        case 3: values.push_back(b.compute(Op::sqrt, {b.compute(Op::abs, {x})})); break;
        case 4: values.push_back(b.select(b.lt(x, y), any(values), any(values))); break;
        case 5: values.push_back(b.compute(Op::max, {x, y})); break;
        case 6: values.push_back(b.min(x, y)); break;
        case 7: values.push_back(b.convert(b.convert(x, DType::f16), DType::f32)); break;
        case 8: values.push_back(b.shuffle_xor(x, 1 << below(5))); break;
        case 9: values.push_back(b.compute(Op::sqrt, {x})); break;
        case 10: values.push_back(b.add(x, y)); break;
        case 11: values.push_back(b.convert(b.lane(), DType::f32)); break;
        case 12: values.push_back(b.add(zero, x)); break;
        case 13: values.push_back(b.compute(Op::exp, {x})); break;
        case 14: values.push_back(b.convert(wider(b, x, zero), DType::f32)); break;
        case 15: values.push_back(b.convert(b.convert(x, DType::bf16), DType::f32)); break;
        case 16: values.push_back(b.extract(b.add(b.concat({x, y}), zero), below(2))); break;
        case 17: values.push_back(b.permute(x, y, table())); break;
        case 18: branch(b, values, b.any(b.lt(x, y))); break;
        case 19: turn(b, values); break;
        case 20: through_memory(b, values, x); break;
        case 21: values.push_back(b.mul(x, x)); break;
        case 22: values.push_back(b.shuffle_up(x, 1)); break;
        case 23: {
          const V whole = b.convert(b.convert(x, DType::i32), DType::f16);
          values.push_back(b.convert(whole, DType::f32));
          break;
        }
        default: values.push_back(b.add(x, zero)); break;
      }
    }
  }

  static V wider(Builder& b, V x, V zero) {
    return b.add(b.convert(x, DType::f64), b.convert(zero, DType::f64));
  }
  std::vector<std::uint8_t> table() {
    std::vector<std::uint8_t> lanes(kWarpWidth);
    for (std::uint8_t& lane : lanes) lane = static_cast<std::uint8_t>(below(2 * kWarpWidth));
    return lanes;
  }
  void branch(Builder& b, std::vector<V>& values, V condition) {
    if (depth_ > 1) return;
    ++depth_;
    const auto body = [&] {
      std::vector<V> inside = values;
      grow(b, inside, 4);
      return Builder::Values{inside.back(), any(inside)};
    };
    const Builder::Values results = b.branch(condition, body, body);
    --depth_;
    values.insert(values.end(), results.begin(), results.end());
  }
  /// A loop that hands its values on crosswise, by sums which may go.
  void turn(Builder& b, std::vector<V>& values) {
    if (depth_ > 1) return;
    ++depth_;
    const V zero = values[0];
    const Builder::Values start{any(values), any(values), any(values)};
    const Builder::Values results =
        b.loop(b.i64(0), b.i64(below(4)), b.i64(1), start, [&](V, const Builder::Values& carried) {
          std::vector<V> inside = values;
          inside.insert(inside.end(), carried.begin(), carried.end());
          grow(b, inside, 5);
          return Builder::Values{b.add(carried[1], zero), b.add(zero, carried[0]), any(inside)};
        });
    --depth_;
    values.insert(values.end(), results.begin(), results.end());
  }
  void through_memory(Builder& b, std::vector<V>& values, V x) {
    if (depth_ > 0) return;
    b.barrier();
    b.shared_store(0, {b.i64(0)}, x);
    b.barrier();
    const V mask = b.lt(b.lane(), b.i32(below(kWarpWidth + 1)));
    values.push_back(b.shared_load(0, {b.i64(0)}, 1, mask));
  }

  std::mt19937_64 random_;
  int depth_ = 0;  ///< of branches and loops inside each other
  Program program_ = one_warp();
};

std::vector<std::uint32_t> run(const Program& program, std::uint64_t seed) {
  constexpr float kTiny = 1e-30F, kInf = std::numeric_limits<float>::infinity();
  constexpr std::array kKinds{0.0F,
                              -0.0F,
                              1.0F,
                              -1.0F,
                              kTiny,
                              -kTiny,
                              3.5F,
                              kInf,
                              -kInf,
                              std::numeric_limits<float>::denorm_min(),
                              -std::numeric_limits<float>::denorm_min(),
                              std::numeric_limits<float>::quiet_NaN()};
  alignas(16) std::array<float, std::size_t{kLoads} * kWarpWidth> x{};
  alignas(16) std::array<float, std::size_t{kStores} * kWarpWidth> y{};
  std::mt19937_64 random(seed);
  for (float& value : x)
    value = kKinds[std::uniform_int_distribution<std::size_t>(0, kKinds.size() - 1)(random)];
  const std::array<InterpBuffer, 2> buffers{
      InterpBuffer{x.data(), static_cast<std::int64_t>(x.size())},
      InterpBuffer{y.data(), static_cast<std::int64_t>(y.size())}};
  interpret(program, buffers, {});
  std::vector<std::uint32_t> bits;
  for (const float value : y)
    bits.push_back(std::isnan(value) ? 0x7fffffff : std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST(DropZeros, ChangesNoBitOfRandomPrograms) {
  constexpr std::uint64_t kSeeds = 400;
  std::size_t dropped = 0, minus_zeros = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Program program = RandomProgram(seed).program();
    eliminate_dead(program);
    verify(program);
    const std::vector<std::uint32_t> expected = run(program, seed);
    const std::size_t before = additions(program);
    drop_zeros(program);
    eliminate_dead(program);
    verify(program);
    dropped += before - additions(program);
    minus_zeros +=
        static_cast<std::size_t>(std::count(expected.begin(), expected.end(), 0x80000000));
    ASSERT_EQ(run(program, seed), expected) << "seed " << seed << "\n" << print(program);
  }
  EXPECT_GT(dropped, kSeeds / 4);
  EXPECT_GT(minus_zeros, kSeeds);  // which a sum taken for another one would lose
}

}  // namespace
}  // namespace chainfold::test
