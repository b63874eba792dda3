// The cache on disk between processes: killed, concurrent, starved and denied ones; and the tool.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "chainfold/runtime/cache/disk_cache.hpp"
#include "chainfold/tests/support/child_process.hpp"
#include "chainfold/tests/support/temporary_folder.hpp"

namespace chainfold::runtime {
namespace {

namespace fs = std::filesystem;

constexpr CacheKey kKey{.high = 0xab00000000000001, .low = 2};

/// No file of this process may grow past `bytes`.
void limit_files(rlim_t bytes) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

/// Gives this process a file system of its own of 64 KiB, which no other sees and which goes with
/// it. Returns why that is refused; empty if it is not. The process must have one thread.
std::string mount_small(const fs::path& at) {
  const auto refused = [](const char* what) {
    return fmt::format("{}: {}", what, std::generic_category().message(errno));
  };
  const std::string user = fmt::format("{0} {0} 1", geteuid());
  const std::string group = fmt::format("{0} {0} 1", getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
    // Whom its users do not name may make no file there.
    const auto put = [](const char* file, const std::string& text) {
      return static_cast<bool>(std::ofstream(file) << text << std::flush);
    };
    if (!put("/proc/self/setgroups", "deny") || !put("/proc/self/uid_map", user) ||
        !put("/proc/self/gid_map", group)) {
      return "no user can be named in a user namespace";
    }
  } else if (unshare(CLONE_NEWNS) != 0) {  // which root may, where others may have no namespace
    return refused("no mount namespace");
  }
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", at.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0700") != 0) {
    return refused("no file system can be mounted");
  }
  return {};
}

/// A new file that leaves one block of its file system free, so that what is written next begins
/// well. Whether that succeeded.
bool fill_but_one_block(const fs::path& file) {
  constexpr off_t kBlock = 4096;
  const std::string block(kBlock, 'x');
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  off_t size = 0;
  while (write(fd, block.data(), block.size()) == kBlock) size += kBlock;
  const bool full = fd >= 0 && errno == ENOSPC && size > kBlock;
  return full && ftruncate(fd, size - kBlock) == 0 && close(fd) == 0;
}

using test::files_below;
using test::in_child;
using test::output_of;

class DiskCacheProcesses : public testing::Test {
 protected:
  [[nodiscard]] fs::path folder() const { return temporary_.path() / "cache"; }
  test::TemporaryFolder temporary_;
};

