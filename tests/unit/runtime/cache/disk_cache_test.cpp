// The cache on disk: what it keeps, what it evicts, and every file and folder it must not trust.
#include "chainfold/runtime/cache/disk_cache.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "chainfold/runtime/cache/entry.hpp"
#include "chainfold/tests/support/temporary_folder.hpp"

namespace chainfold::runtime {
namespace {

namespace fs = std::filesystem;

constexpr CacheKey kKey{.high = 0xab00000000000001, .low = 2};
const std::string kBytes("machine\0code", 12);

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const fs::path& file, const std::string& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

class DiskCacheFiles : public testing::Test {
 protected:
  [[nodiscard]] fs::path folder() const { return temporary_.path() / "cache"; }
  [[nodiscard]] fs::path file_of(const CacheKey& key) const {
    return folder() / key.hex().substr(0, 2) / (key.hex() + ".kernel");
  }
  /// The file of kKey, stored a moment ago.
  fs::path stored_file() {
    DiskCache(folder()).store(kKernelKind, kKey, kBytes, "a test");
    EXPECT_TRUE(fs::is_regular_file(file_of(kKey)));
    return file_of(kKey);
  }
  /// A process that finds kKey in the state it is in, and stores it anew.
  void expect_fault_and_recovery(const std::string& part_of_warning) {
    DiskCache cache(folder());
    EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
    const CacheStatistics stats = cache.stats();
    EXPECT_EQ(stats.misses, 1);
    EXPECT_EQ(stats.faults, 1);
    EXPECT_NE(stats.warning.find(part_of_warning), std::string::npos) << stats.warning;
    cache.store(kKernelKind, kKey, kBytes);
    EXPECT_EQ(DiskCache(folder()).load(kKernelKind, kKey), kBytes);
  }
  /// A process that cannot use the folder keeps entries in memory.
  static void expect_memory_only(DiskCache& cache, const std::string& part_of_warning) {
    cache.store(kKernelKind, kKey, kBytes);
    EXPECT_EQ(cache.load(kKernelKind, kKey), kBytes);
    const CacheStatistics stats = cache.stats();
    EXPECT_EQ(stats.stores, 0);
    EXPECT_EQ(stats.hits, 1);
    EXPECT_NE(stats.warning.find(part_of_warning), std::string::npos) << stats.warning;
  }

  test::TemporaryFolder temporary_;
};

TEST_F(DiskCacheFiles, KeepsWhatIsStoredUnderItsKindAndKey) {
  DiskCache cache(folder());
  EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
  cache.store(kKernelKind, kKey, kBytes, "sums for sm_90");
  cache.store(kTuningKind, kKey, "");
  EXPECT_EQ(cache.load(kKernelKind, kKey), kBytes);
  EXPECT_EQ(cache.load(kTuningKind, kKey), "");
  EXPECT_EQ(cache.load(kKernelKind, {.high = kKey.high, .low = 3}), std::nullopt);
  cache.store(kTuningKind, kKey, "other");
  EXPECT_EQ(DiskCache(folder()).load(kTuningKind, kKey), "other");

  const CacheStatistics stats = cache.stats();
  EXPECT_EQ(stats.directory, folder().string());
  EXPECT_EQ(stats.hits, 2);
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.stores, 3);
  EXPECT_EQ(stats.bytes, 2U * 4096);
  EXPECT_EQ(stats.faults, 0) << stats.warning;
  const std::vector<ListedEntry> listed = cache.list();
  ASSERT_EQ(listed.size(), 2U);
  const ListedEntry& kernel = listed[listed[0].kind == kKernelKind ? 0 : 1];
  EXPECT_EQ(kernel.description, "sums for sm_90");
  EXPECT_EQ(kernel.key, kKey);
  EXPECT_EQ(kernel.version, library_version());
  EXPECT_EQ(kernel.problem, "");
  EXPECT_LE(std::time(nullptr) - kernel.created, 60);
  EXPECT_TRUE(cache.verify(false).empty());
}

TEST_F(DiskCacheFiles, FoldersAndFilesAreForTheirOwnerAlone) {
  const mode_t saved = umask(0);
  const fs::path file = stored_file();
  umask(saved);
  for (const fs::path& folder_path : {folder(), file.parent_path()}) {
    EXPECT_EQ(fs::status(folder_path).permissions(), fs::perms::owner_all) << folder_path;
  }
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(DiskCacheFiles, AFileCutAtAnyLengthIsAMiss) {
  const fs::path file = stored_file();
  const std::string whole = read_file(file);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_file(file, whole.substr(0, length));
    DiskCache cache(folder());
    ASSERT_EQ(cache.load(kKernelKind, kKey), std::nullopt) << length << " bytes";
    ASSERT_EQ(cache.stats().damaged, 1) << length << " bytes";
    ASSERT_FALSE(fs::exists(file)) << length << " bytes";
  }
  write_file(file, whole + '\0');
  EXPECT_EQ(DiskCache(folder()).load(kKernelKind, kKey), std::nullopt);
  write_file(file, whole);
  EXPECT_EQ(DiskCache(folder()).load(kKernelKind, kKey), kBytes);
  write_file(file, "");
  expect_fault_and_recovery("was damaged (only 0 bytes long)");
}

TEST_F(DiskCacheFiles, AnyFlippedBitIsAMiss) {
  const fs::path file = stored_file();
  const std::string whole = read_file(file);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    write_file(file, flipped);
    DiskCache cache(folder());
    ASSERT_EQ(cache.load(kKernelKind, kKey), std::nullopt) << "bit " << bit;
    ASSERT_EQ(cache.stats().damaged, 1) << "bit " << bit;
  }
  write_file(file, std::string(whole.size(), '\0'));
  expect_fault_and_recovery("its checksum is wrong");
}

