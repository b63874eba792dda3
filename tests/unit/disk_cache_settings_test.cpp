// What the environment asks of the cache on disk.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "chainfold/runtime/disk_cache.hpp"
#include "chainfold/tests/support/temporary_folder.hpp"

namespace chainfold::runtime {
namespace {

namespace fs = std::filesystem;

constexpr CacheKey kKey{.high = 0xab00000000000001, .low = 2};
const std::string kBytes = "machine code";

/// The settings of a made-up environment.
CacheSettings settings(const std::map<std::string, std::string>& variables) {
  return CacheSettings::from([&](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

TEST(DiskCacheSettings, TheFolderIsTheFirstThatIsNamed) {
  EXPECT_EQ(
      settings({{"CHAINFOLD_CACHE_DIR", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}).folder,
      "/a");
  EXPECT_EQ(settings({{"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}).folder, "/b/chainfold");
  EXPECT_EQ(settings({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/c"}}).folder,
            "/c/.cache/chainfold");
  EXPECT_EQ(settings({{"HOME", "/c"}}).folder, "/c/.cache/chainfold");
  EXPECT_EQ(settings({{"HOME", "/c"}}).warning, "");
}

TEST(DiskCacheSettings, WithoutAFolderEntriesStayInMemoryAndOneWarningSaysSo) {
  for (const auto& variables : std::vector<std::map<std::string, std::string>>{
           {}, {{"HOME", ""}}, {{"CHAINFOLD_CACHE_DIR", ""}, {"HOME", "/c"}}}) {
    const CacheSettings none = settings(variables);
    EXPECT_TRUE(none.folder.empty());
    DiskCache cache(none);
    cache.store(kKernelKind, kKey, kBytes);
    EXPECT_EQ(cache.load(kKernelKind, kKey), kBytes);
    EXPECT_EQ(cache.stats().faults, 1);
    EXPECT_NE(cache.stats().warning, "");
    EXPECT_EQ(cache.stats().directory, "");
  }
}

TEST(DiskCacheSettings, OffKeepsNothing) {
  const test::TemporaryFolder temporary;
  DiskCache cache(settings(
      {{"CHAINFOLD_CACHE", "off"}, {"CHAINFOLD_CACHE_DIR", (temporary.path() / "c").string()}}));
  cache.store(kKernelKind, kKey, kBytes);
  EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
  EXPECT_FALSE(fs::exists(temporary.path() / "c"));
  EXPECT_EQ(cache.stats().warning, "");
}

TEST(DiskCacheSettings, TheLimitMayHaveAUnit) {
  const auto limit = [](const std::string& text) {
    return settings({{"HOME", "/c"}, {"CHAINFOLD_CACHE_BYTES", text}});
  };
  EXPECT_EQ(limit("12345").byte_limit, 12345U);
  EXPECT_EQ(limit("3K").byte_limit, 3U << 10);
  EXPECT_EQ(limit("64M").byte_limit, 64U << 20);
  EXPECT_EQ(limit("2G").byte_limit, std::uint64_t{2} << 30);
  for (const char* bad : {"-1", "many", "1T", "1GB", "G", "99999999999G"}) {
    EXPECT_EQ(limit(bad).byte_limit, kDefaultCacheBytes) << bad;
    EXPECT_NE(limit(bad).warning.find("CHAINFOLD_CACHE_BYTES"), std::string::npos) << bad;
  }
  EXPECT_NE(settings({{"CHAINFOLD_CACHE", "of"}, {"HOME", "/c"}}).warning, "");
}

}  // namespace
}  // namespace chainfold::runtime
