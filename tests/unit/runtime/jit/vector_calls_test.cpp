// exp, log and pow of whole vectors on the CPU: the C library's functions of vectors, and what they
// give for the values that those leave to slow functions of one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::runtime {
namespace {

class VectorCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

/// out[i] = op(x[i], y[i]) for rows of `lanes` elements.
std::string kernel(std::string_view op, bool is_double, int lanes) {
  const std::string type = fmt::format("<{} x {}>", lanes, is_double ? "double" : "float");
  const std::string name = fmt::format("@llvm.{}.v{}f{}", op, lanes, is_double ? 64 : 32);
  const bool two = op == "pow";
  return fmt::format(
      "declare {0} {1}({0}{2})\n"
      "define void @f(i64 %begin, i64 %end, ptr %args) {{\n"
      "  %x = load ptr, ptr %args\n"
      "  %ys = getelementptr i64, ptr %args, i64 1\n  %y = load ptr, ptr %ys\n"
      "  %outs = getelementptr i64, ptr %args, i64 2\n  %out = load ptr, ptr %outs\n"
      "  br label %loop\nloop:\n"
      "  %i = phi i64 [ %begin, %0 ], [ %next, %loop ]\n"
      "  %xp = getelementptr {0}, ptr %x, i64 %i\n  %xv = load {0}, ptr %xp, align 4\n"
      "  %yp = getelementptr {0}, ptr %y, i64 %i\n  %yv = load {0}, ptr %yp, align 4\n"
      "  %v = call {0} {1}({0} %xv{3})\n"
      "  %op = getelementptr {0}, ptr %out, i64 %i\n  store {0} %v, ptr %op, align 4\n"
      "  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, %end\n"
      "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}}\n",
      type, name, two ? ", " + type : "", two ? fmt::format(", {} %yv", type) : "");
}

template <class T>
T nearest(std::string_view op, T x, T y) {
  if (op == "exp") return static_cast<T>(std::exp(static_cast<long double>(x)));
  if (op == "log") return static_cast<T>(std::log(static_cast<long double>(x)));
  return static_cast<T>(std::pow(static_cast<long double>(x), static_cast<long double>(y)));
}

template <class T>
void expect_close(std::string_view op, int lanes) {
  constexpr bool kDouble = sizeof(T) == 8;
  constexpr std::size_t kElements = 64 * 500;
  using Limits = std::numeric_limits<T>;
  const T inf = Limits::infinity();
  const T special[] = {T(0),      -T(0),     inf,           -inf,          Limits::quiet_NaN(),
                       T(1),      T(-1),     Limits::min(), Limits::max(), Limits::lowest(),
                       T(-103.9), T(-104.1), T(-745.1),     T(-746.1),     Limits::denorm_min(),
                       T(88.72),  T(709.78), T(-87.5),      T(-708.5),     T(-1e30)};
  std::mt19937_64 random(static_cast<std::uint64_t>(lanes));
  std::uniform_real_distribution<double> wide(kDouble ? -750 : -110, 100), near(-2, 2);
  std::vector<T> x(kElements), y(kElements), out(kElements, T(7));
  for (std::size_t i = 0; i < kElements; ++i) {
    // Rows of numbers alone, with some that are special, and of these alone.
    const std::size_t kind = i / static_cast<std::size_t>(lanes) % 4;
    const bool is_special = kind == 3 || (kind == 2 && random() % 8 == 0);
    x[i] = is_special ? special[random() % std::size(special)]
                      : static_cast<T>(random() % 2 == 0 ? wide(random) : near(random));
    y[i] = kind == 3 ? special[random() % std::size(special)] : static_cast<T>(near(random) * 3);
    if (op != "exp" && !is_special) x[i] = std::fabs(x[i]);
  }
  const std::string text = kernel(op, kDouble, lanes);
  const std::uint64_t args[] = {reinterpret_cast<std::uintptr_t>(x.data()),
                                reinterpret_cast<std::uintptr_t>(y.data()),
                                reinterpret_cast<std::uintptr_t>(out.data())};
  const auto rows = static_cast<std::int64_t>(kElements) / lanes;
  CpuModule::compile(text, {"f"})->run(0, rows, rows, args);
  const DType type = kDouble ? DType::f64 : DType::f32;
  for (std::size_t i = 0; i < kElements; ++i) {
    const T right = nearest(op, x[i], y[i]);
    ASSERT_TRUE(test::agree(type, codegen::bits_of_double(type, static_cast<double>(out[i])),
                            codegen::bits_of_double(type, static_cast<double>(right)),
                            test::kTranscendentalUlps))
        << op << " of " << x[i] << " (and " << y[i] << "), " << lanes << " lanes: " << out[i]
        << " instead of " << right;
  }
}

TEST_F(VectorCalls, AreClose) {
  for (const std::string_view op : {"exp", "log", "pow"}) {
    for (const int lanes : {1, 2, 4, 8, 16, 32, 64}) {
      expect_close<float>(op, lanes);
      expect_close<double>(op, lanes);
    }
  }
}

/// Where the library is there vectors of 16 bytes and more are its, by the host's registers, and
/// lanes whose values are known are kept from it.
TEST_F(VectorCalls, AreTheLibrarys) {
  const std::string_view features = cpu_plugin().host_features;
  if (!features.ends_with(",libmvec")) GTEST_SKIP() << "no functions of vectors";
  const int bits = cpu_plugin().vector_bits;
  const char registers = bits == 512 ? 'e' : bits == 256 ? 'd' : 'b';
  for (const std::string_view op : {"exp", "log", "pow"}) {
    const std::string_view operands = op == "pow" ? "vv" : "v";
    const std::string wide = compile_cpu_object(kernel(op, false, 32)).bytes;
    EXPECT_NE(wide.find(fmt::format("_ZGV{}N{}{}_{}f", registers, bits / 32, operands, op)),
              std::string::npos)
        << op;
    EXPECT_EQ(wide.find("guarded._ZGV") == std::string::npos, op == "pow") << op;
    const std::string four = compile_cpu_object(kernel(op, false, 4)).bytes;
    EXPECT_NE(four.find(fmt::format("_ZGVbN4{}_{}f", operands, op)), std::string::npos) << op;
    EXPECT_EQ(compile_cpu_object(kernel(op, false, 2)).bytes.find("_ZGV"), std::string::npos) << op;
  }
}

}  // namespace
}  // namespace chainfold::runtime
