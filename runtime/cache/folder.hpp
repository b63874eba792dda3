// The files of a cache folder, opened so that no other user's file is ever read or written. The
// folder, its subfolders and its files belong to this user, no other user may write them, and none
// is a symbolic link. Every operation opens the folder anew, so that it may be moved or removed at
// any time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace chainfold::runtime {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept;

 private:
  int fd_;
};

/// What became of an operation. `absent`: there is no such file, which is no fault.
enum class FileOutcome : std::uint8_t { done, absent, refused };

/// A file of the cache as the folder lists it.
struct CacheFile {
  std::string name;         ///< "<two digits>/<file name>"
  std::uint64_t bytes = 0;  ///< its length
  std::int64_t used = 0;    ///< nanoseconds since 1970: when it was last written or marked as used
  bool temporary = false;   ///< of a writer, at work or killed
};

/// Bytes a file takes of the limit: whole blocks, which bounds the number of files too.
[[nodiscard]] constexpr std::uint64_t disk_bytes(std::uint64_t bytes) noexcept {
  return (bytes + 4095) / 4096 * 4096;
}

/// Files are named "<two digits>/<file name>". Operations that fail report the reason in `why`,
/// with the way to mend it where there is one.
class CacheFolder {
 public:
  explicit CacheFolder(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Reads a whole file and marks it as used (at most once an hour).
  FileOutcome read(const std::string& name, std::string& bytes, std::string& why) const;
  /// Writes a file at once or not at all, in place of one that may be there. Makes the folders.
  FileOutcome write(const std::string& name, std::string_view bytes, std::string& why) const;
  /// Removes a file; whether it was there.
  bool remove(const std::string& name) const;
  /// All files, in no order. `absent` if the folder is not there.
  FileOutcome files(std::vector<CacheFile>& found, std::string& why) const;
  /// Removes the subfolders that are empty.
  void remove_empty_folders() const;

 private:
  Descriptor open(bool make, FileOutcome& outcome, std::string& why) const;
  Descriptor open_sub(const Descriptor& folder, const std::string& sub, bool make,
                      FileOutcome& outcome, std::string& why) const;
  std::filesystem::path path_;
};

}  // namespace chainfold::runtime
