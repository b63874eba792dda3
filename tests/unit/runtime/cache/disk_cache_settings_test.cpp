// What the environment asks of the cache on disk.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "chainfold/runtime/cache/disk_cache.hpp"
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
  EXPECT_EQ(settings({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/"}}).folder, "/.cache/chainfold");
  EXPECT_EQ(settings({{"HOME", "/"}}).folder, "/.cache/chainfold");
  EXPECT_EQ(settings({{"HOME", "/"}}).warning, "");
}

TEST(DiskCacheSettings, AHomeIsNotMadeButFoldersInIt) {
  const test::TemporaryFolder temporary;
  const fs::path home = temporary.path() / "home";
  DiskCache without(settings({{"HOME", home.string()}}));
  without.store(kKernelKind, kKey, kBytes);
  EXPECT_EQ(without.load(kKernelKind, kKey), kBytes);
  EXPECT_FALSE(fs::exists(home)) << "root could make it";
  EXPECT_EQ(without.stats().directory, "");
  EXPECT_EQ(without.stats().faults, 1);
  EXPECT_NE(without.stats().warning.find("HOME=" + home.string()), std::string::npos)
      << without.stats().warning;
  fs::create_directory(home);
  DiskCache with(settings({{"HOME", home.string()}}));
  with.store(kKernelKind, kKey, kBytes);
  EXPECT_TRUE(fs::is_directory(home / ".cache" / "chainfold"));
  EXPECT_EQ(with.stats().stores, 1);
  EXPECT_EQ(with.stats().warning, "");
}

// Files of the kernel's are read-only for everybody, root included.
TEST(DiskCacheSettings, WhereNothingCanBeMadeTheReasonIsTold) {
  const test::TemporaryFolder temporary;
  std::vector<std::string> folders{"/sys/chainfold/of/nobody"};
  if (geteuid() == 0) {
    folders.emplace_back("/sys/kernel");  // there, and not to be written
  } else {
    const fs::path closed = temporary.path() / "closed";
    fs::create_directory(closed);
    fs::permissions(closed, fs::perms::owner_read | fs::perms::owner_exec);
    folders.push_back(closed.string());
    folders.push_back((closed / "in" / "it").string());
  }
  for (const std::string& folder : folders) {
    if (!fs::is_directory("/sys/kernel")) GTEST_SKIP() << "there is no /sys";
    DiskCache cache(settings({{"CHAINFOLD_CACHE_DIR", folder}}));
    cache.store(kKernelKind, kKey, kBytes);
    EXPECT_EQ(cache.load(kKernelKind, kKey), kBytes) << "kept in memory";
    const std::string why = cache.stats().warning;
    EXPECT_EQ(cache.stats().faults, 1) << folder;
    EXPECT_NE(why.find(folder), std::string::npos) << why;
    EXPECT_EQ(why.find("No such file"), std::string::npos) << why;
    EXPECT_TRUE(why.find("not permitted") != std::string::npos ||
                why.find("Permission denied") != std::string::npos ||
                why.find("Read-only") != std::string::npos)
        << why;
  }
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
  for (const char* word : {"off", "OFF", "Off", "0", "no", "No", "false", "FALSE"}) {
    DiskCache cache(settings(
        {{"CHAINFOLD_CACHE", word}, {"CHAINFOLD_CACHE_DIR", (temporary.path() / "c").string()}}));
    cache.store(kKernelKind, kKey, kBytes);
    EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt) << word;
    EXPECT_FALSE(fs::exists(temporary.path() / "c")) << word;
    EXPECT_EQ(cache.stats().warning, "") << word;
  }
}

TEST(DiskCacheSettings, AnyOtherWordLeavesItOn) {
  for (const char* word : {"on", "ON", "1", "Yes", "true", ""}) {
    const CacheSettings on = settings({{"CHAINFOLD_CACHE", word}, {"HOME", "/"}});
    EXPECT_FALSE(on.off) << word;
    EXPECT_EQ(on.warning, "") << word;
  }
  EXPECT_EQ(settings({{"CHAINFOLD_CACHE", "off"}}).warning, "") << "nothing can be lost";
  for (const char* word : {"of", "none", " off", "00"}) {
    const CacheSettings unknown = settings({{"CHAINFOLD_CACHE", word},
                                            {"CHAINFOLD_CACHE_BYTES", "many"},
                                            {"CHAINFOLD_CACHE_DIR", ""}});
    EXPECT_FALSE(unknown.off) << word;
    const std::string warning = DiskCache(unknown).stats().warning;
    for (const std::string& part :
         {fmt::format("CHAINFOLD_CACHE={} means nothing", word),
          std::string("CHAINFOLD_CACHE_BYTES=many"), std::string("CHAINFOLD_CACHE_DIR is empty")}) {
      EXPECT_NE(warning.find(part), std::string::npos) << part << "\nis not in\n" << warning;
    }
  }
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
}

}  // namespace
}  // namespace chainfold::runtime
