// What compiled code makes of operations that some lanes keep alone: the same values, whatever the
// lanes, the type and the host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/tests/support/on_cpu.hpp"
#include "chainfold/tests/support/same_bits.hpp"

namespace chainfold::runtime {
namespace {

/// `lanes` sources of a shuffle of two vectors: lane l of the second where a bit is set, else of
/// the first; of some it does not matter.
std::string sources(const std::vector<bool>& second, const std::vector<bool>& open = {}) {
  std::string text;
  for (std::size_t l = 0; l < second.size(); ++l) {
    const std::size_t source = l + (second[l] ? second.size() : 0);
    const bool any = !open.empty() && open[l];
    text += fmt::format("{}i32 {}", l == 0 ? "" : ", ", any ? "poison" : std::to_string(source));
  }
  return text;
}

/// Three choices of lanes: of the operation and its left side, of its right side and the operation
/// again, and of two operations. The arguments: a, b, and the results.
std::string kernel(const std::string& element, std::string_view first, std::string_view other,
                   std::size_t lanes, const std::string (&mask)[3]) {
  const std::string type = fmt::format("<{} x {}>", lanes, element);
  std::string text = "define void @f(i64 %begin, i64 %end, ptr %args) {\n";
  for (const char* name : {"a", "b", "x", "y", "z"}) {
    text += fmt::format(
        "  %{0}.slot = getelementptr i64, ptr %args, i64 {1}\n"
        "  %{0}.at = load ptr, ptr %{0}.slot\n",
        name, name[0] <= 'b' ? name[0] - 'a' : name[0] - 'x' + 2);
  }
  text += fmt::format(
      "  %a = load {0}, ptr %a.at, align 4\n  %b = load {0}, ptr %b.at, align 4\n"
      "  %o = {1} {0} %a, %b\n  %p = {2} {0} %b, %a\n",
      type, first, other);
  const char* sides[3][2] = {{"a", "o"}, {"o", "b"}, {"o", "p"}};
  const char* outs[3] = {"x", "y", "z"};
  for (int i = 0; i < 3; ++i) {
    text += fmt::format(
        "  %{0} = shufflevector {1} %{2}, {1} %{3}, <{4} x i32> <{5}>\n"
        "  store {1} %{0}, ptr %{0}.at, align 4\n",
        outs[i], type, sides[i][0], sides[i][1], lanes, mask[i]);
  }
  return text + "  ret void\n}\n";
}

template <class T>
T value(std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T kSpecial[] = {T(0),
                              -T(0),
                              std::numeric_limits<T>::infinity(),
                              -std::numeric_limits<T>::infinity(),
                              std::numeric_limits<T>::denorm_min(),
                              -std::numeric_limits<T>::min(),
                              std::numeric_limits<T>::max(),
                              std::numeric_limits<T>::quiet_NaN()};
    if (random() % 3 == 0) return kSpecial[random() % std::size(kSpecial)];
    return std::ldexp(static_cast<T>(random()) - T(9e18), static_cast<int>(random() % 40) - 60);
  } else {
    return static_cast<T>(random());
  }
}

template <class T, class First, class Other>
void expect_choices(const std::string& element, std::string_view first, std::string_view other,
                    First apply_first, Other apply_other) {
  std::mt19937_64 random(std::hash<std::string>()(element + std::string(first)));
  // Of one register and several, of less than one, and of no power of two.
  for (const std::size_t lanes : {4, 8, 16, 24, 32, 64}) {
    std::vector<bool> taken[3], open(lanes, false);
    for (auto& lane : taken) lane.resize(lanes);
    for (std::size_t l = 0; l < lanes; ++l) {
      for (auto& lane : taken) lane[l] = random() % 2 == 0;
      // Registers that all take or none does, and the patterns of scans.
      if (l < lanes / 2) taken[1][l] = lanes % 16 == 0;
      if (lanes == 32) taken[0][l] = (l & 4) != 0;
      open[l] = random() % 4 == 0;
    }
    const std::string masks[3] = {sources(taken[0]), sources(taken[1]), sources(taken[2], open)};
    const auto module = CpuModule::compile(kernel(element, first, other, lanes, masks), {"f"});
    for (int round = 0; round < 8; ++round) {
      std::vector<T> a(lanes), b(lanes), results[3];
      for (auto& result : results) result.resize(lanes);
      for (std::size_t l = 0; l < lanes; ++l) {
        a[l] = value<T>(random);
        b[l] = value<T>(random);
      }
      std::vector<std::uint64_t> args;
      for (const T* at :
           {static_cast<const T*>(a.data()), static_cast<const T*>(b.data()),
            static_cast<const T*>(results[0].data()), static_cast<const T*>(results[1].data()),
            static_cast<const T*>(results[2].data())})
        args.push_back(reinterpret_cast<std::uintptr_t>(at));
      module->run(0, 1, 1, args.data());
      for (std::size_t l = 0; l < lanes; ++l) {
        const std::string where = fmt::format("{} {}, lane {} of {}: ", first, element, l, lanes);
        const T o = apply_first(a[l], b[l]), p = apply_other(b[l], a[l]);
        test::expect_same(results[0][l], taken[0][l] ? o : a[l], where);
        test::expect_same(results[1][l], taken[1][l] ? b[l] : o, where);
        if (!open[l]) test::expect_same(results[2][l], taken[2][l] ? p : o, where);
      }
    }
  }
}

class LaneChoices : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

template <class T>
void expect_choices_of_floats(const std::string& element) {
  const auto sum = [](T a, T b) { return a + b; };
  const auto product = [](T a, T b) { return a * b; };
  const auto difference = [](T a, T b) { return a - b; };
  expect_choices<T>(element, "fadd", "fmul", sum, product);
  expect_choices<T>(element, "fmul", "fadd", product, sum);
  expect_choices<T>(element, "fsub", "fadd", difference, sum);
}

template <class T>
void expect_choices_of_integers(const std::string& element) {
  const auto sum = [](T a, T b) { return static_cast<T>(a + b); };
  expect_choices<T>(element, "add", "xor", sum, [](T a, T b) { return static_cast<T>(a ^ b); });
  expect_choices<T>(
      element, "and", "or", [](T a, T b) { return static_cast<T>(a & b); },
      [](T a, T b) { return static_cast<T>(a | b); });
}

TEST_F(LaneChoices, OfFloats) {
  expect_choices_of_floats<float>("float");
  expect_choices_of_floats<double>("double");
}

/// Instructions of 512 bits in the machine code that add, or multiply and add, in some lanes alone.
int masked_sums(const std::string& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(code[i]); };
  int count = 0;
  for (std::size_t i = 0; i + 4 < code.size(); ++i) {
    const unsigned opcode = byte(i + 4);
    const bool sum = opcode == 0x58 || opcode == 0x98 || opcode == 0xa8 || opcode == 0xb8;
    if (byte(i) == 0x62 && (byte(i + 3) & 0x60) == 0x40 && (byte(i + 3) & 7) != 0 && sum) ++count;
  }
  return count;
}

