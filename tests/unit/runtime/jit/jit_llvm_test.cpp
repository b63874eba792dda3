// The CPU plugin through libchainfold: compiling, running, and every way that can fail.
#include "chainfold/runtime/jit/llvm.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/tests/support/expect_error.hpp"

#if defined(CHAINFOLD_TEST_FINDS_LEAKS)
#include <sanitizer/lsan_interface.h>
#endif

namespace chainfold::runtime {
namespace {

/// out[block] = sum of x[32 * block .. 32 * block + 31], for the blocks of the range.
constexpr const char* kSegmentSums = R"(
define void @segment_sums(i64 %begin, i64 %end, ptr %args) {
entry:
  %x = load ptr, ptr %args
  %out.slot = getelementptr i64, ptr %args, i64 1
  %out = load ptr, ptr %out.slot
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %body, label %done
body:
  %block = phi i64 [ %begin, %entry ], [ %next, %body ]
  %offset = shl i64 %block, 5
  %from = getelementptr float, ptr %x, i64 %offset
  %v = load <32 x float>, ptr %from, align 4
  %low = shufflevector <32 x float> %v, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %high = shufflevector <32 x float> %v, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %half = fadd <16 x float> %low, %high
  %sum = call float @llvm.vector.reduce.fadd.v16f32(float 0.0, <16 x float> %half)
  %to = getelementptr float, ptr %out, i64 %block
  store float %sum, ptr %to
  %next = add i64 %block, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %body, label %done
done:
  ret void
}
declare float @llvm.vector.reduce.fadd.v16f32(float, <16 x float>)
)";

/// A function @f that stores the value %v of `type`, which `body` defines, where the first slot
/// points.
std::string store_value(const std::string& type, const std::string& body) {
  return fmt::format(
      "define void @f(i64 %begin, i64 %end, ptr %args) {{\n  %p = load ptr, ptr %args\n{}\n  store "
      "{} "
      "%v, ptr %p\n  ret void\n}}\n",
      body, type);
}

std::uint64_t slot(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

JitError compile_error(const std::string& ir, const std::string& symbol) {
  try {
    CpuModule::compile(ir, {symbol});
  } catch (const JitError& error) {
    return error;
  }
  ADD_FAILURE() << "LLVM accepted\n" << ir;
  return {"", "", "", ""};
}

/// Every test but those of the search needs the plugin; a build without it has none to test.
class JitLlvm : public testing::Test {
 protected:
  void SetUp() override {
#if defined(CHAINFOLD_TEST_CPU)
    ASSERT_NO_THROW(cpu_plugin());
#else
    GTEST_SKIP() << "built without the CPU plugin";
#endif
  }
};
class JitLlvmConcurrent : public JitLlvm {};

void expect_sums_of_one_block(const CpuModule& module) {
  const std::vector<float> x(32, 2.0F);
  float sum = 0;
  const std::uint64_t args[] = {slot(x.data()), slot(&sum)};
  module.run(0, 1, 1, args);
  EXPECT_EQ(sum, 64.0F);
}

TEST_F(JitLlvm, DescribesTheHost) {
  const chainfold_cpu_plugin& plugin = cpu_plugin();
  EXPECT_EQ(plugin.abi_version, CHAINFOLD_CPU_PLUGIN_ABI_VERSION);
  EXPECT_TRUE(std::string(plugin.llvm_version).starts_with("19.1")) << plugin.llvm_version;
  EXPECT_STRNE(plugin.host_cpu, "");
  EXPECT_TRUE(plugin.host_features[0] == '+' || plugin.host_features[0] == '-');
  EXPECT_EQ(std::string_view(plugin.host_features).find("+avx512fp16"), std::string_view::npos);
  EXPECT_TRUE(plugin.vector_bits == 128 || plugin.vector_bits == 256 || plugin.vector_bits == 512);
  EXPECT_GE(plugin.threads, 1);
  if (const char* most = std::getenv("CHAINFOLD_VECTOR_BITS"); most != nullptr && *most != '\0') {
    EXPECT_LE(plugin.vector_bits, std::atoi(most));
    const bool has_wide =
        std::string_view(plugin.host_features).find("+avx512") != std::string::npos;
    EXPECT_FALSE(has_wide && std::atoi(most) < 512);
  }
}

TEST_F(JitLlvm, RunsAVectorKernelOverBlocksInParallel) {
  const auto module = CpuModule::compile(kSegmentSums, {"segment_sums"});
  EXPECT_GT(module->compile_ms(), 0);
  RecordProperty("compile_ms", fmt::format("{:.1f}", module->compile_ms()));
  for (const std::int64_t blocks : {1, 7, 1000, 65537}) {
    std::vector<float> x(static_cast<std::size_t>(blocks) * 32);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) - 13.0F;
    for (const std::int64_t grain : {std::int64_t{0}, std::int64_t{1}, std::int64_t{64}, blocks + 1,
                                     std::numeric_limits<std::int64_t>::max()}) {
      std::vector<float> sums(static_cast<std::size_t>(blocks), -1e9F);
      const std::uint64_t args[] = {slot(x.data()), slot(sums.data())};
      module->run(0, blocks, grain, args);
      for (std::size_t b = 0; b < sums.size(); ++b) {
        // Small integers: exact in any order.
        const float expected = std::accumulate(&x[32 * b], &x[32 * b] + 32, 0.0F);
        ASSERT_EQ(sums[b], expected) << "block " << b << " of " << blocks << ", grain " << grain;
      }
    }
  }
}

TEST_F(JitLlvm, RunsNothingForNoBlocks) {
  const auto module = CpuModule::compile(kSegmentSums, {"segment_sums"});
  module->run(0, 0, 1, nullptr);  // would read through null
  module->run(0, -5, 1, nullptr);
  EXPECT_THROW((void)module->function(1), InternalError);
}

std::atomic<std::int64_t> g_shortest;
std::atomic<std::int64_t> g_covered;
void note_range(std::int64_t begin, std::int64_t end, const std::uint64_t*) {
  g_covered += end - begin;
  if (begin == 0) return;
  std::int64_t seen = g_shortest;
  while (end - begin < seen && !g_shortest.compare_exchange_weak(seen, end - begin)) {
  }
}

TEST_F(JitLlvm, RangesBehindTheFirstAreAtLeastTheGrain) {
  for (const std::int64_t blocks : {63, 64, 127, 128, 129, 1000, 100003}) {
    g_shortest = std::numeric_limits<std::int64_t>::max();
    g_covered = 0;
    const chainfold_cpu_launch function = note_range;
    EXPECT_EQ(cpu_plugin().parallel_for(&function, blocks, 64, nullptr), 0);
    EXPECT_EQ(g_covered, blocks);
    EXPECT_GE(g_shortest, std::min<std::int64_t>(64, blocks)) << blocks;
  }
}

// Vectors of less than 16 bytes, lane by lane; longer ones: vector_calls_test.cpp.
TEST_F(JitLlvm, MathComesFromTheSystemLibrary) {
  const std::string body = R"(  %x.slot = getelementptr i64, ptr %args, i64 1
  %x.at = load ptr, ptr %x.slot
  %x = load <2 x float>, ptr %x.at, align 4
  %e = call <2 x float> @llvm.exp.v2f32(<2 x float> %x)
  %v = call <2 x float> @llvm.pow.v2f32(<2 x float> %e, <2 x float> %x))";
  const std::string declarations =
      "declare <2 x float> @llvm.exp.v2f32(<2 x float>)\n"
      "declare <2 x float> @llvm.pow.v2f32(<2 x float>, <2 x float>)\n";
  const auto module = CpuModule::compile(store_value("<2 x float>", body) + declarations, {"f"});
  const float x[4] = {0.5F, 1.0F, -2.0F, 3.5F};
  alignas(16) float y[4] = {};
  for (int i = 0; i < 4; i += 2) {
    const std::uint64_t args[] = {slot(y + i), slot(x + i)};
    module->run(0, 1, 1, args);
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], std::pow(std::exp(x[i]), x[i])) << i;
}