TEST_F(DiskCacheFiles, AnEntryUnderAnotherNameIsAMiss) {
  const fs::path file = stored_file();
  const CacheKey other{.high = kKey.high, .low = 77};
  fs::copy(file, file_of(other));
  DiskCache cache(folder());
  EXPECT_EQ(cache.load(kKernelKind, other), std::nullopt);
  EXPECT_EQ(cache.stats().damaged, 1);
  fs::copy(file, file.parent_path() / (kKey.hex() + ".tuning"));
  EXPECT_EQ(cache.load(kTuningKind, kKey), std::nullopt);
  EXPECT_EQ(cache.load(kKernelKind, kKey), kBytes);
}

TEST_F(DiskCacheFiles, AnEntryOfAnotherVersionIsAMissAndNoFault) {
  const fs::path file = stored_file();
  const CacheEntry older{.kind = std::string(kKernelKind),
                         .version = "0.0.1",
                         .description = "",
                         .key = kKey,
                         .payload = "older code"};
  write_file(file, encode_entry(older));
  DiskCache cache(folder());
  EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
  EXPECT_EQ(cache.stats().faults, 0);
  EXPECT_TRUE(cache.verify(false).empty());
  cache.store(kKernelKind, kKey, kBytes);
  EXPECT_EQ(cache.load(kKernelKind, kKey), kBytes);
}

TEST_F(DiskCacheFiles, AnEntryOfAnotherFormatIsNotRead) {
  const fs::path file = stored_file();
  std::string bytes = read_file(file);
  bytes.resize(bytes.size() - 16);
  bytes[8] = 99;  // the format, and a checksum that fits it
  const Hash128 sum = hash128(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum.high), 8);
  bytes.append(reinterpret_cast<const char*>(&sum.low), 8);
  write_file(file, bytes);
  expect_fault_and_recovery("format 99, not " + std::to_string(kCacheFormat));
}

TEST_F(DiskCacheFiles, ALyingLengthIsNotFollowed) {
  for (const std::size_t at : {12U, 40U, 48U}) {  // header size, payload size, the kind's length
    const fs::path file = stored_file();
    std::string bytes = read_file(file);
    bytes.resize(bytes.size() - 16);
    bytes[at + 3] = '\x7f';
    const Hash128 sum = hash128(bytes);
    bytes.append(reinterpret_cast<const char*>(&sum.high), 8);
    bytes.append(reinterpret_cast<const char*>(&sum.low), 8);
    write_file(file, bytes);
    expect_fault_and_recovery("its lengths contradict each other");
  }
}

TEST_F(DiskCacheFiles, AForeignOwnerIsNotTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const fs::path file = stored_file();
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  expect_fault_and_recovery("belongs to user 12345, not to user 0");
  ASSERT_EQ(chown(file.parent_path().c_str(), 12345, 12345), 0);
  DiskCache inner(folder());
  EXPECT_EQ(inner.load(kKernelKind, kKey), std::nullopt);
  expect_memory_only(inner, "belongs to user 12345");
  ASSERT_EQ(chown(file.parent_path().c_str(), 0, 0), 0);
  ASSERT_EQ(chown(folder().c_str(), 12345, 12345), 0);
  DiskCache outer(folder());
  EXPECT_EQ(outer.load(kKernelKind, kKey), std::nullopt);
  expect_memory_only(outer, "belongs to user 12345");
}

