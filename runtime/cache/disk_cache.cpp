#include "chainfold/runtime/cache/disk_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <system_error>
#include <tuple>

#include "chainfold/runtime/cache/entry.hpp"

namespace chainfold::runtime {
namespace {

constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 20;
constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr std::int64_t kKilledAfter = 3600;  // seconds: no writer takes that long

std::string name_of(std::string_view kind, const CacheKey& key) {
  const std::string hex = key.hex();
  return fmt::format("{}/{}.{}", hex.substr(0, 2), hex, kind);
}

/// "1000", "512K", "64M" or "2G".
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || unit.size() > 1) return std::nullopt;
  const std::size_t power = unit.empty() ? 0 : std::string_view("KMG").find(unit[0]) + 1;
  if (power > 3 || (!unit.empty() && power == 0) || value > UINT64_MAX >> (10 * power)) {
    return std::nullopt;
  }
  return value << (10 * power);
}

/// The value of a switch of the environment, in any case of letters; nothing for other words.
std::optional<bool> parse_switch(std::string_view text) {
  std::string word(text);
  for (char& c : word) {  // not by tolower(), which depends on the program's locale
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (word == "on" || word == "1" || word == "yes" || word == "true") return true;
  if (word == "off" || word == "0" || word == "no" || word == "false") return false;
  return std::nullopt;
}

/// Whether an entry is the one that was asked for; says why not.
std::string mismatch(const CacheEntry& entry, const std::string& name) {
  if (name_of(entry.kind, entry.key) == name) return {};
  return "it holds the entry of another name";
}

}  // namespace

CacheSettings CacheSettings::from(const std::function<const char*(const char*)>& variable) {
  const auto text = [&](const char* name) -> std::string_view {
    const char* value = variable(name);
    return value != nullptr ? value : "";
  };
  CacheSettings settings;
  const auto warn = [&](const std::string& what) {  // none hides another
    settings.warning += (settings.warning.empty() ? "" : "; ") + what;
  };
  if (const std::string_view mode = text("CHAINFOLD_CACHE"); !mode.empty()) {
    const std::optional<bool> on = parse_switch(mode);
    settings.off = on == false;
    if (!on) {
      warn(
          fmt::format("CHAINFOLD_CACHE={} means nothing, so the cache is on; Fix: off, 0, no or "
                      "false turn it off, on, 1, yes or true leave it on",
                      mode));
    }
  }
  if (const std::string_view limit = text("CHAINFOLD_CACHE_BYTES"); !limit.empty()) {
    if (const auto bytes = parse_bytes(limit)) {
      settings.byte_limit = *bytes;
    } else {
      warn(
          fmt::format("CHAINFOLD_CACHE_BYTES={} is no number of bytes, so the limit is 1G; Fix: "
                      "digits, and K, M or G behind them",
                      limit));
    }
  }
  const std::filesystem::path xdg = text("XDG_CACHE_HOME");
  const std::filesystem::path home = text("HOME");
  std::error_code error;
  if (const char* chosen = variable("CHAINFOLD_CACHE_DIR")) {
    settings.folder = chosen;
    if (*chosen == '\0') warn("CHAINFOLD_CACHE_DIR is empty: kernels stay in memory");
  } else if (xdg.is_absolute()) {  // its specification has a relative one ignored
    settings.folder = xdg / "chainfold";
  } else if (home.is_absolute() && std::filesystem::is_directory(home, error)) {
    settings.folder = home / ".cache" / "chainfold";
  } else if (!settings.off) {  // a HOME that is none may be an account's that is to have none
    const std::string why =
        home.is_absolute()
            ? fmt::format("HOME={} is no folder", home.string())
            : "neither CHAINFOLD_CACHE_DIR nor XDG_CACHE_HOME nor HOME names a folder";
    warn(why +
         ", so compiled kernels are lost when the process ends; Fix: set CHAINFOLD_CACHE_DIR");
  }
  return settings;
}

CacheSettings CacheSettings::of_process() {
  return from([](const char* name) -> const char* { return secure_getenv(name); });
}

DiskCache& DiskCache::of_process() {
  // Never destroyed: kernels may be compiled while statics are destroyed.
  static auto* const cache = new DiskCache(CacheSettings::of_process());
  return *cache;
}

