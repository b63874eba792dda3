#include "chainfold/runtime/machine_code.hpp"

#include <fmt/format.h>

#include <utility>

#include "chainfold/runtime/jit_llvm.hpp"
#include "chainfold/runtime/jit_nvrtc.hpp"
#include "chainfold/runtime/kernel_key.hpp"

namespace chainfold::runtime {

CacheKey kernel_key(const std::string& source, const codegen::Target& target) {
  if (target.backend == codegen::Backend::llvm)
    return cpu_kernel_key(source, cpu_plugin_identity());
  return cuda_kernel_key(source, {.arch = target.arch}, nvrtc_identity());
}

MachineCode machine_code(const CacheKey& key, const std::string& source,
                         const codegen::Target& target, DiskCache& cache,
                         std::string_view description, bool anew) {
  if (!anew) {
    if (auto bytes = cache.load(kKernelKind, key)) {
      return {.bytes = std::move(*bytes), .from_disk = true};
    }
  }
  if (target.backend == codegen::Backend::llvm) {
    CpuObject object = compile_cpu_object(source);
    cache.store(kKernelKind, key, object.bytes, description);
    return {.bytes = std::move(object.bytes), .compile_ms = object.compile_ms};
  }
  const Cubin cubin = compile_cubin(source, {.arch = target.arch});
  MachineCode code{.bytes = {reinterpret_cast<const char*>(cubin.image.data()), cubin.image.size()},
                   .compile_ms = cubin.compile_ms};
  if (nvrtc_is_as_identified()) {
    cache.store(kKernelKind, key, code.bytes, description);
  } else {
    cache.warn(fmt::format(
        "kernels for GPUs are not kept on disk: the loader opened {}, which the search of its path "
        "did not foresee or which changed since; Fix: set CHAINFOLD_NVRTC to that file",
        nvrtc_path()));
  }
  return code;
}

}  // namespace chainfold::runtime
