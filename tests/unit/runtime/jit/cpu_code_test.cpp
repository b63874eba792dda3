// What the CPU plugin does to optimised code: additions by other units, and another order of a
// block's instructions. The same values on any host, but for which of two NaNs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/tests/support/on_cpu.hpp"
#include "chainfold/tests/support/same_bits.hpp"

namespace chainfold::runtime {
namespace {

constexpr std::size_t kLanes = 32;

class CpuCode : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

/// A loop that loads `loads` rows of 32 elements, all before the first is used, folds them by
/// levels of a tree (additions, and subtractions every third time), and keeps the sum of all
/// batches in a row behind the input.
std::string tree_kernel(std::string_view element, std::size_t loads) {
  const std::string type = fmt::format("<{} x {}>", kLanes, element);
  std::string text = fmt::format(
      "define void @f(i64 %begin, i64 %end, ptr %args) {{\n"
      "  %in = load ptr, ptr %args\n"
      "  %slot = getelementptr i64, ptr %args, i64 1\n  %out = load ptr, ptr %slot\n"
      "  br label %loop\nloop:\n"
      "  %i = phi i64 [ %begin, %0 ], [ %next, %loop ]\n"
      "  %sum = phi {0} [ zeroinitializer, %0 ], [ %all, %loop ]\n"
      "  %first = mul i64 %i, {1}\n",
      type, loads);
  std::vector<std::string> level;
  for (std::size_t l = 0; l < loads; ++l) {
    text += fmt::format(
        "  %at{0} = add i64 %first, {0}\n  %row{0} = getelementptr {1}, ptr %in, i64 %at{0}\n"
        "  %v{0} = load {1}, ptr %row{0}, align 4\n  fence syncscope(\"singlethread\") seq_cst\n",
        l, type);
    level.push_back(fmt::format("%v{}", l));
  }
  for (int number = 0; level.size() > 1;) {
    std::vector<std::string> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2, ++number) {
      text += fmt::format("  %t{} = {} {} {}, {}\n", number, number % 3 == 2 ? "fsub" : "fadd",
                          type, level[i], level[i + 1]);
      next.push_back(fmt::format("%t{}", number));
    }
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = std::move(next);
  }
  return text + fmt::format(
                    "  %all = fadd {0} %sum, {1}\n  store {0} %all, ptr %out, align 4\n"
                    "  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, %end\n"
                    "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}}\n",
                    type, level.front());
}

template <class T>
T fold_tree(std::vector<T> level) {
  for (int number = 0; level.size() > 1;) {
    std::vector<T> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2, ++number)
      next.push_back(number % 3 == 2 ? level[i] - level[i + 1] : level[i] + level[i + 1]);
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = std::move(next);
  }
  return level.front();
}

template <class T>
T value(std::mt19937_64& random) {
  constexpr T kSpecial[] = {T(0),
                            -T(0),
                            std::numeric_limits<T>::infinity(),
                            std::numeric_limits<T>::denorm_min(),
                            -std::numeric_limits<T>::min(),
                            std::numeric_limits<T>::quiet_NaN()};
  if (random() % 400 == 0) return kSpecial[random() % std::size(kSpecial)];
  return std::ldexp(static_cast<T>(random()) - T(9e18), static_cast<int>(random() % 40) - 60);
}

template <class T>
void expect_same_values(std::string_view element) {
  std::mt19937_64 random(std::hash<std::string_view>()(element));
  // That fit the registers, and that are far from it.
  for (const std::size_t loads : {1, 2, 3, 8, 16, 33, 64, 100}) {
    constexpr std::size_t kBatches = 3;
    std::vector<T> in(kBatches * loads * kLanes), out(kLanes, T(7));
    for (T& x : in) x = value<T>(random);
    const std::uint64_t args[] = {reinterpret_cast<std::uintptr_t>(in.data()),
                                  reinterpret_cast<std::uintptr_t>(out.data())};
    CpuModule::compile(tree_kernel(element, loads), {"f"})->run(0, kBatches, kBatches, args);
    for (std::size_t l = 0; l < kLanes; ++l) {
      T sum = 0;
      for (std::size_t batch = 0; batch < kBatches; ++batch) {
        std::vector<T> rows;
        for (std::size_t r = 0; r < loads; ++r)
          rows.push_back(in[(batch * loads + r) * kLanes + l]);
        sum += fold_tree(std::move(rows));
      }
      test::expect_same(out[l], sum, fmt::format("{} loads, lane {}: ", loads, l));
    }
  }
}

