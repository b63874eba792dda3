#include "chainfold/runtime/jit/machine_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "chainfold/runtime/jit/kernel_key.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::runtime {

CacheKey kernel_key(const std::string& source, const codegen::Target& target) {
  if (target.backend == codegen::Backend::llvm)
    return cpu_kernel_key(source, cpu_plugin_identity());
  return cuda_kernel_key(source, {.arch = target.arch}, nvrtc_identity());
}

namespace {

// The cache's bytes of code for the CPU begin with one for its effort, and four for the
// microseconds that its compilation took.
constexpr char kBaselineByte = 'b', kOptimisedByte = 'o';
constexpr std::size_t kHead = 1 + sizeof(std::uint32_t);

void keep(DiskCache& cache, const CacheKey& key, Effort effort, const CpuObject& object,
          std::string_view description) {
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  const auto took = static_cast<std::uint32_t>(std::min(object.compile_ms * 1e3, kMost));
  std::string bytes(kHead, effort == Effort::baseline ? kBaselineByte : kOptimisedByte);
  std::memcpy(bytes.data() + 1, &took, sizeof took);
  cache.store(kKernelKind, key, bytes + object.bytes, description);
}

std::optional<MachineCode> kept(DiskCache& cache, const CacheKey& key, bool on_cpu, Effort least) {
  std::optional<std::string> bytes = cache.load(kKernelKind, key);
  if (!bytes) return std::nullopt;
  MachineCode code;
  code.from_disk = true;
  if (on_cpu) {
    if (bytes->starts_with(kBaselineByte)) code.effort = Effort::baseline;
    if (code.effort < least) return std::nullopt;
    std::uint32_t took = 0;
    if (bytes->size() >= kHead) std::memcpy(&took, bytes->data() + 1, sizeof took);
    code.proof_ms = took / 1e3;
    bytes->erase(0, kHead);  // the linker refuses foreign bytes
  }
  code.bytes = *std::move(bytes);
  return code;
}

}  // namespace

std::optional<MachineCode> optimised_code(const CacheKey& key, const std::string& source,
                                          DiskCache& cache, std::string_view description,
                                          const std::int32_t* given_up) {
  std::optional<CpuObject> object = given_up != nullptr
                                        ? compile_cpu_object_beside(source, *given_up)
                                        : compile_cpu_object(source);
  if (!object) return std::nullopt;
  keep(cache, key, Effort::optimised, *object, description);
  return MachineCode{.bytes = std::move(object->bytes), .compile_ms = object->compile_ms};
}

MachineCode machine_code(const CacheKey& key, const std::string& source,
                         const codegen::Target& target, DiskCache& cache,
                         std::string_view description, Effort least, bool anew) {
  const bool on_cpu = target.backend == codegen::Backend::llvm;
  if (!anew) {
    if (auto code = kept(cache, key, on_cpu, least)) return *std::move(code);
  }
  if (on_cpu && least == Effort::baseline) {
    CpuObject object = compile_cpu_object(source, Effort::baseline);
    keep(cache, key, Effort::baseline, object, description);
    return {.bytes = std::move(object.bytes),
            .compile_ms = object.compile_ms,
            .proof_ms = object.compile_ms,
            .effort = Effort::baseline};
  }
  if (on_cpu) return *optimised_code(key, source, cache, description, nullptr);
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