TEST_F(DiskCacheFiles, WhatOthersCanWriteIsNotTrusted) {
  for (const mode_t mode : {0620, 0602, 0666}) {
    const fs::path file = stored_file();
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    expect_fault_and_recovery("can be written by others");
  }
  for (const mode_t mode : {0720, 0702, 0777, 01777}) {
    ASSERT_EQ(chmod(folder().c_str(), mode), 0);
    DiskCache cache(folder());
    EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
    expect_memory_only(cache, "chmod go-w");
    ASSERT_EQ(chmod(folder().c_str(), 0700), 0);
  }
}

TEST_F(DiskCacheFiles, NoSymbolicLinkIsFollowed) {
  const fs::path file = stored_file();
  const fs::path elsewhere = temporary_.path() / "elsewhere";
  fs::rename(file, elsewhere);
  fs::create_symlink(elsewhere, file);
  expect_fault_and_recovery("is a symbolic link");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file))) << "the link itself is replaced";
  EXPECT_TRUE(fs::exists(elsewhere)) << "and what it named is left alone";

  const fs::path inner = temporary_.path() / "inner";
  fs::rename(file.parent_path(), inner);
  fs::create_directory_symlink(inner, file.parent_path());
  DiskCache below(folder());
  EXPECT_EQ(below.load(kKernelKind, kKey), std::nullopt);
  expect_memory_only(below, "is a symbolic link");
  fs::remove(file.parent_path());
  fs::rename(inner, file.parent_path());
  ASSERT_EQ(DiskCache(folder()).load(kKernelKind, kKey), kBytes);

  const fs::path link = temporary_.path() / "link";
  fs::create_directory_symlink(folder(), link);
  for (const std::string& name : {link.string(), link.string() + "/", link.string() + "/."}) {
    DiskCache cache(name);
    EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt) << name;
    expect_memory_only(cache, "is a symbolic link");
  }
}

TEST_F(DiskCacheFiles, WhatIsNoRegularFileIsNotOpened) {
  const fs::path file = stored_file();
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);  // reading it would wait for ever
  expect_fault_and_recovery("is no regular file");
  fs::remove(file);
  fs::create_directory(file);
  DiskCache cache(folder());
  EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
  expect_memory_only(cache, "is no regular file");
}

TEST_F(DiskCacheFiles, AFolderThatCannotBeMadeMeansMemoryOnly) {
  write_file(temporary_.path() / "file", "in the way");
  DiskCache cache(temporary_.path() / "file" / "cache");
  expect_memory_only(cache, (temporary_.path() / "file" / "cache").string());
  EXPECT_TRUE(cache.list().empty());
  EXPECT_EQ(cache.clear(), 0);
}

TEST_F(DiskCacheFiles, AFolderThatIsRemovedMeanwhileIsMadeAgain) {
  DiskCache cache(folder());
  cache.store(kKernelKind, kKey, kBytes);
  fs::remove_all(folder());
  EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
  cache.store(kKernelKind, kKey, kBytes);
  EXPECT_EQ(DiskCache(folder()).load(kKernelKind, kKey), kBytes);
  EXPECT_EQ(cache.stats().faults, 0) << cache.stats().warning;
}

/// Makes a file look as if it was last used `hours` ago.
void age(const fs::path& file, int hours) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
}

TEST_F(DiskCacheFiles, EvictsTheLeastRecentlyUsedDownToNineTenths) {
  constexpr std::uint64_t kBlock = 4096;
  DiskCache cache(folder(), 20 * kBlock);
  const auto key = [](std::uint64_t i) { return CacheKey{.high = i << 56, .low = i}; };
  for (std::uint64_t i = 0; i < 20; ++i) {
    cache.store(kKernelKind, key(i), std::string(1000, 'x'));
    age(file_of(key(i)), 100 - static_cast<int>(i));
  }
  EXPECT_EQ(cache.stats().evictions, 0);
  EXPECT_EQ(cache.stats().bytes, 20 * kBlock);
  EXPECT_NE(cache.load(kKernelKind, key(0)), std::nullopt);  // and so it is the newest now
  cache.store(kKernelKind, key(20), "x");
  const CacheStatistics stats = cache.stats();
  EXPECT_EQ(stats.evictions, 3);
  EXPECT_EQ(stats.bytes, 18 * kBlock);
  for (const std::uint64_t gone : {1U, 2U, 3U}) {
    EXPECT_EQ(cache.load(kKernelKind, key(gone)), std::nullopt) << gone;
  }
  for (const std::uint64_t kept : {0U, 4U, 19U, 20U}) {
    EXPECT_NE(cache.load(kKernelKind, key(kept)), std::nullopt) << kept;
  }
}