TEST_F(CpuCode, KeepsTheValuesOfFloats) { expect_same_values<float>("float"); }
TEST_F(CpuCode, KeepsTheValuesOfDoubles) { expect_same_values<double>("double"); }

/// The machine code of an object file (ELF, 64 bits).
std::string code_of(const std::string& object) {
  const auto field = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, object.data() + at, size);
    return static_cast<std::size_t>(value);
  };
  const std::size_t sections = field(0x28, 8), size = field(0x3a, 2), count = field(0x3c, 2);
  std::string code;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t section = sections + i * size;
    constexpr std::size_t kExecutable = 4;
    if ((field(section + 8, 8) & kExecutable) != 0)
      code += object.substr(field(section + 0x18, 8), field(section + 0x20, 8));
  }
  return code;
}

/// Instructions of 512 bits with one of the opcodes; `on_stack`: with an operand there.
int count_of(const std::string& object, std::string_view opcodes, bool on_stack = false) {
  const std::string code = code_of(object);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(code[i]); };
  int count = 0;
  for (std::size_t i = 0; i + 7 < code.size(); ++i) {
    const bool wide = byte(i) == 0x62 && (byte(i + 3) & 0x60) == 0x40;
    if (!wide || opcodes.find(code[i + 4]) == std::string_view::npos) continue;
    // ModRM asks for a SIB byte, which has the stack pointer and no index.
    const bool stack = (byte(i + 5) & 7) == 4 && byte(i + 5) < 0xc0 && byte(i + 6) == 0x24;
    if (!on_stack || stack) ++count;
  }
  return count;
}

// 64 loaded rows of 128 bytes are four times what the registers hold.
TEST_F(CpuCode, LoadsDoNotWaitOnTheStack) {
  if (cpu_plugin().vector_bits < 512) GTEST_SKIP() << "no registers of 512 bits";
  constexpr std::string_view kMoves("\x10\x11\x28\x29\x6f\x7f", 6);
  EXPECT_EQ(count_of(compile_cpu_object(tree_kernel("float", 64)).bytes, kMoves, true), 0);
}

// 4096 bytes, a word of four a lane: as many registers as loads.
TEST_F(CpuCode, SumsOfBytesAreProductsWithOnes) {
  if (cpu_plugin().vector_bits < 512) GTEST_SKIP() << "no registers of 512 bits";
  const auto sum = over(segments(4096), cast<std::int8_t>(chainfold::sum(input<std::int8_t>("x"))));
  const codegen::Target target = codegen::cpu_target(1);
  const auto compiled = codegen::compile_graph(sum.graph(), target, {.segment = 4096});
  const std::string code = compile_cpu_object(codegen::emit(compiled.program, target).text).bytes;
  const std::string_view features = cpu_plugin().host_features;
  const bool at_once = features.find("+avx512vnni") != std::string_view::npos;
  const int loads = static_cast<int>(compiled.plan.depth * codegen::kWarpWidth * 4 / 64);
  EXPECT_GE(count_of(code, at_once ? "\x50" : "\x04"), loads);
  EXPECT_EQ(count_of(code, "\x21"), 0) << "bytes are extended to 32 bits";
}

/// Every upper half of a float's word, with the lower ones that decide how it is rounded.
std::vector<float> floats_of_all_halves() {
  std::mt19937 random(7);
  std::vector<float> floats;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower :
         {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU, static_cast<unsigned>(random() & 0xffff)}) {
      const std::uint32_t bits = upper << 16 | lower;
      float x = 0;
      std::memcpy(&x, &bits, sizeof x);
      floats.push_back(x);
    }
  }
  return floats;
}

/// `scan` of segments of one element, rounded to bf16; of sums -0.0 is +0.0.
template <class Scan>
void expect_rounded(const Scan& scan, bool sums) {
  const std::vector<float> floats = floats_of_all_halves();
  const Kernel kernel =
      compile(over(segments(1), cast<bf16>(scan)), {.target = chainfold::target("cpu")});
  const auto rounded = std::get<0>(kernel.run<bf16>({{"x", floats}}));
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const bool is_nan = std::isnan(static_cast<float>(rounded[i]));
    ASSERT_EQ(is_nan, std::isnan(floats[i])) << i;
    if (is_nan) continue;
    ASSERT_EQ(rounded[i].bits, bf16(sums ? floats[i] + 0.0F : floats[i]).bits) << i;
  }
}

