#include "chainfold/runtime/host/library_search.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

namespace chainfold::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariables[] = {
    "CHAINFOLD_LIBCUDA", "CHAINFOLD_NVRTC", "CUDA_HOME", "CUDA_PATH",
    "VIRTUAL_ENV",       "CONDA_PREFIX",    "HOME"};

/// Compares by the numbers in two names, so that cuda-12.10 is newer than cuda-12.9.
bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const std::size_t first_i = i;
      const std::size_t first_j = j;
      while (i < a.size() && digit(a[i])) ++i;
      while (j < b.size() && digit(b[j])) ++j;
      const std::string_view x = a.substr(first_i, i - first_i);
      const std::string_view y = b.substr(first_j, j - first_j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

/// The entries of a folder whose names start with `prefix`, newest version first.
std::vector<fs::path> entries(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return natural_less(b.filename().string(), a.filename().string());
  });
  return found;
}

/// The libnvrtc files of one folder: versioned names newest first, then the plain one.
std::vector<std::string> nvrtc_files(const fs::path& folder) {
  std::vector<std::string> files;
  for (const fs::path& file : entries(folder, "libnvrtc.so")) files.push_back(file.string());
  return files;
}

SearchPlace folder_place(std::string description, const fs::path& folder) {
  SearchPlace place{std::move(description), nvrtc_files(folder), {}};
  std::error_code error;
  if (place.files.empty()) {
    place.note = fs::is_directory(folder, error) ? "no libnvrtc.so* there" : "no such folder";
  }
  return place;
}

SearchPlace override_place(const char* name, const std::string& value) {
  return {fmt::format("${}={} (nothing else is tried while it is set)", name, value), {value}, {}};
}

/// <library>/python3*/{site,dist}-packages/nvidia/*/lib under one prefix.
SearchPlace wheel_place(const std::string& description, const fs::path& library) {
  SearchPlace place{
      fmt::format("{} ({}/python3*/*-packages/nvidia/*/lib)", description, library.string()),
      {},
      {}};
  for (const fs::path& python : entries(library, "python3")) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& wheel : entries(python / packages / "nvidia", "")) {
        for (std::string& file : nvrtc_files(wheel / "lib")) place.files.push_back(std::move(file));
      }
    }
  }
  if (place.files.empty()) place.note = "no CUDA wheel there";
  return place;
}

}  // namespace

SearchEnvironment SearchEnvironment::current() {
  SearchEnvironment environment;
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') environment.variables[name] = value;
  }
  return environment;
}

std::string SearchEnvironment::variable(const std::string& name) const {
  const auto it = variables.find(name);
  return it == variables.end() ? std::string() : it->second;
}

std::vector<SearchPlace> driver_places(const SearchEnvironment& environment) {
  const std::string chosen = environment.variable("CHAINFOLD_LIBCUDA");
  if (!chosen.empty()) return {override_place("CHAINFOLD_LIBCUDA", chosen)};
  std::vector<SearchPlace> places = {{"the loader's path", {"libcuda.so.1"}, {}}};
  for (const char* folder : {"usr/lib/wsl/lib", "usr/local/nvidia/lib64"}) {
    const fs::path file = environment.root / folder / "libcuda.so.1";
    std::error_code error;
    const bool exists = fs::exists(file, error);
    places.push_back({file.parent_path().string(),
                      exists ? std::vector{file.string()} : std::vector<std::string>(),
                      exists ? "" : "no libcuda.so.1 there"});
  }
  return places;
}

void for_each_nvrtc_place(const SearchEnvironment& environment,
                          const std::function<bool(SearchPlace)>& visit) {
  const std::string chosen = environment.variable("CHAINFOLD_NVRTC");
  if (!chosen.empty()) {
    visit(override_place("CHAINFOLD_NVRTC", chosen));
    return;
  }
  if (!visit({"$CHAINFOLD_NVRTC", {}, "not set"})) return;
  if (!visit({"the loader's path", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, {}}))
    return;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string home = environment.variable(name);
    if (!visit(home.empty() ? SearchPlace{fmt::format("${}", name), {}, "not set"}
                            : folder_place(fmt::format("${}/lib64 ({})", name, home),
                                           fs::path(home) / "lib64"))) {
      return;
    }
  }
  const fs::path local = environment.root / "usr/local";
  const std::vector<fs::path> toolkits = entries(local, "cuda");
  for (const fs::path& toolkit : toolkits) {
    if (!visit(folder_place((toolkit / "lib64").string(), toolkit / "lib64"))) return;
  }
  if (toolkits.empty() &&
      !visit({fmt::format("{}/cuda*/lib64", local.string()), {}, "no such folder"})) {
    return;
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = environment.variable(name);
    if (prefix.empty()) {
      if (!visit({fmt::format("${}", name), {}, "not set"})) return;
      continue;
    }
    // Conda's own toolkit packages put the library straight into the environment's lib folder.
    const fs::path library = fs::path(prefix) / "lib";
    if (!visit(folder_place(fmt::format("${}/lib ({})", name, prefix), library))) return;
    if (!visit(wheel_place(fmt::format("Python wheels of ${}", name), library))) return;
  }
  const std::string home = environment.variable("HOME");
  if (!home.empty() &&
      !visit(wheel_place("Python wheels of the user", fs::path(home) / ".local/lib"))) {
    return;
  }
  if (!visit(wheel_place("Python wheels of the system", local / "lib"))) return;
  visit(wheel_place("Python wheels of the system", environment.root / "usr/lib"));
}

std::vector<SearchPlace> nvrtc_places(const SearchEnvironment& environment) {
  std::vector<SearchPlace> places;
  for_each_nvrtc_place(environment, [&](SearchPlace place) {
    places.push_back(std::move(place));
    return true;
  });
  return places;
}

OpenedLibrary open_first(const std::vector<SearchPlace>& places, AcceptLibrary accept) {
  OpenedLibrary result;
  for (const SearchPlace& place : places) {
    if (place.files.empty()) {
      result.attempts.push_back(fmt::format("{}: {}", place.description, place.note));
    }
    for (const std::string& file : place.files) {
      void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
      std::string reason;
      if (handle == nullptr) {
        const char* text = dlerror();
        reason = text != nullptr ? text : "dlopen failed";
      } else if (accept != nullptr) {
        reason = accept(handle, file);
      }
      if (handle != nullptr && reason.empty()) {
        result.handle = handle;
        result.file = file;
        return result;
      }
      // dlopen's texts start with the file's name already.
      const bool named = reason.starts_with(file);
      result.attempts.push_back(named ? fmt::format("{}: {}", place.description, reason)
                                      : fmt::format("{}: {}: {}", place.description, file, reason));
    }
  }
  return result;
}

std::string missing_library_text(const std::string& name, const OpenedLibrary& search,
                                 const std::string& fix) {
  std::string text = fmt::format("{} was not found. Looked at:", name);
  for (const std::string& attempt : search.attempts) text += "\n  " + attempt;
  return text + "\nFix: " + fix;
}

}  // namespace chainfold::runtime
