#include "chainfold/runtime/host/library_search.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace chainfold::runtime {
namespace {

namespace fs = std::filesystem;

/// A made-up machine below a temporary folder.
class LibrarySearch : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        fs::temp_directory_path() / ("chainfold_search_" + std::to_string(getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    environment_.root = root_;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string add(const std::string& path) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "no library";
    return file.string();
  }
  /// All files of a search, in order.
  static std::vector<std::string> files(const std::vector<SearchPlace>& places) {
    std::vector<std::string> all;
    for (const SearchPlace& place : places) {
      all.insert(all.end(), place.files.begin(), place.files.end());
    }
    return all;
  }

  fs::path root_;
  SearchEnvironment environment_;
};

TEST_F(LibrarySearch, OrdersToolkitsBeforeWheelsAndNewestFirst) {
  const std::string old_toolkit = add("usr/local/cuda-12.9/lib64/libnvrtc.so.12");
  const std::string new_toolkit = add("usr/local/cuda-12.10/lib64/libnvrtc.so.12");
  const std::string home_toolkit = add("opt/toolkit/lib64/libnvrtc.so.13");
  const std::string home_plain = add("opt/toolkit/lib64/libnvrtc.so");
  add("opt/toolkit/lib64/libnvrtc-builtins.so.13.0");
  const std::string venv =
      add("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string user =
      add("home/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string system =
      add("usr/local/lib/python3.11/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  environment_.variables = {{"CUDA_HOME", (root_ / "opt/toolkit").string()},
                            {"VIRTUAL_ENV", (root_ / "venv").string()},
                            {"HOME", (root_ / "home").string()}};
  EXPECT_EQ(
      files(nvrtc_places(environment_)),
      (std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", home_toolkit,
                                home_plain, new_toolkit, old_toolkit, venv, user, system}));
}

TEST_F(LibrarySearch, AnOverrideIsTheOnlyPlace) {
  add("usr/local/cuda-12.9/lib64/libnvrtc.so.12");
  environment_.variables = {{"CHAINFOLD_NVRTC", "/my/nvrtc.so"},
                            {"CHAINFOLD_LIBCUDA", "/my/cuda.so"}};
  EXPECT_EQ(files(nvrtc_places(environment_)), std::vector<std::string>{"/my/nvrtc.so"});
  EXPECT_EQ(files(driver_places(environment_)), std::vector<std::string>{"/my/cuda.so"});
}

TEST_F(LibrarySearch, FindsTheDriverOfWslAndContainers) {
  const std::string wsl = add("usr/lib/wsl/lib/libcuda.so.1");
  EXPECT_EQ(files(driver_places(environment_)), (std::vector<std::string>{"libcuda.so.1", wsl}));
}

TEST_F(LibrarySearch, TheErrorNamesEveryPlaceAndTheFix) {
  const std::string broken = add("opt/toolkit/lib64/libnvrtc.so.13");
  environment_.variables = {{"CUDA_PATH", (root_ / "opt/toolkit").string()},
                            {"HOME", (root_ / "home").string()}};
  std::vector<SearchPlace> places = nvrtc_places(environment_);
  // The loader's own path belongs to this machine, not to the made-up one.
  std::erase_if(places,
                [](const SearchPlace& place) { return place.description == "the loader's path"; });
  const OpenedLibrary opened = open_first(places);
  EXPECT_EQ(opened.handle, nullptr);
  const std::string text = missing_library_text("libnvrtc", opened, "install it.");
  const std::vector<std::string> parts = {"libnvrtc was not found. Looked at:",
                                          "$CHAINFOLD_NVRTC: not set",
                                          "$CUDA_HOME: not set",
                                          "$CUDA_PATH/lib64",
                                          broken,
                                          "file too short",
                                          (root_ / "usr/local/cuda*/lib64").string(),
                                          "$VIRTUAL_ENV: not set",
                                          "$CONDA_PREFIX: not set",
                                          (root_ / "home/.local/lib").string(),
                                          (root_ / "usr/lib").string(),
                                          "Fix: install it."};
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }
}

TEST_F(LibrarySearch, ARefusedLibraryIsPassedOverWithItsReason) {
  const std::vector<SearchPlace> places = {{"first", {"libc.so.6", "libm.so.6"}, {}}};
  const OpenedLibrary opened = open_first(places, [](void*, const std::string& file) {
    return file == "libc.so.6" ? std::string("too old") : std::string();
  });
  EXPECT_NE(opened.handle, nullptr);
  EXPECT_EQ(opened.file, "libm.so.6");
  EXPECT_EQ(opened.attempts, std::vector<std::string>{"first: libc.so.6: too old"});
}

}  // namespace
}  // namespace chainfold::runtime
