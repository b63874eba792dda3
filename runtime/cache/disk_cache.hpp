// The cache on disk: compiled kernels, and any small record with a key. It is optional everywhere:
// a disk that is full, read-only, foreign or not there costs time, never an exception.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chainfold/runtime/cache/folder.hpp"
#include "chainfold/runtime/cache/hash128.hpp"
#include "chainfold/runtime/cache/statistics.hpp"

namespace chainfold::runtime {

/// Names an entry within its kind: a hash of every input that can change its bytes.
using CacheKey = Hash128;

inline constexpr std::string_view kKernelKind = "kernel";
inline constexpr std::string_view kTuningKind = "tuning";
inline constexpr std::uint64_t kDefaultCacheBytes = std::uint64_t{1} << 30;

/// Where and how large the cache is, as the environment asks for it.
struct CacheSettings {
  bool off = false;              ///< nothing is kept, not even in memory
  std::filesystem::path folder;  ///< empty: memory only
  std::uint64_t byte_limit = kDefaultCacheBytes;
  std::string warning;  ///< what of the environment could not be followed

  /// Reads CHAINFOLD_CACHE, CHAINFOLD_CACHE_DIR, CHAINFOLD_CACHE_BYTES, XDG_CACHE_HOME and HOME
  /// through `variable`, which returns null for what is not set. A HOME that is no folder counts as
  /// none: it is not made.
  static CacheSettings from(const std::function<const char*(const char*)>& variable);
  /// Of the process's own environment; a set-user-id program reads none of it.
  static CacheSettings of_process();
};

/// An entry as list() finds it.
struct ListedEntry {
  std::string file;  ///< below the folder
  std::string kind, version, description;
  CacheKey key;
  std::uint64_t bytes = 0;   ///< of the file
  std::int64_t created = 0;  ///< seconds since 1970
  std::int64_t used = 0;     ///< seconds since 1970, to an hour
  std::string problem;       ///< why it would not be used; the fields above but `file` may be empty
};

/// Thread-safe; several processes, of several versions of this library, may share one folder. An
/// entry is one file. It is written at once or not at all, and checked whole before any of it is
/// used. When the disk is of no use, entries are kept in memory (up to 64 MiB), and stats() has the
/// first fault.
class DiskCache {
 public:
  /// The cache that the environment asks for.
  static DiskCache& of_process();
  explicit DiskCache(CacheSettings settings);
  explicit DiskCache(const std::filesystem::path& folder,
                     std::uint64_t byte_limit = kDefaultCacheBytes)
      : DiskCache(CacheSettings{.folder = folder, .byte_limit = byte_limit, .warning = {}}) {}

  /// The bytes stored under a key by this version of the library. `kind` is a word of lower-case
  /// letters.
  std::optional<std::string> load(std::string_view kind, const CacheKey& key);
  /// Keeps bytes under a key, in place of others, and evicts what was used least recently when the
  /// limit is passed. `description` is for people: chainfold-cache lists it.
  void store(std::string_view kind, const CacheKey& key, std::string_view bytes,
             std::string_view description = {});
  /// Removes an entry that was whole but of no use to its reader.
  void drop(std::string_view kind, const CacheKey& key);
  /// Notes that something could not be kept, and how to mend it.
  void warn(const std::string& text);

  [[nodiscard]] CacheStatistics stats() const;
  /// Every entry on disk, read and checked; the least recently used first.
  [[nodiscard]] std::vector<ListedEntry> list();
  /// The entries that have a problem; removes them if asked to.
  std::vector<ListedEntry> verify(bool remove);
  /// Removes every entry, and the files that killed writers left. Returns the number of entries.
  std::int64_t clear();

 private:
  using Name = std::string;
  [[nodiscard]] std::optional<std::string> load_from_disk(std::string_view kind,
                                                          const CacheKey& key);
  bool store_on_disk(const Name& name, std::string_view kind, const CacheKey& key,
                     std::string_view bytes, std::string_view description);
  std::vector<CacheFile> files_on_disk();
  void remember(const Name& name, std::string_view bytes);
  void forget(const Name& name);  // with mutex_ held
  void make_room(std::uint64_t added);

  CacheSettings settings_;
  CacheFolder folder_;
  mutable std::mutex mutex_;  // of all below; never held while the disk is read or written
  CacheStatistics stats_;
  std::map<Name, std::string, std::less<>> memory_;  // what the disk refused
  std::uint64_t memory_bytes_ = 0;
  bool counted_ = false;           // whether known_bytes_ was ever right
  std::uint64_t known_bytes_ = 0;  // on disk, but for what other processes did since the last count
  std::uint64_t added_bytes_ = 0;  // by this process since the last count
};

}  // namespace chainfold::runtime