DiskCache::DiskCache(CacheSettings settings)
    : settings_(std::move(settings)), folder_(settings_.folder) {
  stats_.byte_limit = settings_.byte_limit;
  if (settings_.off) return;
  if (!settings_.folder.empty()) stats_.directory = folder_.path().string();
  if (!settings_.warning.empty()) warn(settings_.warning);
}

std::vector<CacheFile> DiskCache::files_on_disk() {
  std::vector<CacheFile> files;
  if (settings_.off || settings_.folder.empty()) return files;
  std::string why;
  if (folder_.files(files, why) == FileOutcome::refused) warn(why);
  return files;
}

void DiskCache::warn(const std::string& text) {
  const std::lock_guard lock(mutex_);
  ++stats_.faults;
  if (stats_.warning.empty()) stats_.warning = text;
}

std::optional<std::string> DiskCache::load(std::string_view kind, const CacheKey& key) {
  if (settings_.off) return std::nullopt;
  std::optional<std::string> bytes;
  try {
    bytes = load_from_disk(kind, key);
  } catch (const std::exception& error) {  // memory, or a path that cannot be spelled
    warn(error.what());
  }
  const std::lock_guard lock(mutex_);
  if (!bytes) {
    const auto kept = memory_.find(name_of(kind, key));
    if (kept != memory_.end()) bytes = kept->second;
  }
  ++(bytes ? stats_.hits : stats_.misses);
  return bytes;
}

std::optional<std::string> DiskCache::load_from_disk(std::string_view kind, const CacheKey& key) {
  if (settings_.folder.empty()) return std::nullopt;
  const Name name = name_of(kind, key);
  std::string file;
  std::string why;
  const FileOutcome outcome = folder_.read(name, file, why);
  if (outcome == FileOutcome::refused) warn(why);
  if (outcome != FileOutcome::done) return std::nullopt;
  CacheEntry entry;
  why = decode_entry(file, entry);
  if (why.empty()) why = mismatch(entry, name);
  if (!why.empty()) {
    folder_.remove(name);
    warn(
        fmt::format("{} was damaged ({}) and is removed; a file system that lost power or space "
                    "does that",
                    (folder_.path() / name).string(), why));
    const std::lock_guard lock(mutex_);
    ++stats_.damaged;
    return std::nullopt;
  }
  if (entry.version != library_version()) return std::nullopt;
  return std::move(entry.payload);
}

void DiskCache::store(std::string_view kind, const CacheKey& key, std::string_view bytes,
                      std::string_view description) {
  if (settings_.off) return;
  try {
    const Name name = name_of(kind, key);
    if (store_on_disk(name, kind, key, bytes, description)) {
      const std::lock_guard lock(mutex_);
      ++stats_.stores;
      forget(name);
    } else {
      remember(name, bytes);
    }
  } catch (const std::exception& error) {
    warn(error.what());
  }
}

bool DiskCache::store_on_disk(const Name& name, std::string_view kind, const CacheKey& key,
                              std::string_view bytes, std::string_view description) {
  if (settings_.folder.empty()) return false;
  const std::string file = encode_entry({.kind = std::string(kind),
                                         .version = std::string(library_version()),
                                         .description = std::string(description),
                                         .key = key,
                                         .created = std::time(nullptr),
                                         .payload = std::string(bytes)});
  if (disk_bytes(file.size()) > settings_.byte_limit) {
    warn(
        fmt::format("an entry of {} bytes is larger than the whole cache may be ({} bytes); Fix: "
                    "raise CHAINFOLD_CACHE_BYTES",
                    file.size(), settings_.byte_limit));
    return false;
  }
  std::string why;
  if (folder_.write(name, file, why) != FileOutcome::done) {
    warn(fmt::format("kernels are kept in memory only: {}", why));
    return false;
  }
  make_room(disk_bytes(file.size()));
  return true;
}

void DiskCache::remember(const Name& name, std::string_view bytes) {
  if (bytes.size() > kMemoryBytes) return;
  const std::lock_guard lock(mutex_);
  forget(name);
  if (memory_bytes_ + bytes.size() > kMemoryBytes) {
    memory_.clear();
    memory_bytes_ = 0;
  }
  memory_bytes_ += bytes.size();
  memory_[name] = bytes;
}

void DiskCache::forget(const Name& name) {
  const auto kept = memory_.find(name);
  if (kept == memory_.end()) return;
  memory_bytes_ -= kept->second.size();
  memory_.erase(kept);
}