// Results of arithmetic, which are rounded by an instruction of their own where the host has one,
// and values as they were loaded.
TEST_F(CpuCode, RoundsEveryFloatToBf16) {
  const auto x = input<float>("x");
  expect_rounded(inclusive_sum(x), true);
  expect_rounded(inclusive(max(x)), false);
}

TEST_F(CpuCode, RoundsSumsByProductsOfBytes) {
  if (cpu_plugin().vector_bits < 512) GTEST_SKIP() << "no registers of 512 bits";
  const std::string_view features = cpu_plugin().host_features;
  if (features.find("+avx512vnni") == std::string_view::npos) GTEST_SKIP() << "no AVX-512 VNNI";
  const auto sum = inclusive_sum(cast<float>(input<bf16>("x")));
  const codegen::Target target = codegen::cpu_target(1);
  const auto compiled = codegen::compile_graph(over(segments(4096), cast<bf16>(sum)).graph(),
                                               target, {.segment = 4096});
  const std::string code = compile_cpu_object(codegen::emit(compiled.program, target).text).bytes;
  EXPECT_EQ(compiled.plan.scan.range_width, 2);
  // A batch's elements, 16 a register.
  EXPECT_GE(count_of(code, "\x51"), compiled.plan.scan.range_depth * codegen::kWarpWidth / 16);
}

// Units of 256 bits load half registers, where little else is done: of a segment of eight lanes are
// exchanged, and a maximum does more to an element.
TEST_F(CpuCode, SumsTakeHalfRegistersWhereUnitsAreThatWide) {
  if (cpu_plugin().vector_bits < 512) GTEST_SKIP() << "no registers of 512 bits";
  const codegen::Target target = codegen::cpu_target(1);
  const auto wide_loads = [&](const Computation& fold, std::int64_t segment) {
    const auto compiled = codegen::compile_graph(fold.graph(), target, {.segment = segment});
    constexpr std::string_view kLoads("\x10\x28\x6f\x58\x5f", 5);  // moves, sums and maxima
    return count_of(compile_cpu_object(codegen::emit(compiled.program, target).text).bytes, kLoads);
  };
  const auto x = input<float>("x");
  const bool half = std::string_view(cpu_plugin().host_cpu) == "znver4";
  EXPECT_EQ(wide_loads(over(segments(1024), sum(x)), 1024) == 0, half);
  EXPECT_EQ(wide_loads(over(segments(100), sum(x)), 100) == 0, half);
  EXPECT_GT(wide_loads(over(segments(8), sum(x)), 8), 0);
  EXPECT_GT(wide_loads(over(segments(1024), max(x)), 1024), 0);
}

// A segment that ends within a word costs a word in part, also where masks are of words, and not a
// load for each element.
TEST_F(CpuCode, MasksOfElementsAreShort) {
  const codegen::Target target = codegen::cpu_target(1);
  const auto size_of = [&](std::int64_t segment) {
    const auto sum =
        over(segments(segment), cast<std::uint8_t>(chainfold::sum(input<std::uint8_t>("x"))));
    const auto compiled = codegen::compile_graph(sum.graph(), target, {.segment = segment});
    return code_of(compile_cpu_object(codegen::emit(compiled.program, target).text).bytes).size();
  };
  EXPECT_LT(size_of(1001), 2 * size_of(1000));
  EXPECT_LT(size_of(39), 3 * size_of(40));
}

TEST_F(CpuCode, AdditionsAreSpreadWhereOtherUnitsCanAdd) {
  if (cpu_plugin().vector_bits < 512) GTEST_SKIP() << "no registers of 512 bits";
  constexpr std::string_view kSums("\x58\x5c", 2);
  constexpr std::string_view kProducts("\x98\xa8\xb8\x9a\xaa\xba\x9c\xac\xbc", 9);
  const std::string code = compile_cpu_object(tree_kernel("float", 16)).bytes;
  const int sums = count_of(code, kSums), products = count_of(code, kProducts);
  // 15 of the tree and one of the batches, of two registers each.
  EXPECT_EQ(sums + products, 32);
  const bool apart = std::string_view(cpu_plugin().host_cpu).starts_with("znver");
  EXPECT_EQ(products, apart ? 16 : 0);
}

}  // namespace
}  // namespace chainfold::runtime