TEST_F(DiskCacheFiles, MarksAnEntryAsUsedOnceAnHour) {
  const fs::path file = stored_file();
  DiskCache cache(folder());
  age(file, 2);
  ASSERT_TRUE(cache.load(kKernelKind, kKey));
  const auto marked = fs::last_write_time(file);
  EXPECT_LT(fs::file_time_type::clock::now() - marked, std::chrono::minutes(5));
  ASSERT_TRUE(cache.load(kKernelKind, kKey));
  EXPECT_EQ(fs::last_write_time(file), marked);
}

TEST_F(DiskCacheFiles, AnEntryLargerThanTheLimitStaysInMemory) {
  DiskCache cache(folder(), 4096);
  const std::string large(5000, 'x');
  cache.store(kKernelKind, kKey, large);
  EXPECT_EQ(cache.load(kKernelKind, kKey), large);
  EXPECT_FALSE(fs::exists(file_of(kKey)));
  EXPECT_NE(cache.stats().warning.find("CHAINFOLD_CACHE_BYTES"), std::string::npos);
}

TEST_F(DiskCacheFiles, ClearRemovesEntriesAndNothingElse) {
  const fs::path file = stored_file();
  const fs::path foreign = file.parent_path() / "notes.txt";
  write_file(foreign, "not ours");
  write_file(file.parent_path() / ".tmp-0123", "half an entry");
  DiskCache cache(folder());
  EXPECT_EQ(cache.list().size(), 1U);
  EXPECT_EQ(cache.clear(), 1);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(fs::exists(foreign));
  fs::remove(foreign);
  cache.clear();
  cache.store(kKernelKind, kKey, kBytes);
  EXPECT_EQ(cache.clear(), 1);
  EXPECT_TRUE(fs::is_empty(folder()));
}

TEST_F(DiskCacheFiles, VerifyFindsAndRemovesWhatIsDamaged) {
  const fs::path file = stored_file();
  const CacheKey other{.high = 5, .low = 5};
  DiskCache cache(folder());
  cache.store(kTuningKind, other, "a record");
  write_file(file, read_file(file).replace(20, 1, "?"));
  ASSERT_EQ(cache.verify(false).size(), 1U);
  const std::vector<ListedEntry> bad = cache.verify(true);
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_EQ(bad[0].problem, "its checksum is wrong");
  EXPECT_EQ(folder() / bad[0].file, file);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(cache.load(kTuningKind, other), "a record");
}

TEST_F(DiskCacheFiles, DropForgetsOnDiskAndInMemory) {
  DiskCache cache(folder());
  cache.store(kKernelKind, kKey, kBytes);
  cache.drop(kKernelKind, kKey);
  EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
  DiskCache memory{CacheSettings{.folder = {}, .warning = {}}};
  memory.store(kKernelKind, kKey, kBytes);
  EXPECT_EQ(memory.load(kKernelKind, kKey), kBytes);
  memory.drop(kKernelKind, kKey);
  EXPECT_EQ(memory.load(kKernelKind, kKey), std::nullopt);
}

TEST(DiskCacheConcurrent, ThreadsStoreLoadAndEvictInOneFolder) {
  const test::TemporaryFolder temporary;
  DiskCache cache(temporary.path() / "cache", 16 * 4096);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 100; ++i) {
          const CacheKey key{.high = (i % 24) << 56, .low = 0};
          const std::string expected(100 + i % 24, static_cast<char>('a' + i % 24));
          if (i % 4 == t) cache.store(kKernelKind, key, expected);
          const auto found = cache.load(kKernelKind, key);
          if (found && *found != expected) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  const CacheStatistics stats = cache.stats();
  EXPECT_EQ(stats.damaged, 0);
  EXPECT_EQ(stats.faults, 0) << stats.warning;
  EXPECT_EQ(stats.hits + stats.misses, 400);
  EXPECT_LE(stats.bytes, (16U + 4U) * 4096);  // what four threads write while one counts
}

}  // namespace
}  // namespace chainfold::runtime
