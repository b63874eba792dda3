// Machine code of a kernel: from the disk where it is there, else from the compiler.
#pragma once

#include <string>
#include <string_view>

#include "chainfold/codegen/target.hpp"
#include "chainfold/runtime/disk_cache.hpp"

namespace chainfold::runtime {

/// What a program's source becomes for a target.
struct MachineCode {
  std::string bytes;      ///< a cubin, or an object file for this host
  double compile_ms = 0;  ///< in the compiler; 0 from disk
  bool from_disk = false;
};

/// The key of `source` for `target`. Opens the CPU plugin for the CPU, and nothing for a GPU.
/// Throws DeviceError where the plugin is missing.
CacheKey kernel_key(const std::string& source, const codegen::Target& target);

/// The code of `source` for `target`, whose key is `key`. It is looked up in `cache` unless `anew`;
/// what had to be compiled is kept there. `description` is for people. Throws what the compilers
/// throw; from the disk nothing.
MachineCode machine_code(const CacheKey& key, const std::string& source,
                         const codegen::Target& target, DiskCache& cache,
                         std::string_view description, bool anew = false);

}  // namespace chainfold::runtime
