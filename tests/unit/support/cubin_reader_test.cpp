#include "chainfold/tests/support/cubin_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::test {
namespace {

using runtime::compile_cubin;
using runtime::Cubin;

constexpr const char* kHmma16 = R"(
extern "C" __global__ void hmma16(const unsigned* p, float* out) {
  const unsigned* q = p + threadIdx.x * 6;
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]), "r"(q[4]), "r"(q[5]));
  out[threadIdx.x] = c0 + c1 + c2 + c3;
})";

constexpr const char* kHmma8 = R"(
extern "C" __global__ void hmma8(const unsigned* p, float* out) {
  const unsigned* q = p + threadIdx.x * 3;
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(q[0]), "r"(q[1]), "r"(q[2]));
  out[threadIdx.x] = c0 + c1 + c2 + c3;
})";

constexpr const char* kImma = R"(
extern "C" __global__ void imma(const unsigned* p, int* out) {
  const unsigned* q = p + threadIdx.x * 6;
  int c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};" : "+r"(c0), "+r"(c1), "+r"(c2), "+r"(c3)
      : "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]), "r"(q[4]), "r"(q[5]));
  out[threadIdx.x] = c0 + c1 + c2 + c3;
})";

constexpr const char* kDmma = R"(
extern "C" __global__ void dmma(const double* p, double* out) {
  double c0 = 0, c1 = 0;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+d"(c0), "+d"(c1) : "d"(p[threadIdx.x]), "d"(p[threadIdx.x + 32]));
  out[threadIdx.x] = c0 + c1;
})";

/// The one kernel of a source compiled for an architecture.
KernelCode compile_one(const char* source, int arch) {
  const Cubin cubin = compile_cubin(source, {.arch = arch});
  EXPECT_EQ(cubin_architecture(cubin.image), arch);
  std::vector<KernelCode> kernels = read_cubin(cubin.image);
  if (kernels.size() != 1) throw std::runtime_error("one kernel was expected");
  return std::move(kernels[0]);
}

class CubinReader : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!runtime::nvrtc_available()) GTEST_SKIP() << "libnvrtc is not installed";
    const std::vector<int>& known = runtime::nvrtc_architectures();
    if (std::find(known.begin(), known.end(), GetParam()) == known.end()) {
      GTEST_SKIP() << "this NVRTC does not compile for sm_" << GetParam();
    }
  }
  static void expect_no_local_memory(const KernelCode& kernel) {
    EXPECT_EQ(kernel.count("LDL"), 0u) << kernel.name;
    EXPECT_EQ(kernel.count("STL"), 0u) << kernel.name;
  }
};

TEST_P(CubinReader, FindsHalfPrecisionTensorInstructions) {
  const KernelCode small = compile_one(kHmma8, GetParam());
  EXPECT_EQ(small.name, "hmma8");
  EXPECT_EQ(small.count("HMMA"), 1u);
  EXPECT_EQ(small.count("IMMA") + small.count("DMMA"), 0u);
  EXPECT_EQ(small.count("LDG"), 3u);
  EXPECT_EQ(small.count_wide("STG", 4), 1u);
  expect_no_local_memory(small);
  if (GetParam() < 80) return;  // m16n8k16 came with sm_80
  const KernelCode large = compile_one(kHmma16, GetParam());
  EXPECT_EQ(large.count("HMMA"), 1u);
  expect_no_local_memory(large);
}

TEST_P(CubinReader, FindsIntegerAndDoubleTensorInstructions) {
  if (GetParam() < 80) GTEST_SKIP() << "m16n8k32 and m8n8k4 in f64 came with sm_80";
  const KernelCode imma = compile_one(kImma, GetParam());
  EXPECT_EQ(imma.count("IMMA"), 1u);
  EXPECT_EQ(imma.count("HMMA"), 0u);
  expect_no_local_memory(imma);
  const KernelCode dmma = compile_one(kDmma, GetParam());
  EXPECT_GE(dmma.count("DMMA"), 1u);
  EXPECT_EQ(dmma.count("HMMA"), 0u);
  EXPECT_EQ(dmma.count_wide("LDG", 8), 2u);
  expect_no_local_memory(dmma);
}

