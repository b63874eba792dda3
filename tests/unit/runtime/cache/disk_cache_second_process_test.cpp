// A second process finds the kernels of the first in the cache on disk, and none that are not its
// own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "chainfold/runtime/cache/disk_cache.hpp"
#include "chainfold/runtime/cache/entry.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/tests/support/child_process.hpp"
#include "chainfold/tests/support/temporary_folder.hpp"

namespace chainfold::runtime {
namespace {

namespace fs = std::filesystem;
using test::files_below;
using test::output_of;

/// Runs chainfold_cache_child with the cache in the test's folder.
class DiskCacheSecondProcess : public testing::Test {
 protected:
  [[nodiscard]] fs::path folder() const { return temporary_.path() / "cache"; }
  /// `variables` of its environment: "A=1 B=2".
  std::string child(const std::string& mode, const std::string& variables = "") const {
    int status = -1;
    const std::string text =
        output_of(fmt::format("env CHAINFOLD_CACHE=on CHAINFOLD_CACHE_DIR='{}' {} '{}' {}",
                              folder().string(), variables, CHAINFOLD_CACHE_CHILD, mode),
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
  /// The one file there, taken out of the cache.
  fs::path taken_out() const {
    const fs::path file = kernel_file();
    const fs::path taken = temporary_.path() / file.filename();
    fs::rename(file, taken);
    return taken;
  }
  /// With `foreign` in place of the kernel's file, the next process says all of `words`, compiles
  /// for itself and puts its kernel there, which the one after it finds.
  void expect_replaced(const std::string& mode, const std::string& foreign,
                       const std::vector<std::string>& words) const {
    const fs::path file = kernel_file();
    write_file(file, foreign);
    const std::string second = child(mode);
    expect_part(second, "compiled=1 from_disk=0 ");
    for (const std::string& part : words) expect_part(second, part);
    EXPECT_EQ(kernel_file(), file) << "the foreign one is replaced";
    EXPECT_NE(read_file(file), foreign);
    const std::string third = child(mode);
    expect_part(third, "compiled=0 from_disk=1 ");
    expect_part(third, "hits=1 misses=0 stores=0 damaged=0 faults=0");
  }
  static std::string read_file(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write_file(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  }

  test::TemporaryFolder temporary_;
};

// What a process says that finds another's entry, whole, under the name of its own.
const std::vector<std::string> kRefused = {"hits=0 misses=1 stores=1 damaged=1 faults=1",
                                           "it holds the entry of another name"};

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

TEST_F(DiskCacheSecondProcess, CompilesAnewWhatIsForAnotherProcessor) {
  child("cpu_whole", "CHAINFOLD_VECTOR_BITS=128");  // code for one without AVX
  const fs::path foreign = taken_out();
  child("cpu_whole");
  if (kernel_file().filename() == foreign.filename()) {
    GTEST_SKIP() << "this processor has no vectors of more than 128 bits";
  }
  expect_replaced("cpu_whole", read_file(foreign), kRefused);
}

TEST_F(DiskCacheSecondProcess, CompilesAnewWhatIsOfAnotherVersion) {
  child("cpu");
  CacheEntry entry;
  ASSERT_EQ(decode_entry(read_file(kernel_file()), entry), "");
  entry.version = "0.0.1";
  expect_replaced("cpu", encode_entry(entry),
                  {"hits=0 misses=1 stores=1 damaged=0 faults=0"});  // nobody's fault
  ++entry.key.low;  // the version is part of what a key is made from
  expect_replaced("cpu", encode_entry(entry), kRefused);
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

TEST_F(DiskCacheSecondProcess, CompilesAnewWhatIsForAnotherArchitecture) {
  if (!nvrtc_available()) GTEST_SKIP() << "libnvrtc is not installed";
  child("cuda_80");
  const fs::path foreign = taken_out();
  child("cuda");
  ASSERT_NE(kernel_file().filename(), foreign.filename());
  expect_replaced("cuda", read_file(foreign), kRefused);
}

}  // namespace
}  // namespace chainfold::runtime
