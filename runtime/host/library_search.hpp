// Where shared libraries that are opened on demand may lie, and what was tried where none opened.
// The list of places is a value, so that it can be tested without the libraries.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace chainfold::runtime {

/// What the search sees of the machine. Tests pass their own; `current()` reads the real one.
struct SearchEnvironment {
  std::map<std::string, std::string> variables;  ///< environment variables that matter and are set
  std::filesystem::path root = "/";              ///< prefix of all absolute system paths

  /// The process's own environment.
  static SearchEnvironment current();
  /// The value of a variable, or an empty string if it is not set.
  [[nodiscard]] std::string variable(const std::string& name) const;
};

/// One place of the search: a description for messages, and the names to hand to dlopen in order.
/// There are none if the place does not exist; `note` then says why.
struct SearchPlace {
  std::string description;
  std::vector<std::string> files;
  std::string note;
};

/// A library that opened. `handle` is never closed: compilers and drivers keep threads and exit
/// handlers that must not be unmapped.
struct OpenedLibrary {
  void* handle = nullptr;
  std::string file;                   ///< the name or path that dlopen took
  std::vector<std::string> attempts;  ///< "place: file: reason", one for each thing that failed
};

/// libcuda.so.1: the file named by CHAINFOLD_LIBCUDA alone if that is set, else the loader's path
/// and the folders that WSL and container runtimes use.
std::vector<SearchPlace> driver_places(const SearchEnvironment& environment);

/// libnvrtc: the file named by CHAINFOLD_NVRTC alone if that is set. Else, in this order:
///
///     the loader's names
///     the toolkits of CUDA_HOME and CUDA_PATH, and /usr/local/cuda*, newest first
///     the lib folder and the Python wheels of the active environment (VIRTUAL_ENV, CONDA_PREFIX)
///     the Python wheels of the user and of the system
///
/// Wheels are found without running Python.
std::vector<SearchPlace> nvrtc_places(const SearchEnvironment& environment);
/// The same, a place at a time until `visit` returns false: each is only read when its turn comes.
void for_each_nvrtc_place(const SearchEnvironment& environment,
                          const std::function<bool(SearchPlace)>& visit);

/// Opens the first file that dlopen accepts and that `accept` (which may be null) does not refuse.
/// `accept` returns the reason for a refusal or an empty string. `handle` is null if none opened.
using AcceptLibrary = std::string (*)(void* handle, const std::string& file);
OpenedLibrary open_first(const std::vector<SearchPlace>& places, AcceptLibrary accept = nullptr);

/// "NAME was not found. Looked at: ..., Fix: FIX" with one line an attempt.
std::string missing_library_text(const std::string& name, const OpenedLibrary& search,
                                 const std::string& fix);

}  // namespace chainfold::runtime