TEST_F(JitLlvm, HalvesAndWideIntegersNeedNoHostSupport) {
  // Without hardware for them these become calls into libgcc.
  const std::string body = R"(  %x.slot = getelementptr i64, ptr %args, i64 1
  %x = load i64, ptr %x.slot
  %wide = sext i64 %x to i128
  %square = mul i128 %wide, %wide
  %quotient = sdiv i128 %square, %wide
  %narrow = trunc i128 %quotient to i64
  %h = sitofp i64 %narrow to half
  %v = fpext half %h to float)";
  const auto module = CpuModule::compile(store_value("float", body), {"f"});
  float y = 0;
  const std::uint64_t args[] = {slot(&y), static_cast<std::uint64_t>(std::int64_t{-1234})};
  module->run(0, 1, 1, args);
  EXPECT_EQ(y, -1234.0F);
}

TEST_F(JitLlvm, NothingIsContracted) {
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 when fused and 0 when the product is rounded first.
  const std::string body = R"(  %a.slot = getelementptr i64, ptr %args, i64 1
  %bits = load i32, ptr %a.slot
  %a = bitcast i32 %bits to float
  %c.slot = getelementptr i64, ptr %args, i64 2
  %c.bits = load i32, ptr %c.slot
  %c = bitcast i32 %c.bits to float
  )";
  const float a = 1.0F + std::ldexp(1.0F, -12);
  const float c = -(1.0F + std::ldexp(1.0F, -11));
  const auto run = [&](const std::string& last, const std::string& declaration) {
    float y = -1;
    const std::uint64_t args[] = {slot(&y), std::bit_cast<std::uint32_t>(a),
                                  std::bit_cast<std::uint32_t>(c)};
    CpuModule::compile(store_value("float", body + last) + declaration, {"f"})->run(0, 1, 1, args);
    return y;
  };
  EXPECT_EQ(run("%m = fmul float %a, %a\n  %v = fadd float %m, %c", ""), 0.0F);
  EXPECT_EQ(run("%v = call float @llvm.fma.f32(float %a, float %a, float %c)",
                "declare float @llvm.fma.f32(float, float, float)\n"),
            std::ldexp(1.0F, -24));
}

