#include "chainfold/runtime/host/loader_path.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

namespace chainfold::runtime {
namespace {

/// The folders that the loader searches on behalf of this library, in its order, as it knows them.
std::vector<std::string> search_folders() {
  std::vector<std::string> folders;
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&find_on_loader_path), &self) == 0) return folders;
  void* handle = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) handle = dlopen(nullptr, RTLD_LAZY);  // linked statically into a program
  if (handle == nullptr) return folders;
  Dl_serinfo size{};
  if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0) {
    // A struct that is longer than its type says.
    const std::unique_ptr<void, void (*)(void*)> memory(std::calloc(1, size.dls_size), std::free);
    auto* info = static_cast<Dl_serinfo*>(memory.get());
    if (info != nullptr && dlinfo(handle, RTLD_DI_SERINFOSIZE, info) == 0 &&
        dlinfo(handle, RTLD_DI_SERINFO, info) == 0) {
      const Dl_serpath* paths = info->dls_serpath;
      for (unsigned i = 0; i < info->dls_cnt; ++i) folders.emplace_back(paths[i].dls_name);
    }
  }
  dlclose(handle);
  return folders;
}

bool is_system_folder(const std::string& folder) {
  return folder.starts_with("/lib") || folder.starts_with("/usr/lib");
}

/// The entry of a library in glibc's /etc/ld.so.cache; empty if there is none.
std::string find_in_loader_cache(const std::string& name) {
  struct Header {
    char magic[20];
    std::uint32_t count, string_bytes, unused[5];
  };
  struct Entry {
    std::int32_t flags;
    std::uint32_t name, path, os_version;
    std::uint64_t hardware;
  };
  static_assert(sizeof(Header) == 48 && sizeof(Entry) == 24);
#if defined(__x86_64__)
  constexpr std::int32_t kFlags = 0x0303;
#elif defined(__aarch64__)
  constexpr std::int32_t kFlags = 0x0a03;
#else
  constexpr std::int32_t kFlags = 0x0003;
#endif
  // Read once, as the loader's own search of a process hardly changes; never destroyed.
  static const std::string& file = *[] {
    std::ifstream in("/etc/ld.so.cache", std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return new std::string(text.str());
  }();
  const std::size_t start =
      file.find("glibc-ld.so.cache1.1");  // an older table may stand before it
  if (start == std::string::npos || file.size() - start < sizeof(Header)) return {};
  const std::string_view table = std::string_view(file).substr(start);
  Header header;
  std::memcpy(&header, table.data(), sizeof(header));
  const auto text = [&](std::uint32_t offset) -> std::string_view {
    if (offset >= table.size()) return {};
    const std::string_view rest = table.substr(offset);
    return rest.substr(0, rest.find('\0'));
  };
  for (std::size_t i = 0; i < header.count; ++i) {
    const std::size_t at = sizeof(Header) + i * sizeof(Entry);
    if (at + sizeof(Entry) > table.size()) break;
    Entry entry;
    std::memcpy(&entry, table.data() + at, sizeof(entry));
    if (entry.flags == kFlags && entry.hardware == 0 && text(entry.name) == name) {
      return std::string(text(entry.path));
    }
  }
  return {};
}

}  // namespace

std::optional<FileIdentity> identify_file(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(path.c_str(), nullptr), std::free);
  struct stat status{};
  if (!resolved || stat(resolved.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return FileIdentity{
      .path = resolved.get(),
      .bytes = status.st_size,
      .modified = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::string find_on_loader_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  if (void* loaded = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
    std::string file = file_of_library(loaded);
    dlclose(loaded);
    if (!file.empty()) return file;
  }
  const std::vector<std::string> folders = search_folders();
  const auto find = [&](bool system) -> std::string {
    for (const std::string& folder : folders) {
      if (is_system_folder(folder) != system) continue;
      std::string file = folder + "/" + name;
      if (access(file.c_str(), F_OK) == 0) return file;
    }
    return {};
  };
  if (std::string file = find(false); !file.empty()) return file;
  if (std::string file = find_in_loader_cache(name); !file.empty()) return file;
  return find(true);
}

std::string file_of_library(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  return map->l_name != nullptr ? map->l_name : "";
}

}  // namespace chainfold::runtime
