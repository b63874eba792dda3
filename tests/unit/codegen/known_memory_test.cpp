// KnownMemory: device addresses that need not be asked about again.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "chainfold/runtime/device/context.hpp"

namespace chainfold::runtime {
namespace {

std::vector<std::uintptr_t> some_addresses(std::size_t count) {
  std::mt19937_64 random(std::random_device{}());
  std::vector<std::uintptr_t> addresses;
  while (addresses.size() < count)
    addresses.push_back(0x7f0000000000 + (random() % (1 << 28)) * 256);
  return addresses;
}

// Whichever they are: a launch's few addresses never push each other out.
TEST(KnownMemory, KeepsTheAddressesOfALaunch) {
  for (int round = 0; round < 1000; ++round) {
    KnownMemory known;
    const auto addresses = some_addresses(8);
    for (const std::uintptr_t address : addresses) {
      EXPECT_FALSE(known.has(address + 1));
      known.add(address);
    }
    for (const std::uintptr_t address : addresses) EXPECT_TRUE(known.has(address));
  }
}

TEST(KnownMemory, NeverKnowsWhatItWasNotTold) {
  KnownMemory known;
  EXPECT_FALSE(known.has(0));
  for (const std::uintptr_t address : some_addresses(20000)) {
    known.add(address);
    EXPECT_TRUE(known.has(address));
    EXPECT_FALSE(known.has(address + 128));
  }
}

TEST(KnownMemory, ForgetsARangeAndNothingElse) {
  KnownMemory known;
  for (const std::uintptr_t address : {0x1000, 0x1fff, 0x2000, 0xfff}) known.add(address);
  known.forget(0x1000, 0x1000);
  EXPECT_FALSE(known.has(0x1000));
  EXPECT_FALSE(known.has(0x1fff));
  EXPECT_TRUE(known.has(0x2000));
  EXPECT_TRUE(known.has(0xfff));
}

}  // namespace
}  // namespace chainfold::runtime