#if defined(__x86_64__)
TEST_F(JitLlvm, SubnormalsSurviveACallerThatFlushesThem) {
  const std::string body = R"(  %x.slot = getelementptr i64, ptr %args, i64 1
  %bits = load i32, ptr %x.slot
  %x = bitcast i32 %bits to float
  %v = fmul float %x, 0.5)";
  const auto module = CpuModule::compile(store_value("float", body), {"f"});
  const float smallest_normal = std::numeric_limits<float>::min();
  float y = -1;
  const std::uint64_t args[] = {slot(&y), std::bit_cast<std::uint32_t>(smallest_normal)};
  const unsigned saved = _mm_getcsr();
  const unsigned flushing = saved | 0x8040U;  // flush to zero, denormals are zero
  _mm_setcsr(flushing);
  module->run(0, 1, 1, args);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(y), 0x00400000U);
  EXPECT_EQ(after & 0x8040U, 0x8040U) << "the caller's own mode must come back";
}
#endif

TEST_F(JitLlvm, ASyntaxErrorNamesItsLine) {
  const std::string ir =
      "define void @f(i64 %begin, i64 %end, ptr %args) {\n"
      "  %p = load ptr, ptr %args\n"
      "  %x = add float %begin, 1\n"
      "  ret void\n}\n";
  const JitError error = compile_error(ir, "f");
  EXPECT_EQ(error.code(), ErrorCode::jit_failed);
  EXPECT_EQ(error.line(), "   3 |   %x = add float %begin, 1");
  EXPECT_NE(error.log().find("'%begin' defined with type 'i64' but expected 'float'"),
            std::string::npos)
      << error.log();
  EXPECT_NE(std::string(error.what()).find(error.line()), std::string::npos) << error.what();
  EXPECT_EQ(error.source(), ir);
}

TEST_F(JitLlvm, AVerifierErrorNamesItsLine) {
  const JitError error = compile_error(
      "define void @f(i64 %begin, i64 %end, ptr %args) {\n"
      "  %late = add i64 %x, 1 ; uses what stands below\n"
      "  %x = add i64 %begin, 1\n"
      "  ret void\n}\n",
      "f");
  EXPECT_NE(error.log().find("Instruction does not dominate all uses"), std::string::npos)
      << error.log();
  EXPECT_EQ(error.line(), "   3 |   %x = add i64 %begin, 1");
}

