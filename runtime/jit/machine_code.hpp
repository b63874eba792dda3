// Machine code of a kernel: from the disk where it is there, else from the compiler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chainfold/codegen/target/target.hpp"
#include "chainfold/runtime/cache/disk_cache.hpp"
#include "chainfold/runtime/jit/llvm.hpp"

namespace chainfold::runtime {

/// What a program's source becomes for a target.
struct MachineCode {
  std::string bytes;      ///< a cubin, or an object file for this host
  double compile_ms = 0;  ///< in the compiler; 0 from disk
  double proof_ms = 0;    ///< of baseline code: that its compilation took, from disk or not
  bool from_disk = false;
  Effort effort = Effort::optimised;
};

/// The key of `source` for `target`. Opens the CPU plugin for the CPU, and nothing for a GPU.
/// Throws DeviceError where the plugin is missing.
CacheKey kernel_key(const std::string& source, const codegen::Target& target);

/// The code of `source` for `target`, whose key is `key`. It is looked up in `cache` unless `anew`,
/// and kept there if it had to be compiled. Where `least` is baseline, the CPU's code may be
/// baseline code, and that is what is compiled. `description` is for people. Throws what the
/// compilers throw, and nothing because of the disk.
MachineCode machine_code(const CacheKey& key, const std::string& source,
                         const codegen::Target& target, DiskCache& cache,
                         std::string_view description, Effort least = Effort::optimised,
                         bool anew = false);
/// Optimised code for the CPU, compiled and kept in `cache`, in place of baseline code; `given_up`
/// as for compile_cpu_object_beside(), if it is not null. Throws what the compiler throws.
std::optional<MachineCode> optimised_code(const CacheKey& key, const std::string& source,
                                          DiskCache& cache, std::string_view description,
                                          const std::int32_t* given_up);

}  // namespace chainfold::runtime
