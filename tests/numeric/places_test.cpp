// Smallest and largest elements' places, on the CPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "chainfold/codegen/target/target.hpp"
#include "chainfold/tests/support/places.hpp"

namespace chainfold::test {
namespace {

TEST(CpuPlaces, AreTheFirstOnes) {
  for (const Target& target : {chainfold::target("cpu"), codegen::cpu_target(4, "znver4")}) {
    for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::i8, DType::u64})
      for (const std::int64_t n : {0, 1000, 4099, 65536})
        EXPECT_EQ(check_places(type, n, kernel_executor(target)), "") << target.name;
  }
}

TEST(CpuRunningPlaces, AreTheFirstOnes) {
  const Executor cpu = kernel_executor(chainfold::target("cpu"));
  auto turn = static_cast<int>(std::random_device{}() % 4);  // each run takes others
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::i8, DType::u64})
    for (const std::int64_t n : {0, 7, 64, 1000, 4099})
      if (++turn % 4 == 0) {
        EXPECT_EQ(check_running_places(type, n, cpu), "");
      }
}

}  // namespace
}  // namespace chainfold::test