TEST_P(CubinReader, TellsWidthsAndLocalMemoryApart) {
  const KernelCode copy = compile_one(R"(
struct alignas(16) Four { unsigned x, y, z, w; };
extern "C" __global__ void copy(const Four* in, const unsigned short* h, Four* out) {
  Four v = in[threadIdx.x];
  v.x += h[threadIdx.x];
  out[threadIdx.x] = v;
})",
                                      GetParam());
  EXPECT_EQ(copy.count_wide("LDG", 16), 1u);
  EXPECT_EQ(copy.count_wide("LDG", 2), 1u);
  EXPECT_EQ(copy.count_wide("LDG", 4), 0u);
  EXPECT_EQ(copy.count_wide("STG", 16), 1u);
  expect_no_local_memory(copy);
  const KernelCode stack = compile_one(R"(
extern "C" __global__ void stack(const float* in, float* out, long long n) {
  float t[32];
  for (int i = 0; i < 32; ++i) t[i] = in[i];
  for (int i = 0; i < n; ++i) t[(i * 7) & 31] += in[i + 32];
  out[0] = t[n & 31];
})",
                                       GetParam());
  EXPECT_GE(stack.count("LDL"), 1u);
  EXPECT_GE(stack.count("STL"), 1u);
}

TEST_P(CubinReader, TellsWhichLoadsAreUnderWayTogether) {
  const KernelCode beside = compile_one(R"(
extern "C" __global__ void beside(const int* a, const int* b, int* out) {
  out[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x];
})",
                                        GetParam());
  EXPECT_EQ(beside.loads_together, (std::vector<int>{2}));
  const KernelCode behind = compile_one(R"(
extern "C" __global__ void behind(const int* a, const int* b, int* out) {
  out[threadIdx.x] = a[b[threadIdx.x]];
})",
                                        GetParam());
  EXPECT_EQ(behind.loads_together, (std::vector<int>{1, 1}));
}

TEST_P(CubinReader, ShowsThatProductsAndSumsStayApart) {
  const KernelCode kernel = compile_one(R"(
extern "C" __global__ void mac(const float* a, float* out) {
  out[threadIdx.x] = a[threadIdx.x] * a[threadIdx.x + 32] + a[threadIdx.x + 64];
})",
                                        GetParam());
  EXPECT_EQ(kernel.count("FFMA"), 0u);
  EXPECT_EQ(kernel.count("FMUL"), 1u);
  EXPECT_EQ(kernel.count("FADD"), 1u);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CubinReader, testing::Values(75, 80, 86, 89, 90, 100, 120),
                         [](const auto& test) { return "sm_" + std::to_string(test.param); });

TEST(CubinReaderErrors, RefusesForeignAndTruncatedFiles) {
  const std::vector<std::byte> zeros(256);
  EXPECT_THROW(read_cubin(zeros), std::runtime_error);
  EXPECT_THROW(read_cubin({}), std::runtime_error);
  EXPECT_THROW(static_cast<void>(KernelCode{}.count("HMMMA")), std::invalid_argument);
  if (!runtime::nvrtc_available()) GTEST_SKIP() << "libnvrtc is not installed";
  const Cubin cubin = compile_cubin(kHmma8, {.arch = 90});
  const std::span<const std::byte> image(cubin.image);
  ASSERT_EQ(read_cubin(image).size(), 1u);
  for (const std::size_t keep : {std::size_t{40}, image.size() / 4, image.size() / 2}) {
    EXPECT_THROW(read_cubin(image.first(keep)), std::runtime_error) << keep;
  }
}

}  // namespace
}  // namespace chainfold::test
