// Keys of compiled kernels: what changes them, and that the compiler is named without loading it.
#include "chainfold/runtime/jit/kernel_key.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "chainfold/tests/support/temporary_folder.hpp"

namespace chainfold::runtime {
namespace {

namespace fs = std::filesystem;

TEST(KernelKey, IsTheSameInEveryProcess) {
  // Written down, so that a change of what goes in is a change that somebody meant.
  EXPECT_EQ(hash128("chainfold").hex(), "83d5be062895af1f597d0ae36c8e3f22");
  EXPECT_EQ(FieldHash().add("a").add("bc").finish(), FieldHash().add("a").add("bc").finish());
  EXPECT_NE(FieldHash().add("a").add("bc").finish(), FieldHash().add("ab").add("c").finish());
  EXPECT_NE(FieldHash().add("").add("a").finish(), FieldHash().add("a").add("").finish());
}

TEST(KernelKey, EveryInputChangesIt) {
  const NvrtcIdentity nvrtc{.compilers = {{"/lib/libnvrtc.so.13.0.88", 100, 5}},
                            .companions = {{"/lib/libnvrtc-builtins.so.13.0.88", 10, 5}}};
  std::set<CacheKey> keys;
  const auto add = [&](const CacheKey& key) {
    EXPECT_TRUE(keys.insert(key).second) << keys.size();
  };
  add(cuda_kernel_key("source", {.arch = 90}, nvrtc));
  add(cuda_kernel_key("source ", {.arch = 90}, nvrtc));
  add(cuda_kernel_key("source", {.arch = 80}, nvrtc));
  add(cuda_kernel_key("source", {.arch = 90, .arch_suffix = "a"}, nvrtc));
  add(cuda_kernel_key("source", {.arch = 90, .resource_report = true}, nvrtc));
  add(cuda_kernel_key("source", {.arch = 90, .ptx = true}, nvrtc));
  add(cuda_kernel_key("source", {.arch = 90}, {}));
  for (const bool companion : {false, true}) {
    for (int field = 0; field < 3; ++field) {
      NvrtcIdentity other = nvrtc;
      FileIdentity& file = (companion ? other.companions : other.compilers)[0];
      if (field == 0) file.path += "x";
      if (field == 1) ++file.bytes;
      if (field == 2) ++file.modified;
      add(cuda_kernel_key("source", {.arch = 90}, other));
    }
  }
  NvrtcIdentity moved{.compilers = {nvrtc.compilers[0], nvrtc.companions[0]}, .companions = {}};
  add(cuda_kernel_key("source", {.arch = 90}, moved));
  add(cpu_kernel_key("source", "LLVM 19.1.7, znver4 with +avx2"));
  add(cpu_kernel_key("source", "LLVM 19.1.8, znver4 with +avx2"));
  add(cpu_kernel_key("source", "LLVM 19.1.7, znver4 with +avx2,+avx512f"));
  add(cpu_kernel_key("other", "LLVM 19.1.7, znver4 with +avx2"));
  EXPECT_EQ(cuda_kernel_key("source", {.arch = 90}, nvrtc),
            *keys.find(cuda_kernel_key("source", {.arch = 90}, nvrtc)));
}

TEST(KernelKey, TheCompilerIsTheFirstThatWillDo) {
  const test::TemporaryFolder temporary;
  const auto add = [&](const std::string& path) {
    const fs::path file = temporary.path() / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << path;
    return fs::canonical(file).string();
  };
  SearchEnvironment environment;
  environment.root = temporary.path();
  const std::string named = add("named/libnvrtc.so.11.2");
  environment.variables = {{"CHAINFOLD_NVRTC", named}};
  NvrtcIdentity identity = find_nvrtc(environment);
  ASSERT_EQ(identity.compilers.size(), 1U) << "it may do, for all that its name tells";
  EXPECT_EQ(identity.compilers[0].path, named);
  EXPECT_EQ(identity.compilers[0].bytes, static_cast<std::int64_t>(fs::file_size(named)));

  const std::string file = add("toolkit/libnvrtc.so.13.0.88");
  const std::string builtins = add("toolkit/libnvrtc-builtins.so.13.0.88");
  fs::create_symlink(file, temporary.path() / "libnvrtc.so");
  environment.variables = {{"CHAINFOLD_NVRTC", (temporary.path() / "libnvrtc.so").string()}};
  identity = find_nvrtc(environment);
  ASSERT_EQ(identity.compilers.size(), 1U);
  EXPECT_EQ(identity.compilers[0].path, file);
  ASSERT_FALSE(identity.companions.empty());
  EXPECT_EQ(identity.companions[0].path, builtins);

  fs::last_write_time(builtins, fs::last_write_time(builtins) + std::chrono::seconds(1));
  EXPECT_NE(find_nvrtc(environment), identity) << "another build of the same name";
  environment.variables = {{"CHAINFOLD_NVRTC", "/no/such/libnvrtc.so.13"}};
  EXPECT_TRUE(find_nvrtc(environment).compilers.empty());
}

TEST(KernelKey, TheLoadersChoiceIsForeseen) {
  for (const std::string name :
       {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libz.so.1", "libtbb.so.12", "libzstd.so.1",
        "libnvrtc.so.13", "libno-such-library.so"}) {
    const std::string foreseen = find_on_loader_path(name);
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
      EXPECT_EQ(foreseen, "") << name;
      continue;
    }
    const auto actual = identify_file(file_of_library(handle));
    ASSERT_TRUE(actual) << name;
    EXPECT_EQ(identify_file(foreseen), actual) << name << ": " << foreseen;
  }
  EXPECT_EQ(find_on_loader_path("/a/path.so"), "/a/path.so");
}

TEST(KernelKey, TheNvrtcThatLoadsIsTheOneInTheKey) {
  if (!nvrtc_available()) GTEST_SKIP() << "libnvrtc is not installed";
  EXPECT_TRUE(nvrtc_is_as_identified()) << nvrtc_path();
  EXPECT_FALSE(nvrtc_identity().companions.empty());
}

}  // namespace
}  // namespace chainfold::runtime
