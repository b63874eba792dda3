// The cache on disk between processes: killed, concurrent, starved and denied ones, and a second
// process that finds the kernels of the first.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "chainfold/runtime/cache_entry.hpp"
#include "chainfold/runtime/disk_cache.hpp"
#include "chainfold/runtime/jit_nvrtc.hpp"
#include "chainfold/tests/support/temporary_folder.hpp"

namespace chainfold::runtime {
namespace {

namespace fs = std::filesystem;

constexpr CacheKey kKey{.high = 0xab00000000000001, .low = 2};

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory()) files.push_back(entry.path());
  }
  return files;
}

/// Runs `work` in a forked process. Returns the status of waitpid: 0 if it returned true.
template <class Work>
int in_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(work() ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

/// No file of this process may grow past `bytes`: the nearest thing to a full disk.
void limit_files(rlim_t bytes) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

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

TEST_F(DiskCacheProcesses, AFullDiskMeansMemoryOnly) {
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

/// What a command prints; its exit status in `status`.
std::string output_of(const std::string& command, int& status) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::array<char, 4096> part;
  while (const std::size_t count = fread(part.data(), 1, part.size(), pipe)) {
    text.append(part.data(), count);
  }
  const int closed = pclose(pipe);
  status = WIFEXITED(closed) ? WEXITSTATUS(closed) : 128;
  return text;
}

/// Runs chainfold_cache_child with the cache in the test's folder.
class DiskCacheSecondProcess : public DiskCacheProcesses {
 protected:
  std::string child(const std::string& mode) const {
    int status = -1;
    const std::string text =
        output_of(fmt::format("env CHAINFOLD_CACHE=on CHAINFOLD_CACHE_DIR='{}' '{}' {}",
                              folder().string(), CHAINFOLD_CACHE_CHILD, mode),
                  status);
    EXPECT_EQ(status, 0) << text;
    return text;
  }
  static void expect_part(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }
  fs::path kernel_file() const {
    const std::vector<fs::path> files = files_below(folder());
    EXPECT_EQ(files.size(), 1U);
    return files.empty() ? fs::path() : files[0];
  }
};

#if defined(CHAINFOLD_TEST_CPU)
TEST_F(DiskCacheSecondProcess, FindsTheCpuKernelOfTheFirst) {
  const std::string first = child("cpu");
  expect_part(first, "compiled=1 from_disk=0 sums=96,96 ");
  expect_part(first, "hits=0 misses=1 stores=1 damaged=0 faults=0");
  const std::string second = child("cpu");
  expect_part(second, "compiled=0 from_disk=1 sums=96,96 ");
  expect_part(second, "hits=1 misses=0 stores=0 damaged=0 faults=0");
  const auto ms = [](const std::string& text) {
    std::smatch match;
    return std::regex_search(text, match, std::regex(" (ms=[0-9.]+)")) ? match.str(1) : "";
  };
  RecordProperty("first", ms(first));
  RecordProperty("second", ms(second));
  EXPECT_TRUE(fs::is_regular_file(kernel_file()));
}

TEST_F(DiskCacheSecondProcess, FindsTheTuningOfTheFirst) {
  const std::string first = child("tune"), second = child("tune");
  expect_part(first, "measured=1 ");
  expect_part(second, "measured=0 compiled=0 ");
  const auto from_plan = [](const std::string& text) {
    const std::size_t at = text.find("plan=");
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(from_plan(first), from_plan(second)) << "the plan and the date of its measurement";
}

TEST_F(DiskCacheSecondProcess, CompilesAnewWhatIsDamaged) {
  child("cpu");
  const fs::path file = kernel_file();
  fs::resize_file(file, fs::file_size(file) / 2);
  const std::string second = child("cpu");
  expect_part(second, "compiled=1 from_disk=0 sums=96,96 ");
  expect_part(second, "hits=0 misses=1 stores=1 damaged=1 faults=1");
  expect_part(child("cpu"), "compiled=0 from_disk=1 sums=96,96 ");
}

TEST_F(DiskCacheSecondProcess, CompilesAnewWhatTheLinkerRefuses) {
  child("cpu");
  const fs::path file = kernel_file();
  DiskCache cache(folder());
  const std::vector<ListedEntry> listed = cache.list();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_NE(listed[0].description.find("over(segments(64), sum(x)) for cpu"), std::string::npos)
      << listed[0].description;
  cache.store(kKernelKind, listed[0].key, "whole, but no object file");
  const std::string second = child("cpu");
  expect_part(second, "compiled=1 from_disk=0 sums=96,96 ");
  expect_part(second, "a kernel from disk was refused");
  expect_part(child("cpu"), "compiled=0 from_disk=1 sums=96,96 ");
}

TEST_F(DiskCacheSecondProcess, ManyAtOnceAgree) {
  int status = -1;
  const std::string text = output_of(
      fmt::format(
          "export CHAINFOLD_CACHE=on CHAINFOLD_CACHE_DIR='{}'; for i in 1 2 3 4; do '{}' cpu "
          "& done; wait",
          folder().string(), CHAINFOLD_CACHE_CHILD),
      status);
  std::size_t right = 0;
  for (std::size_t at = 0; (at = text.find("sums=96,96", at)) != std::string::npos; ++at) ++right;
  EXPECT_EQ(right, 4U) << text;
  EXPECT_EQ(text.find("faults=1"), std::string::npos) << text;
  expect_part(child("cpu"), "compiled=0 from_disk=1 sums=96,96 ");
}

TEST_F(DiskCacheSecondProcess, WorksWithoutAnyFolder) {
  int status = -1;
  const std::string text = output_of(
      fmt::format(
          "env -u CHAINFOLD_CACHE -u CHAINFOLD_CACHE_DIR -u XDG_CACHE_HOME -u HOME '{}' cpu",
          CHAINFOLD_CACHE_CHILD),
      status);
  EXPECT_EQ(status, 0) << text;
  expect_part(text, "compiled=1 from_disk=0 sums=96,96 ");
  expect_part(text, "faults=1\nneither CHAINFOLD_CACHE_DIR nor XDG_CACHE_HOME nor HOME");
}

TEST_F(DiskCacheSecondProcess, AKernelGoesWithItsLastOwner) {
  int status = -1;
  const std::string text = output_of(
      fmt::format("env CHAINFOLD_CACHE=off '{}' resident", CHAINFOLD_CACHE_CHILD), status);
  EXPECT_EQ(status, 0) << text;
  expect_part(text, "reused=0,1,0 compiled=1\n");
}
#endif

TEST_F(DiskCacheSecondProcess, FindsTheCubinOfTheFirstAndDoesNotLoadNvrtc) {
  if (!nvrtc_available()) GTEST_SKIP() << "libnvrtc is not installed";
  const std::string first = child("cuda");
  expect_part(first, "compiled=1 from_disk=0 ");
  expect_part(first, "nvrtc=true");
  expect_part(first, "stores=1 damaged=0 faults=0");
  const std::string second = child("cuda");
  expect_part(second, "compiled=0 from_disk=1 ");
  expect_part(second, "nvrtc=false");
  const auto code = [](const std::string& text) { return text.substr(text.find("code="), 37); };
  EXPECT_EQ(code(first), code(second));
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
  EXPECT_NE(tool("--help", 0).find("CHAINFOLD_CACHE_DIR"), std::string::npos);
}
#endif

}  // namespace
}  // namespace chainfold::runtime
