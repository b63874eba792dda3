// Keys of compiled kernels: a hash of every input that can change the machine code. Computed
// without loading NVRTC.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chainfold/runtime/cache/disk_cache.hpp"
#include "chainfold/runtime/host/library_search.hpp"
#include "chainfold/runtime/host/loader_path.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::runtime {

/// Which compiler a search will find, as files. `compilers` are those that might be opened, in the
/// order of the search, up to the first that will certainly do.
struct NvrtcIdentity {
  std::vector<FileIdentity> compilers;
  std::vector<FileIdentity> companions;  ///< libnvrtc-builtins
  auto operator<=>(const NvrtcIdentity&) const = default;
};

/// Opens no library. Empty where there is no NVRTC.
NvrtcIdentity find_nvrtc(const SearchEnvironment& environment);

/// find_nvrtc of this process's environment, as of the first call.
const NvrtcIdentity& nvrtc_identity();

/// Whether the NVRTC that was loaded in the end is one that nvrtc_identity() names, unchanged. Its
/// code may then be kept under a key with that identity. Loads it; throws as nvrtc_path() does.
bool nvrtc_is_as_identified();

/// The key of a cubin.
CacheKey cuda_kernel_key(std::string_view source, const NvrtcOptions& options,
                         const NvrtcIdentity& compiler);
/// The key of an object file for a host. `compiler`: cpu_plugin_identity().
CacheKey cpu_kernel_key(std::string_view source, std::string_view compiler);

}  // namespace chainfold::runtime
