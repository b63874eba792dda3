#include "chainfold/runtime/jit/kernel_key.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "chainfold/runtime/cache/entry.hpp"

namespace chainfold::runtime {
namespace {

namespace fs = std::filesystem;

/// The version in a name like libnvrtc.so.13.0.88: {13, 0}; {0, 0} for libnvrtc.so alone.
std::pair<int, int> version_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const std::size_t at = name.find(".so.");
  std::pair<int, int> version{0, 0};
  if (at == std::string::npos) return version;
  const char* const end = name.data() + name.size();
  const auto major = std::from_chars(name.data() + at + 4, end, version.first);
  if (major.ec == std::errc() && major.ptr != end) {
    std::from_chars(major.ptr + 1, end, version.second);
  }
  return version;
}

/// Every libnvrtc-builtins that the compiler may open: those beside it, and the loader's.
void add_companions(const FileIdentity& compiler, std::vector<FileIdentity>& found) {
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator it(fs::path(compiler.path).parent_path(), error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with("libnvrtc-builtins.so.")) {
      files.push_back(it->path().string());
    }
  }
  std::sort(files.begin(), files.end());  // a folder has no order of its own
  const auto [major, minor] = version_of(compiler.path);
  const std::string name =
      "libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor);
  if (std::string file = find_on_loader_path(name); !file.empty()) files.push_back(std::move(file));
  for (const std::string& file : files) {
    const auto identity = identify_file(file);
    if (identity && std::find(found.begin(), found.end(), *identity) == found.end()) {
      found.push_back(*identity);
    }
  }
}

void add_files(FieldHash& hash, const std::vector<FileIdentity>& files) {
  hash.add(static_cast<std::int64_t>(files.size()));
  for (const FileIdentity& file : files) hash.add(file.path).add(file.bytes).add(file.modified);
}

FieldHash key_of(std::string_view backend, std::string_view source) {
  FieldHash hash;
  hash.add(kCacheFormat).add(library_version()).add(backend).add(source);
  return hash;
}

}  // namespace

NvrtcIdentity find_nvrtc(const SearchEnvironment& environment) {
  constexpr int kOldestMajor = 12;
  NvrtcIdentity identity;
  for_each_nvrtc_place(environment, [&](const SearchPlace& place) {
    for (const std::string& name : place.files) {
      const auto file = identify_file(find_on_loader_path(name));
      if (!file) continue;
      identity.compilers.push_back(*file);
      add_companions(*file, identity.companions);
      if (version_of(file->path).first >= kOldestMajor) return false;
    }
    return true;
  });
  return identity;
}

const NvrtcIdentity& nvrtc_identity() {
  static const auto& identity = *new NvrtcIdentity(find_nvrtc(SearchEnvironment::current()));
  return identity;
}

bool nvrtc_is_as_identified() {
  const auto loaded = identify_file(nvrtc_path());
  const std::vector<FileIdentity>& named = nvrtc_identity().compilers;
  return loaded && std::find(named.begin(), named.end(), *loaded) != named.end();
}

CacheKey cuda_kernel_key(std::string_view source, const NvrtcOptions& options,
                         const NvrtcIdentity& compiler) {
  FieldHash hash = key_of("cuda", source);
  const std::vector<std::string> words = nvrtc_options(options);  // the architecture among them
  hash.add(static_cast<std::int64_t>(words.size()));
  for (const std::string& word : words) hash.add(word);
  add_files(hash, compiler.compilers);
  add_files(hash, compiler.companions);
  return hash.finish();
}

CacheKey cpu_kernel_key(std::string_view source, std::string_view compiler) {
  return key_of("llvm", source).add(compiler).finish();
}

}  // namespace chainfold::runtime