TEST_F(JitLlvm, AnUndefinedFunctionIsNamed) {
  const JitError error = compile_error(
      "declare void @no_such_function()\n"
      "define void @f(i64 %begin, i64 %end, ptr %args) {\n"
      "  call void @no_such_function()\n  ret void\n}\n",
      "f");
  EXPECT_NE(error.log().find("no_such_function"), std::string::npos) << error.log();
}

TEST_F(JitLlvm, AMissingSymbolIsNamed) {
  const JitError error = compile_error(kSegmentSums, "another_name");
  EXPECT_NE(error.log().find("another_name"), std::string::npos) << error.log();
}

TEST_F(JitLlvm, AFatalErrorOfLlvmIsAnErrorToo) {
  for (int i = 0; i < 3; ++i) {
#if defined(CHAINFOLD_TEST_FINDS_LEAKS)
    const __lsan::ScopedDisabler given_up;  // what LLVM held when it gave up cannot be freed
#endif
    const JitError error =
        compile_error("declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n" +
                          store_value("i32", "  %v = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"),
                      "f");
    EXPECT_NE(error.log().find("Cannot select"), std::string::npos) << error.log();
  }
  expect_sums_of_one_block(*CpuModule::compile(kSegmentSums, {"segment_sums"}));
}

TEST_F(JitLlvm, AnErrorOfInlineAssemblyIsCollected) {
  const JitError error = compile_error(
      "define void @f(i64 %begin, i64 %end, ptr %args) {\n"
      "  call void asm sideeffect \"no_such_instruction\", \"\"()\n  ret void\n}\n",
      "f");
  EXPECT_NE(error.log().find("no_such_instruction"), std::string::npos) << error.log();
}

TEST_F(JitLlvm, EqualNamesInTwoModulesCoexist) {
  const auto constant = [](int value) {
    return CpuModule::compile(store_value("i32", fmt::format("  %v = add i32 {}, 0", value)),
                              {"f"});
  };
  const auto read = [](const CpuModule& module) {
    std::int32_t y = 0;
    const std::uint64_t args[] = {slot(&y)};
    module.run(0, 1, 1, args);
    return y;
  };
  auto one = constant(1);
  const auto two = constant(2);
  EXPECT_EQ(read(*one), 1);
  EXPECT_EQ(read(*two), 2);
  one.reset();
  EXPECT_EQ(read(*two), 2);
  EXPECT_EQ(read(*constant(3)), 3);
}

TEST_F(JitLlvm, SeveralSymbolsOfOneModuleInTheirOrder) {
  const std::string ir =
      "define void @a(i64 %begin, i64 %end, ptr %args) {\n  %p = load ptr, ptr %args\n"
      "  store i32 10, ptr %p\n  ret void\n}\n"
      "define void @b(i64 %begin, i64 %end, ptr %args) {\n  %p = load ptr, ptr %args\n"
      "  store i32 20, ptr %p\n  ret void\n}\n";
  const auto module = CpuModule::compile(ir, {"b", "a", "b"});
  const int expected[] = {20, 10, 20};
  for (std::size_t i = 0; i < 3; ++i) {
    std::int32_t y = 0;
    const std::uint64_t args[] = {slot(&y)};
    module->function(i)(0, 1, args);
    EXPECT_EQ(y, expected[i]) << i;
  }
}

TEST_F(JitLlvmConcurrent, EightThreadsCompileAndRun) {
  std::atomic<int> right{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&right, t] {
        for (int i = 0; i < 4; ++i) {
          const int value = 100 * t + i;
          const std::string body = fmt::format(
              "  %x.slot = getelementptr i64, ptr %args, i64 1\n  %x = load float, ptr %x.slot\n"
              "  %e = call float @llvm.exp.f32(float %x)\n  %v = fadd float %e, {}.0",
              value);
          const auto module = CpuModule::compile(
              store_value("float", body) + "declare float @llvm.exp.f32(float)\n", {"f"});
          float y = 0;
          const std::uint64_t args[] = {slot(&y), std::bit_cast<std::uint32_t>(0.0F)};
          module->run(0, 1, 1, args);
          if (y == 1.0F + static_cast<float>(value)) ++right;
        }
      });
    }
  }
  EXPECT_EQ(right, 32);
}