TEST_F(DiskCacheProcesses, AWriterKilledInMidWriteLeavesNothingThatIsRead) {
  const int status = in_child([&] {
    limit_files(10000);  // SIGXFSZ kills it within the write
    DiskCache(folder()).store(kKernelKind, kKey, std::string(100000, 'x'));
    return false;
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(WTERMSIG(status), SIGXFSZ);
  const std::vector<fs::path> left = files_below(folder());
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(fs::file_size(left[0]), 10000U);

  DiskCache cache(folder());
  EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
  EXPECT_EQ(cache.stats().faults, 0) << cache.stats().warning;
  EXPECT_TRUE(cache.list().empty());
  cache.store(kTuningKind, kKey, "a record");
  EXPECT_TRUE(fs::exists(left[0])) << "its writer might be at work still";
  fs::last_write_time(left[0], fs::file_time_type::clock::now() - std::chrono::hours(2));
  DiskCache(folder()).store(kKernelKind, kKey, "code");
  EXPECT_FALSE(fs::exists(left[0]));
  EXPECT_EQ(cache.load(kKernelKind, kKey), "code");
}

/// Runs `work` in a forked process. Returns the text that it returned.
template <class Work>
std::string text_of_child(const fs::path& report, const Work& work) {
  EXPECT_EQ(in_child([&] { return static_cast<bool>(std::ofstream(report) << work()); }), 0);
  std::ifstream in(report);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(DiskCacheProcesses, AFullDiskMeansMemoryOnly) {
  const fs::path disk = temporary_.path() / "disk", filler = disk / "filler";
  const fs::path cached = disk / "cache";
  fs::create_directory(disk);
  const std::string text = text_of_child(temporary_.path() / "report", [&]() -> std::string {
    if (const std::string why = mount_small(disk); !why.empty()) return "refused: " + why;
    if (!fill_but_one_block(filler)) return "the file system cannot be filled";
    DiskCache cache(cached);
    const std::string large(100000, 'x');
    cache.store(kKernelKind, kKey, large);
    const bool kept = cache.load(kKernelKind, kKey) == large;
    const CacheStatistics stats = cache.stats();
    std::string told = fmt::format("kept={} stores={} faults={} files={}\n{}\n", kept, stats.stores,
                                   stats.faults, files_below(cached).size(), stats.warning);
#if defined(CHAINFOLD_TEST_CPU)
    for (const char* space : {"without", "with"}) {
      int status = -1;
      const std::string child =
          output_of(fmt::format("env CHAINFOLD_CACHE=on CHAINFOLD_CACHE_DIR='{}' '{}' cpu",
                                cached.string(), CHAINFOLD_CACHE_CHILD),
                    status);
      told += fmt::format("{} space: status={} files={} {}", space, status,
                          files_below(cached).size(), child);
      fs::remove(filler);
    }
#endif
    return told;
  });
  if (text.starts_with("refused: ")) GTEST_SKIP() << text;
  std::vector<std::string> parts = {
      "kept=true stores=0 faults=1 files=0\nkernels are kept in memory only: " + cached.string(),
      "cannot be written: No space left on device\n"};
#if defined(CHAINFOLD_TEST_CPU)
  parts.insert(parts.end(),
               {"without space: status=0 files=0 compiled=1 from_disk=0 sums=96,96 ",
                "hits=0 misses=1 stores=0 damaged=0 faults=1\nkernels are kept in memory",
                "with space: status=0 files=1 compiled=1 from_disk=0 sums=96,96 ",
                "hits=0 misses=1 stores=1 damaged=0 faults=0\n"});
#endif
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }
}

TEST_F(DiskCacheProcesses, AFileThatMayNotGrowMeansMemoryOnly) {
  const int status = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);  // write() fails instead
    limit_files(10000);
    DiskCache cache(folder());
    const std::string large(100000, 'x');
    cache.store(kKernelKind, kKey, large);
    cache.store(kTuningKind, kKey, "small enough");
    const CacheStatistics stats = cache.stats();
    return cache.load(kKernelKind, kKey) == large &&
           cache.load(kTuningKind, kKey) == "small enough" && stats.stores == 1 &&
           stats.faults == 1 && stats.warning.find("cannot be written") != std::string::npos;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files_below(folder()).size(), 1U) << "no half-written file may stay";
  DiskCache cache(folder());
  EXPECT_EQ(cache.load(kKernelKind, kKey), std::nullopt);
  EXPECT_EQ(cache.load(kTuningKind, kKey), "small enough");
}

TEST_F(DiskCacheProcesses, AReadOnlyFolderIsReadAndNewEntriesStayInMemory) {
  constexpr uid_t kSomebody = 65534;
  DiskCache(folder()).store(kKernelKind, kKey, "code");
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    if (geteuid() == 0) {
      ASSERT_EQ(chown(entry.path().c_str(), kSomebody, kSomebody), 0);
    }
    if (entry.is_directory()) {
      ASSERT_EQ(chmod(entry.path().c_str(), 0500), 0);
    }
  }
  if (geteuid() == 0) {  // whom no mode keeps out
    ASSERT_EQ(chown(folder().c_str(), kSomebody, kSomebody), 0);
    ASSERT_EQ(chmod(temporary_.path().c_str(), 0755), 0);
  }
  ASSERT_EQ(chmod(folder().c_str(), 0500), 0);
  const int status = in_child([&] {
    if (geteuid() == 0 && (setgid(kSomebody) != 0 || setuid(kSomebody) != 0)) return false;
    DiskCache cache(folder());
    const CacheKey other{.high = 1, .low = 1};
    const CacheKey beside{.high = kKey.high, .low = 1};
    cache.store(kKernelKind, other, "other");
    cache.store(kKernelKind, beside, "beside");
    const CacheStatistics stats = cache.stats();
    return cache.load(kKernelKind, kKey) == "code" && cache.load(kKernelKind, other) == "other" &&
           cache.load(kKernelKind, beside) == "beside" && stats.stores == 0 &&
           stats.warning.find("Permission denied") != std::string::npos;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files_below(folder()).size(), 1U);
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    if (entry.is_directory()) chmod(entry.path().c_str(), 0700);
  }
  chmod(folder().c_str(), 0700);
}

