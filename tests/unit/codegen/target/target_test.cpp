#include "chainfold/codegen/target/target.hpp"

#include <gtest/gtest.h>

#include <string>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::codegen {
namespace {

TEST(Target, ParsesWhatItNames) {
  EXPECT_EQ(parse_target("sm_90").arch, 90);
  EXPECT_EQ(parse_target("sm_90").name, "sm_90");
  EXPECT_EQ(parse_target("sm_90a").arch, 90);
  EXPECT_EQ(parse_target("sm_120").backend, Backend::cuda);
  EXPECT_EQ(parse_target("cpu").backend, Backend::llvm);
  EXPECT_EQ(gpu_target(90, 7).processors, 7);
  EXPECT_EQ(cpu_target(3).processors, 3);
}

TEST(Target, CpusHaveOneWarpAndNoMatrices) {
  const Target cpu = cpu_target(2);
  EXPECT_EQ(cpu.max_warps, 1);
  EXPECT_EQ(cpu.shared_bytes, kCpuArrayBytes);
  EXPECT_EQ(cpu.processor_shared_bytes, 0);
  EXPECT_FALSE(cpu.has_mma);
}

TEST(Target, RefusesUnknownNamesAndSaysWhatIsKnown) {
  for (const char* name : {"", "gpu", "sm_", "sm_9x", "sm_70", "sm_91", "sm_90aa", "CPU"}) {
    try {
      parse_target(name);
      FAIL() << name;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("known targets: cpu, sm_75"), std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(cpu_target(0), UserError);
}

}  // namespace
}  // namespace chainfold::codegen