// The steps of a scan in a loop, whose masks are there before it: values of lanes, and one
// instruction a register and step.
TEST_F(LaneChoices, InLoopsTakeOneInstruction) {
  if (cpu_plugin().vector_bits < 512) GTEST_SKIP() << "no masks";
  constexpr int kLanes = 32, kSteps = 3;
  std::string text =
      "define void @f(i64 %begin, i64 %end, ptr %args) {\n"
      "  %slot = getelementptr i64, ptr %args, i64 0\n  %at = load ptr, ptr %slot\n"
      "  br label %loop\nloop:\n"
      "  %i = phi i64 [ %begin, %0 ], [ %next, %loop ]\n"
      "  %row = getelementptr <32 x float>, ptr %at, i64 %i\n"
      "  %v0 = load <32 x float>, ptr %row, align 4\n";
  for (int step = 0; step < kSteps; ++step) {
    std::string before, taken;
    for (int l = 0; l < kLanes; ++l) {
      const int half = 1 << step;
      before += fmt::format("{}i32 {}", l == 0 ? "" : ", ", (l & ~(2 * half - 1)) + half - 1);
      taken += fmt::format("{}i32 {}", l == 0 ? "" : ", ", (l & half) != 0 ? l + kLanes : l);
    }
    text += fmt::format(
        "  %b{0} = shufflevector <32 x float> %v{0}, <32 x float> poison, <32 x i32> <{2}>\n"
        "  %s{0} = fadd <32 x float> %b{0}, %v{0}\n"
        "  %v{1} = shufflevector <32 x float> %v{0}, <32 x float> %s{0}, <32 x i32> <{3}>\n",
        step, step + 1, before, taken);
  }
  text +=
      "  store <32 x float> %v3, ptr %row, align 4\n"
      "  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, %end\n"
      "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}\n";
  EXPECT_EQ(masked_sums(compile_cpu_object(text).bytes), 2 * kSteps);
  std::vector<float> values(5 * kLanes);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 31);
  std::vector<float> expected = values;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (i % (1U << kSteps) != 0) expected[i] += expected[i - 1];
  }
  const std::uint64_t args[] = {reinterpret_cast<std::uintptr_t>(values.data())};
  CpuModule::compile(text, {"f"})->run(0, 5, 5, args);
  EXPECT_EQ(values, expected);
}

TEST_F(LaneChoices, OfIntegers) {
  expect_choices_of_integers<std::uint32_t>("i32");
  expect_choices_of_integers<std::uint64_t>("i64");
  expect_choices_of_integers<std::uint16_t>("i16");
}

}  // namespace
}  // namespace chainfold::runtime