TEST_F(DiskCacheProcesses, ConcurrentWritersNeverShowHalfAnEntry) {
  constexpr int kWriters = 4;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      DiskCache cache(folder(), std::uint64_t{300} << 10);  // evicts meanwhile
      bool right = true;
      for (int i = 0; i < 300; ++i) {
        const CacheKey key{.high = static_cast<std::uint64_t>(i % 5) << 56, .low = 0};
        const char mine = static_cast<char>('a' + writer);
        cache.store(kKernelKind, key, std::string(20000 + 7000 * writer, mine));
        const auto found = cache.load(kKernelKind, key);
        if (!found) continue;  // evicted by another
        const auto length = static_cast<std::size_t>(20000 + 7000 * ((*found)[0] - 'a'));
        right = right && *found == std::string(length, (*found)[0]);
      }
      const CacheStatistics stats = cache.stats();
      _exit(right && stats.damaged == 0 && stats.faults == 0 && stats.hits > 200 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  DiskCache cache(folder());
  EXPECT_TRUE(cache.verify(false).empty());
  EXPECT_EQ(files_below(folder()).size(), cache.list().size()) << "no temporary file may stay";
}

#if defined(CHAINFOLD_CACHE_TOOL)
TEST_F(DiskCacheProcesses, TheToolListsVerifiesAndClears) {
  DiskCache cache(folder());
  cache.store(kKernelKind, kKey, "code", "sums for \x1b[31m sm_90");
  cache.store(kTuningKind, kKey, "a record", "plans");
  const auto tool = [&](const std::string& arguments, int expected) {
    int status = -1;
    std::string text = output_of(
        fmt::format("'{}' --dir '{}' {}", CHAINFOLD_CACHE_TOOL, folder().string(), arguments),
        status);
    EXPECT_EQ(status, expected) << arguments << "\n" << text;
    return text;
  };
  const std::string listed = tool("list", 0);
  for (const std::string& part : {kKey.hex() + "  kernel", kKey.hex() + "  tuning",
                                  std::string("sums for ?[31m sm_90"), folder().string()}) {
    EXPECT_NE(listed.find(part), std::string::npos) << part << "\nis not in\n" << listed;
  }
  EXPECT_EQ(tool("verify", 0), "2 entries, 0 damaged\n");
  for (const fs::path& file : files_below(folder())) {
    if (file.extension() == ".kernel") fs::resize_file(file, 50);
  }
  EXPECT_NE(tool("verify", 1).find("2 entries, 1 damaged\n"), std::string::npos);
  EXPECT_NE(tool("verify --remove", 1).find("1 damaged and removed\n"), std::string::npos);
  EXPECT_EQ(tool("verify", 0), "1 entries, 0 damaged\n");
  EXPECT_EQ(tool("clear", 0), "removed 1 entries\n");
  EXPECT_TRUE(files_below(folder()).empty());
  chmod(folder().c_str(), 0777);
  EXPECT_NE(tool("list", 2).find("can be written by others"), std::string::npos);
  const auto nameless = [&](const std::string& arguments) {  // else it would empty the user's cache
    int status = -1;
    const std::string text =
        output_of(fmt::format("env CHAINFOLD_CACHE_DIR='{}' '{}' {}", folder().string(),
                              CHAINFOLD_CACHE_TOOL, arguments),
                  status);
    EXPECT_NE(status, 0) << text;
    EXPECT_NE(text.find("--dir: it is empty; name a folder"), std::string::npos) << text;
  };
  nameless("--dir '' clear");
  nameless("clear --dir ''");
  EXPECT_NE(tool("--help", 0).find("CHAINFOLD_CACHE_DIR"), std::string::npos);
}
#endif

}  // namespace
}  // namespace chainfold::runtime