TEST_F(JitLlvmConcurrent, EightThreadsRunOneModule) {
  const auto module = CpuModule::compile(kSegmentSums, {"segment_sums"});
  std::atomic<int> right{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        const std::vector<float> x(512 * 32, static_cast<float>(t));
        std::vector<float> sums(512);
        const std::uint64_t args[] = {slot(x.data()), slot(sums.data())};
        module->run(0, 512, 8, args);
        if (sums == std::vector<float>(512, static_cast<float>(32 * t))) ++right;
      });
    }
  }
  EXPECT_EQ(right, 8);
}

/// The message of the DeviceError that opening `places` gives.
std::string missing_message(const std::vector<SearchPlace>& places) {
  try {
    open_cpu_plugin(places);
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), ErrorCode::missing_library);
    return error.what();
  }
  ADD_FAILURE() << "a plugin was found";
  return {};
}

TEST(CpuPluginSearch, AChosenFileIsTheOnlyPlace) {
  const char* const before = std::getenv("CHAINFOLD_CPU_PLUGIN");
  const std::string saved = before != nullptr ? before : "";
  setenv("CHAINFOLD_CPU_PLUGIN", "/no/such/folder/plugin.so", 1);
  const std::vector<SearchPlace> places = cpu_plugin_places();
  if (saved.empty()) {
    unsetenv("CHAINFOLD_CPU_PLUGIN");
  } else {
    setenv("CHAINFOLD_CPU_PLUGIN", saved.c_str(), 1);
  }
  ASSERT_EQ(places.size(), 1U);
  const std::string message = missing_message(places);
  for (const char* part : {"/no/such/folder/plugin.so", "No such file", "$CHAINFOLD_CPU_PLUGIN",
                           "-DCHAINFOLD_CPU=ON"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in\n" << message;
  }
}

TEST(CpuPluginSearch, AWidthThatNoVectorHasIsTheCallersMistake) {
  const char* const before = std::getenv("CHAINFOLD_VECTOR_BITS");
  const std::string saved = before != nullptr ? before : "";  // empty is as good as not set
  for (const char* bits : {"77", "0", "1024", "256 ", "wide"}) {
    setenv("CHAINFOLD_VECTOR_BITS", bits, 1);
    test::expect_error<UserError>(
        [] { open_cpu_plugin(cpu_plugin_places()); }, ErrorCode::invalid_argument,
        "CHAINFOLD_VECTOR_BITS",
        {fmt::format("CHAINFOLD_VECTOR_BITS={} ", bits), "512, 256 or 128"});
  }
  setenv("CHAINFOLD_VECTOR_BITS", saved.c_str(), 1);
}

TEST(CpuPluginSearch, LooksBesideTheLibraryFirstAndAtTheLoadersPathLast) {
  if (std::getenv("CHAINFOLD_CPU_PLUGIN") != nullptr) GTEST_SKIP() << "a plugin is chosen";
  const std::vector<SearchPlace> places = cpu_plugin_places();
  ASSERT_EQ(places.size(), 4U);
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&cpu_plugin), &info), 0);
  const auto folder = std::filesystem::canonical(info.dli_fname).parent_path();
  EXPECT_EQ(places[0].files, std::vector{(folder / "libchainfold_cpu.so").string()});
  EXPECT_EQ(places[1].files, std::vector{(folder / "chainfold/libchainfold_cpu.so").string()});
  EXPECT_EQ(places[3].files, std::vector<std::string>{"libchainfold_cpu.so"});
}

TEST(CpuPluginSearch, EveryPlaceIsListed) {
  const std::string message = missing_message(
      {{"first", {"/nowhere/a.so"}, {}}, {"second", {"/nowhere/b.so"}, {}}, {"third", {}, "gone"}});
  for (const char* part : {"/nowhere/a.so", "/nowhere/b.so", "third: gone"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(CpuPluginSearch, AnotherLibraryIsRefused) {
  const std::string message = missing_message({{"a library", {"libm.so.6"}, {}}});
  EXPECT_NE(message.find("lacks chainfold_cpu_plugin_get"), std::string::npos) << message;
}

}  // namespace
}  // namespace chainfold::runtime
