#include "chainfold/runtime/cache/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <system_error>
#include <utility>

namespace chainfold::runtime {
namespace {

constexpr std::string_view kTemporary = ".tmp-";
constexpr std::int64_t kMarkAfter = 3600;                   // seconds
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;  // of one file: more is no entry of ours

std::string error_text(int error) { return std::generic_category().message(error); }

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Why a file or folder is not to be trusted; empty if it is.
std::string distrust(const struct stat& status, const std::string& path, bool folder) {
  if (folder ? !S_ISDIR(status.st_mode) : !S_ISREG(status.st_mode)) {
    return fmt::format("{} is no {}", path, folder ? "folder" : "regular file");
  }
  if (status.st_uid != geteuid()) {
    return fmt::format("{} belongs to user {}, not to user {}, so its code is not run", path,
                       status.st_uid, geteuid());
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format(
        "{} can be written by others (mode {:o}), so its code is not run; Fix: chmod "
        "go-w it after looking at what is in it",
        path, status.st_mode & 07777);
  }
  return {};
}

/// Reads all `size` bytes; false with errno set, or with errno 0 at an early end.
bool read_all(int fd, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::read(fd, to, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (count == 0) errno = 0;
      return false;
    }
    to += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (count == 0) errno = ENOSPC;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

/// Unlike a process id this is unique across containers and machines that share the folder.
std::string temporary_name() {
  std::uint64_t random[2] = {};
  if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    random[0] = static_cast<std::uint64_t>(getpid());
    random[1] = static_cast<std::uint64_t>(nanoseconds(now));
  }
  return fmt::format("{}{:016x}{:016x}", kTemporary, random[0], random[1]);
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// "<32 digits>.<kind>" in the subfolder of its first two digits.
bool is_entry_name(std::string_view name, std::string_view sub) {
  return name.size() > 33 && name[32] == '.' && is_hex(name.substr(0, 32)) && name.starts_with(sub);
}

/// Calls visit(name) for every name in a folder.
template <class Visit>
void for_each_name(const Descriptor& folder, Visit visit) {
  // The stream needs a descriptor of its own: it moves the position and closes it.
  Descriptor copy(openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy) return;
  DIR* stream = fdopendir(copy.get());
  if (stream == nullptr) return;
  copy.release();
  const std::unique_ptr<DIR, int (*)(DIR*)> guard(stream, closedir);
  while (const dirent* entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") visit(std::string(name));
  }
}

/// Makes the folder and those above it that are missing, for this user alone. Returns the error of
/// the first that could not be made, else 0. Opening the folder shows whether it is there now.
int make_folders(const std::filesystem::path& path) {
  int why = 0;
  std::filesystem::path so_far;
  for (const auto& part : path) {
    so_far /= part;
    if (mkdir(so_far.c_str(), 0700) != 0 && errno != EEXIST && why == 0) why = errno;
  }
  return why;
}

std::pair<std::string, std::string> split(const std::string& name) {
  const std::size_t slash = name.find('/');
  return {name.substr(0, slash), name.substr(slash + 1)};
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

int Descriptor::release() noexcept { return std::exchange(fd_, -1); }

CacheFolder::CacheFolder(const std::filesystem::path& path) {
  std::error_code error;
  path_ = std::filesystem::absolute(path, error).lexically_normal();
  // With a slash at its end a symbolic link would be followed.
  if (!path_.has_filename()) path_ = path_.parent_path();
}

Descriptor CacheFolder::open(bool make, FileOutcome& outcome, std::string& why) const {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  outcome = FileOutcome::refused;
  Descriptor folder(::open(path_.c_str(), kFlags));
  int made = 0;
  if (!folder && errno == ENOENT && make) {
    made = make_folders(path_);
    folder = Descriptor(::open(path_.c_str(), kFlags));
  }
  if (!folder) {
    // A folder that could not be made is reported with the error of making it.
    const int error = errno == ENOENT && made != 0 ? made : errno;
    if (error == ENOENT && !make) {
      outcome = FileOutcome::absent;
    } else if (error == ELOOP || error == ENOTDIR) {
      why = fmt::format("{} is a symbolic link, or not a folder; Fix: name the folder itself",
                        path_.string());
    } else {
      why = fmt::format("{} cannot be opened or made: {}", path_.string(), error_text(error));
    }
    return folder;
  }
  struct stat status{};
  if (fstat(folder.get(), &status) != 0) {
    why = fmt::format("{}: {}", path_.string(), error_text(errno));
    return Descriptor();
  }
  why = distrust(status, path_.string(), true);
  if (!why.empty()) return Descriptor();
  outcome = FileOutcome::done;
  return folder;
}

Descriptor CacheFolder::open_sub(const Descriptor& folder, const std::string& sub, bool make,
                                 FileOutcome& outcome, std::string& why) const {
  const std::string shown = (path_ / sub).string();
  outcome = FileOutcome::refused;
  const int made = make && mkdirat(folder.get(), sub.c_str(), 0700) != 0 ? errno : 0;
  Descriptor opened(
      openat(folder.get(), sub.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) {
    if (errno == ENOENT && !make) {
      outcome = FileOutcome::absent;
    } else if (errno == ELOOP || errno == ENOTDIR) {
      why = fmt::format("{} is a symbolic link, or not a folder", shown);
    } else {
      why = fmt::format("{} cannot be made or opened: {}", shown,
                        error_text(errno == ENOENT && made != 0 ? made : errno));
    }
    return opened;
  }
  struct stat status{};
  if (fstat(opened.get(), &status) != 0) {
    why = fmt::format("{}: {}", shown, error_text(errno));
    return Descriptor();
  }
  why = distrust(status, shown, true);
  if (!why.empty()) return Descriptor();
  outcome = FileOutcome::done;
  return opened;
}

FileOutcome CacheFolder::read(const std::string& name, std::string& bytes, std::string& why) const {
  const auto [sub, file] = split(name);
  FileOutcome outcome{};
  const Descriptor folder = open(false, outcome, why);
  if (!folder) return outcome;
  const Descriptor inner = open_sub(folder, sub, false, outcome, why);
  if (!inner) return outcome;
  const std::string shown = (path_ / name).string();
  // Without O_NONBLOCK a pipe of that name would hang the program.
  const Descriptor opened(
      openat(inner.get(), file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!opened) {
    if (errno == ENOENT) return FileOutcome::absent;
    why = errno == ELOOP ? fmt::format("{} is a symbolic link, which is not followed", shown)
                         : fmt::format("{}: {}", shown, error_text(errno));
    return FileOutcome::refused;
  }
  struct stat status{};
  if (fstat(opened.get(), &status) != 0) {
    why = fmt::format("{}: {}", shown, error_text(errno));
    return FileOutcome::refused;
  }
  why = distrust(status, shown, false);
  if (!why.empty()) return FileOutcome::refused;
  if (status.st_size > kMostBytes) {
    why = fmt::format("{} has {} bytes, too many for an entry", shown, status.st_size);
    return FileOutcome::refused;
  }
  bytes.resize(static_cast<std::size_t>(status.st_size));
  if (!read_all(opened.get(), bytes.data(), bytes.size())) {
    why = fmt::format("{}: {}", shown, errno == 0 ? "it became shorter" : error_text(errno));
    return FileOutcome::refused;
  }
  if (std::time(nullptr) - status.st_mtim.tv_sec > kMarkAfter) {
    static_cast<void>(futimens(opened.get(), nullptr));  // a folder that is read-only keeps its own
  }
  return FileOutcome::done;
}

FileOutcome CacheFolder::write(const std::string& name, std::string_view bytes,
                               std::string& why) const {
  const auto [sub, file] = split(name);
  FileOutcome outcome{};
  const Descriptor folder = open(true, outcome, why);
  if (!folder) return outcome;
  const Descriptor inner = open_sub(folder, sub, true, outcome, why);
  if (!inner) return outcome;
  const std::string temporary = temporary_name();
  const auto refuse = [&] {
    const int error = errno;
    why = fmt::format("{} cannot be written: {}", (path_ / name).string(), error_text(error));
    return FileOutcome::refused;
  };
  Descriptor opened(openat(inner.get(), temporary.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!opened) return refuse();
  // Some file systems report a full disk only when the file is closed.
  const bool written = write_all(opened.get(), bytes) && close(opened.release()) == 0;
  if (written && renameat(inner.get(), temporary.c_str(), inner.get(), file.c_str()) == 0) {
    return FileOutcome::done;
  }
  const FileOutcome refused = refuse();
  unlinkat(inner.get(), temporary.c_str(), 0);
  return refused;
}

bool CacheFolder::remove(const std::string& name) const {
  const auto [sub, file] = split(name);
  FileOutcome outcome{};
  std::string why;
  const Descriptor folder = open(false, outcome, why);
  if (!folder) return false;
  const Descriptor inner = open_sub(folder, sub, false, outcome, why);
  return inner && unlinkat(inner.get(), file.c_str(), 0) == 0;
}

FileOutcome CacheFolder::files(std::vector<CacheFile>& found, std::string& why) const {
  FileOutcome outcome{};
  const Descriptor folder = open(false, outcome, why);
  if (!folder) return outcome;
  for_each_name(folder, [&](const std::string& sub) {
    if (sub.size() != 2 || !is_hex(sub)) return;
    FileOutcome inside{};
    std::string ignored;  // a subfolder that is not ours holds nothing of ours
    const Descriptor inner = open_sub(folder, sub, false, inside, ignored);
    if (!inner) return;
    for_each_name(inner, [&](const std::string& file) {
      const bool temporary = file.starts_with(kTemporary);
      struct stat status{};
      if ((!temporary && !is_entry_name(file, sub)) ||
          fstatat(inner.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return;
      }
      found.push_back({sub + "/" + file, static_cast<std::uint64_t>(status.st_size),
                       nanoseconds(status.st_mtim), temporary});
    });
  });
  return FileOutcome::done;
}

void CacheFolder::remove_empty_folders() const {
  FileOutcome outcome{};
  std::string why;
  const Descriptor folder = open(false, outcome, why);
  if (!folder) return;
  std::vector<std::string> subs;
  for_each_name(folder, [&](const std::string& sub) {
    if (sub.size() == 2 && is_hex(sub)) subs.push_back(sub);
  });
  for (const std::string& sub : subs) unlinkat(folder.get(), sub.c_str(), AT_REMOVEDIR);
}

}  // namespace chainfold::runtime