void DiskCache::make_room(std::uint64_t added) {
  {
    // Counting reads every folder. So it is done once, and again when the bytes that this and other
    // processes may have added since matter.
    const std::lock_guard lock(mutex_);
    known_bytes_ += added;
    added_bytes_ += added;
    if (counted_ && known_bytes_ <= settings_.byte_limit &&
        added_bytes_ <= settings_.byte_limit / 16) {
      return;
    }
    counted_ = true;
    added_bytes_ = 0;
  }
  std::vector<CacheFile> files = files_on_disk();
  const std::int64_t killed_before = (std::time(nullptr) - kKilledAfter) * kNanoseconds;
  std::uint64_t total = 0;
  for (const CacheFile& file : files) {
    if (file.temporary && file.used < killed_before) {
      folder_.remove(file.name);
    } else {
      total += disk_bytes(file.bytes);
    }
  }
  std::int64_t evicted = 0;
  if (total > settings_.byte_limit) {
    std::erase_if(files, [](const CacheFile& file) { return file.temporary; });
    std::sort(files.begin(), files.end(), [](const CacheFile& a, const CacheFile& b) {
      return std::tie(a.used, a.name) < std::tie(b.used, b.name);
    });
    const std::uint64_t goal = settings_.byte_limit / 10 * 9;  // so that not every store evicts
    for (auto file = files.begin(); file != files.end() && total > goal; ++file) {
      total -= disk_bytes(file->bytes);  // gone, by us or by another process
      evicted += folder_.remove(file->name) ? 1 : 0;
    }
  }
  const std::lock_guard lock(mutex_);
  known_bytes_ = total;
  stats_.evictions += evicted;
}

void DiskCache::drop(std::string_view kind, const CacheKey& key) {
  const Name name = name_of(kind, key);
  if (!stats_.directory.empty()) folder_.remove(name);
  const std::lock_guard lock(mutex_);
  forget(name);
}

CacheStatistics DiskCache::stats() const {
  std::vector<CacheFile> files;
  std::string why;  // not reported here: reads and writes report it
  if (!stats_.directory.empty()) static_cast<void>(folder_.files(files, why));
  const std::lock_guard lock(mutex_);
  CacheStatistics stats = stats_;
  for (const CacheFile& file : files) stats.bytes += disk_bytes(file.bytes);
  return stats;
}

std::vector<ListedEntry> DiskCache::list() {
  std::vector<ListedEntry> listed;
  std::vector<CacheFile> files = files_on_disk();
  std::sort(files.begin(), files.end(), [](const CacheFile& a, const CacheFile& b) {
    return std::tie(a.used, a.name) < std::tie(b.used, b.name);
  });
  for (const CacheFile& file : files) {
    if (file.temporary) continue;
    ListedEntry& entry = listed.emplace_back();
    entry.file = file.name;
    entry.bytes = file.bytes;
    entry.used = file.used / kNanoseconds;
    std::string bytes;
    const FileOutcome outcome = folder_.read(file.name, bytes, entry.problem);
    if (outcome == FileOutcome::absent) listed.pop_back();  // evicted meanwhile
    if (outcome != FileOutcome::done) continue;
    CacheEntry read;
    entry.problem = decode_entry(bytes, read);
    if (!entry.problem.empty()) continue;
    entry.problem = mismatch(read, file.name);
    entry.kind = std::move(read.kind);
    entry.version = std::move(read.version);
    entry.description = std::move(read.description);
    entry.key = read.key;
    entry.created = read.created;
  }
  return listed;
}

std::vector<ListedEntry> DiskCache::verify(bool remove) {
  std::vector<ListedEntry> bad = list();
  std::erase_if(bad, [](const ListedEntry& entry) { return entry.problem.empty(); });
  for (const ListedEntry& entry : bad) {
    if (remove) folder_.remove(entry.file);
  }
  return bad;
}

std::int64_t DiskCache::clear() {
  const std::vector<CacheFile> files = files_on_disk();
  std::int64_t removed = 0;
  for (const CacheFile& file : files) {
    if (folder_.remove(file.name) && !file.temporary) ++removed;
  }
  if (!files.empty()) folder_.remove_empty_folders();
  const std::lock_guard lock(mutex_);
  memory_.clear();
  memory_bytes_ = 0;
  counted_ = false;
  return removed;
}

}  // namespace chainfold::runtime

namespace chainfold {
CacheStatistics cache_statistics() { return runtime::DiskCache::of_process().stats(); }
}  // namespace chainfold
