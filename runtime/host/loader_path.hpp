// The file that the dynamic loader would open, and the identity of a file, without opening the
// library. A key of the cache must name its compiler before the compiler is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace chainfold::runtime {

/// A file as a key can name it: another build of it has another time or size.
struct FileIdentity {
  std::string path;  ///< resolved
  std::int64_t bytes = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  auto operator<=>(const FileIdentity&) const = default;
};

/// Nothing if there is no such file.
std::optional<FileIdentity> identify_file(const std::string& path);

/// The file that dlopen(name) opens. A library in the process comes first, then LD_LIBRARY_PATH and
/// run paths, the loader's cache, and the system's folders. Empty if there is none. A name with a
/// slash is itself.
std::string find_on_loader_path(const std::string& name);

/// The file that an open library (a handle of dlopen) came from; empty if the loader does not know.
std::string file_of_library(void* handle);

}  // namespace chainfold::runtime
