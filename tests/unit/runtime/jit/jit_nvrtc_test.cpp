#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/runtime/jit/nvrtc_log.hpp"
#include "chainfold/tests/support/cubin_reader.hpp"

namespace chainfold::runtime {
namespace {

#define SKIP_WITHOUT_NVRTC() \
  if (!nvrtc_available()) GTEST_SKIP() << "libnvrtc is not installed"

std::string sum_kernel(const std::string& name) {
  return fmt::format(R"(
extern "C" __global__ void {}(const float* in, float* out, long long n) {{
  __shared__ float part[256];
  float sum = 0;
  for (long long i = threadIdx.x; i < n; i += 256) sum += in[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {{
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }}
  if (threadIdx.x == 0) out[0] = part[0];
}}
)",
                     name);
}

/// The JitError that compiling a source throws.
JitError refused(const std::string& source, int arch) {
  try {
    compile_cubin(source, {.arch = arch});
  } catch (const JitError& error) {
    return error;
  }
  ADD_FAILURE() << "the source compiled";
  return {"", "", "", ""};
}

class JitNvrtcArchitecture : public testing::TestWithParam<int> {};

TEST_P(JitNvrtcArchitecture, CompilesToMachineCodeWithAReport) {
  SKIP_WITHOUT_NVRTC();
  const std::vector<int>& known = nvrtc_architectures();
  if (std::find(known.begin(), known.end(), GetParam()) == known.end()) {
    GTEST_SKIP() << "this NVRTC does not compile for sm_" << GetParam();
  }
  const std::string source = sum_kernel("first") + sum_kernel("second");
  const Cubin cubin = compile_cubin(source, {.arch = GetParam(), .resource_report = true});
  EXPECT_EQ(test::cubin_architecture(cubin.image), GetParam());
  EXPECT_EQ(test::read_cubin(cubin.image).size(), 2u);
  EXPECT_GT(cubin.compile_ms, 0);
  ASSERT_EQ(cubin.resources.size(), 2u) << cubin.log;
  std::vector<std::string> names;
  for (const KernelResources& kernel : cubin.resources) {
    names.push_back(kernel.name);
    EXPECT_GE(kernel.registers, 8) << cubin.log;
    EXPECT_LE(kernel.registers, 64) << cubin.log;
    EXPECT_GE(kernel.shared, 1024) << cubin.log;  // sm_90 and later reserve some more
    EXPECT_EQ(kernel.stack + kernel.spill_load + kernel.spill_store, 0) << cubin.log;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second"}));
  // The bytes depend on the source and the options alone, which is what a cache rests on.
  EXPECT_EQ(compile_cubin(source, {.arch = GetParam()}).image,
            compile_cubin(source, {.arch = GetParam()}).image);
}

INSTANTIATE_TEST_SUITE_P(All, JitNvrtcArchitecture, testing::Values(75, 80, 86, 89, 90, 100, 120),
                         [](const auto& test) { return "sm_" + std::to_string(test.param); });

TEST(JitNvrtc, MakesFeatureSpecificCodeAndPtx) {
  SKIP_WITHOUT_NVRTC();
  const Cubin specific = compile_cubin(sum_kernel("k"), {.arch = 90, .arch_suffix = "a"});
  EXPECT_EQ(test::cubin_architecture(specific.image), 90);
  const Cubin ptx = compile_cubin(sum_kernel("k"), {.arch = 90, .ptx = true});
  ASSERT_FALSE(ptx.image.empty());
  EXPECT_EQ(ptx.image.back(), std::byte{0});
  const std::string text(reinterpret_cast<const char*>(ptx.image.data()));
  EXPECT_EQ(text.size() + 1, ptx.image.size());
  EXPECT_NE(text.find(".target sm_90"), std::string::npos);
}

TEST(JitNvrtc, QuotesTheLineThatWasRefused) {
  SKIP_WITHOUT_NVRTC();
  const std::string source =
      "extern \"C\" __global__ void k(float* out) {\n"
      "  float a = 1;\n"
      "  out[0] = a + wrong_name;\n"
      "}\n";
  const JitError error = refused(source, 90);
  EXPECT_EQ(error.code(), ErrorCode::jit_failed);
  EXPECT_EQ(error.line(),
            "   3 |   out[0] = a + wrong_name;\n"
            "     |                ^");
  EXPECT_NE(error.log().find("identifier \"wrong_name\" is undefined"), std::string::npos);
  EXPECT_EQ(error.source(), source);
  const std::string message = error.what();
  EXPECT_NE(message.find(error.line()), std::string::npos) << message;
  EXPECT_NE(message.find(error.log()), std::string::npos) << message;
  EXPECT_NE(message.find("sm_90"), std::string::npos) << message;
}

TEST(JitNvrtc, QuotesThePtxThatTheAssemblerRefused) {
  SKIP_WITHOUT_NVRTC();
  const JitError error = refused(R"(
extern "C" __global__ void k(float* out) { asm volatile("not.an.instruction %0;" :: "f"(out[0])); })",
                                 90);
  EXPECT_NE(error.line().find("not.an.instruction"), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("PTX line"), std::string::npos) << error.what();
}

TEST(JitNvrtc, RefusesAnUnknownArchitectureByName) {
  SKIP_WITHOUT_NVRTC();
  try {
    compile_cubin(sum_kernel("k"), {.arch = 35});
    FAIL() << "sm_35 compiled";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    const std::string message = error.what();
    EXPECT_NE(message.find("sm_35"), std::string::npos) << message;
    EXPECT_NE(message.find("90"), std::string::npos) << message;
  }
}

TEST(JitNvrtc, KnowsItsVersionAndArchitectures) {
  SKIP_WITHOUT_NVRTC();
  EXPECT_GE(nvrtc_version(), 12000);
  const std::vector<int>& known = nvrtc_architectures();
  EXPECT_TRUE(std::is_sorted(known.begin(), known.end()));
  EXPECT_TRUE(std::binary_search(known.begin(), known.end(), 90));
  EXPECT_NE(nvrtc_file().find("nvrtc"), std::string::npos);
}

TEST(JitNvrtcConcurrent, CompilesAndRefusesOnManyThreads) {
  SKIP_WITHOUT_NVRTC();
  constexpr int kThreads = 2 * kConcurrentCompiles + 1;
  std::vector<std::string> results(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([i, &result = results[static_cast<std::size_t>(i)]] {
      const std::string name = fmt::format("kernel_{}", i);
      const bool good = i % 3 != 2;
      try {
        const Cubin cubin = compile_cubin(good ? sum_kernel(name) : "int " + name + " = ;\n",
                                          {.arch = i % 2 == 0 ? 80 : 90, .resource_report = true});
        result = cubin.resources.empty() ? "no report" : cubin.resources[0].name;
      } catch (const JitError& error) {
        result = error.line();
      } catch (const std::exception& error) {
        result = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) {
    const std::string& result = results[static_cast<std::size_t>(i)];
    const std::string name = fmt::format("kernel_{}", i);
    if (i % 3 != 2) {
      EXPECT_EQ(result, name);
    } else {
      EXPECT_TRUE(result.starts_with(fmt::format("   1 | int {} = ;", name))) << result;
    }
  }
}

TEST(JitNvrtcProcess, ExitsCleanlyAfterAFirstUseOnAnotherThread) {
  SKIP_WITHOUT_NVRTC();
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process, where NVRTC is not loaded yet
  EXPECT_EXIT(
      {
        std::thread([] { compile_cubin(sum_kernel("k"), {.arch = 90}); }).join();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(JitNvrtcProcess, SaysWhereItLookedWhenTheLibraryIsMissing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("CHAINFOLD_NVRTC", "/nonexistent/libnvrtc.so.13", 1);
        try {
          compile_cubin(sum_kernel("k"), {.arch = 90});
        } catch (const DeviceError& error) {
          fmt::print(stderr, "{}: {}\n", error_code_name(error.code()), error.what());
        }
        std::exit(nvrtc_available() ? 1 : 0);
      },
      testing::ExitedWithCode(0),
      "missing_library: libnvrtc.*was not found.*CHAINFOLD_NVRTC=/nonexistent/libnvrtc.so.13");
}

TEST(JitNvrtcLog, ReadsResources) {
  const auto kernels = nvrtc_detail::parse_resources(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'one' for 'sm_90'\n"
      "ptxas info    : Function properties for one\n"
      "ptxas         .     48 bytes stack frame, 44 bytes spill stores, 52 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 48 bytes cumulative stack size, 2048 "
      "bytes "
      "smem, 380 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'two' for 'sm_90'\n"
      "ptxas info    : Function properties for two\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 12 registers\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "one");
  EXPECT_EQ(kernels[0].stack, 48);
  EXPECT_EQ(kernels[0].spill_store, 44);
  EXPECT_EQ(kernels[0].spill_load, 52);
  EXPECT_EQ(kernels[0].registers, 32);
  EXPECT_EQ(kernels[0].shared, 2048);
  EXPECT_EQ(kernels[1].name, "two");
  EXPECT_EQ(kernels[1].registers, 12);
  EXPECT_EQ(kernels[1].shared, 0);
}

TEST(JitNvrtcLog, FindsTheFirstErrorPastWarnings) {
  const auto place = nvrtc_detail::first_error(
      "chainfold.cu(2): warning #177-D: variable \"x\" was declared but never referenced\n"
      "    int x;\n"
      "        ^\n"
      "\n"
      "chainfold.cu(17): error: expected a \";\"\n"
      "    return 1\n"
      "           ^\n");
  EXPECT_EQ(place.line, 17);
  EXPECT_EQ(place.column, 7);
  EXPECT_FALSE(place.in_ptx);
  EXPECT_EQ(nvrtc_detail::first_error("nvrtc: error: invalid value\n").line, 0);
  EXPECT_EQ(nvrtc_detail::quote_line("one\ntwo\n", {.line = 3}), "");
  EXPECT_EQ(nvrtc_detail::quote_line("one\ntwo\n", {.line = 2}), "   2 | two");
  EXPECT_EQ(nvrtc_detail::quote_line("one\n\ttwo\n", {.line = 2, .column = 2}),
            "   2 | \ttwo\n     | \t  ^");
}

TEST(JitNvrtcLog, ExplainsMissingBuiltins) {
  const std::string hint = nvrtc_detail::builtins_hint(
      "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n", "/opt/x/libnvrtc.so.13");
  EXPECT_NE(hint.find("/opt/x/libnvrtc.so.13"), std::string::npos) << hint;
  EXPECT_NE(hint.find("LD_LIBRARY_PATH"), std::string::npos) << hint;
  EXPECT_EQ(nvrtc_detail::builtins_hint("an ordinary error", "x"), "");
}

}  // namespace
}  // namespace chainfold::runtime
