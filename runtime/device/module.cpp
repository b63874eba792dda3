#include "chainfold/runtime/device/module.hpp"

#include <fmt/format.h>

#include <array>

namespace chainfold::runtime {
namespace {

/// Unloads the library unless it is kept: a constructor that throws runs no destructor.
class LibraryGuard {
 public:
  explicit LibraryGuard(LibraryHandle library) : library_(library) {}
  ~LibraryGuard() {
    if (library_ != nullptr) driver().library_unload(library_);
  }
  LibraryGuard(const LibraryGuard&) = delete;
  LibraryGuard& operator=(const LibraryGuard&) = delete;
  void keep() { library_ = nullptr; }

 private:
  LibraryHandle library_;
};

/// The number of a kernel's parameters, all of which must be 8-byte slots without gaps; -1 if the
/// driver cannot tell.
int count_slots(KernelHandle kernel, const std::string& name) {
  const auto get_param_info = driver().kernel_get_param_info;
  if (get_param_info == nullptr) return -1;
  std::size_t offset = 0;
  std::size_t size = 0;
  int count = 0;
  // The driver answers invalid_value for the first index past the last parameter.
  while (get_param_info(kernel, static_cast<std::size_t>(count), &offset, &size) ==
         kDriverSuccess) {
    if (size != 8 || offset != 8 * static_cast<std::size_t>(count)) {
      throw InternalError(
          fmt::format("parameter {} of kernel {} has {} bytes at {}, not one 8-byte "
                      "slot",
                      count, name, size, offset));
    }
    ++count;
  }
  return count;
}

}  // namespace

CudaModule::CudaModule(const Context& context, std::span<const std::byte> image,
                       std::span<const std::string> names)
    : context_(context) {
  if (image.empty()) throw InternalError("an empty image was given to CudaModule");
  const ContextScope scope(context);
  const DriverApi& api = driver();
  const DriverResult result =
      api.library_load_data(&library_, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result != kDriverSuccess) {
    throw_driver_error(
        result, "cuLibraryLoadData",
        fmt::format("an image of {} bytes for device {} ({}, sm_{}, driver for CUDA "
                    "{}.{})",
                    image.size(), context.device().ordinal, context.device().name,
                    context.device().arch(), api.version / 1000, api.version % 1000 / 10));
  }
  LibraryGuard guard(library_);
  kernels_.reserve(names.size());
  for (const std::string& name : names) kernels_.push_back(resolve(name));
  guard.keep();
}

CudaModule::~CudaModule() {
  if (driver_lost_by_fork()) return;
  try {
    const ContextScope scope(context_);
    driver().library_unload(library_);
  } catch (const Error&) {
    return;  // CUDA is shutting down, and its libraries with it
  }
}

CudaModule::Kernel CudaModule::resolve(const std::string& name) const {
  const DriverApi& api = driver();
  KernelHandle handle = nullptr;
  if (api.library_get_kernel(&handle, library_, name.c_str()) != kDriverSuccess) {
    throw InternalError(fmt::format("the image has no kernel {}", name));
  }
  Kernel kernel;
  kernel.name = name;
  kernel.parameters = count_slots(handle, name);
  check(api.kernel_get_function(&kernel.function, handle), "cuKernelGetFunction", name);
  // Kernels load lazily; a load at the first launch would break graph capture and spoil timings.
  if (api.function_load != nullptr) check(api.function_load(kernel.function), "cuFuncLoad", name);
  const auto read = [&](FunctionAttribute which) {
    int value = 0;
    check(api.function_get_attribute(&value, which, kernel.function), "cuFuncGetAttribute", name);
    return value;
  };
  kernel.attributes = {.registers = read(FunctionAttribute::registers),
                       .local_bytes = read(FunctionAttribute::local_bytes),
                       .static_shared = read(FunctionAttribute::static_shared_bytes),
                       .max_threads = read(FunctionAttribute::max_threads_per_block)};
  return kernel;
}

const CudaModule::Kernel& CudaModule::at(std::size_t kernel) const {
  if (kernel >= kernels_.size()) {
    throw InternalError(fmt::format("kernel {} of a module with {}", kernel, kernels_.size()));
  }
  return kernels_[kernel];
}

std::size_t CudaModule::find(std::string_view name) const {
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].name == name) return i;
  }
  throw InternalError(fmt::format("the module has no kernel {}", name));
}

const std::string& CudaModule::name(std::size_t kernel) const { return at(kernel).name; }

const KernelAttributes& CudaModule::attributes(std::size_t kernel) const {
  return at(kernel).attributes;
}

void CudaModule::allow_dynamic_shared(std::size_t kernel, unsigned bytes) {
  const Kernel& k = at(kernel);
  const ContextScope scope(context_);
  const DriverResult result = driver().function_set_attribute(
      k.function, FunctionAttribute::max_dynamic_shared_bytes, static_cast<int>(bytes));
  if (result == kDriverSuccess) return;
  throw_driver_error(
      result, "cuFuncSetAttribute",
      fmt::format(
          "{} bytes of dynamic shared memory for {}, which has {} static ones, where a block "
          "of device {} has {} in all",
          bytes, k.name, k.attributes.static_shared, context_.device().ordinal,
          context_.device().shared_per_block_optin));
}

int CudaModule::resident_blocks(std::size_t kernel, unsigned threads,
                                unsigned dynamic_shared) const {
  const Kernel& k = at(kernel);
  const ContextScope scope(context_);
  int blocks = 0;
  check(driver().occupancy_max_active_blocks(&blocks, k.function, static_cast<int>(threads),
                                             dynamic_shared),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", k.name);
  return blocks;
}

void CudaModule::launch(std::size_t kernel, GridSize grid, unsigned threads,
                        unsigned dynamic_shared, StreamHandle stream, const std::uint64_t* slots,
                        std::size_t count, bool overlaps) const {
  const ContextScope scope(context_);
  launch_in_scope(kernel, grid, threads, dynamic_shared, stream, slots, count, overlaps);
}

void CudaModule::launch_in_scope(std::size_t kernel, GridSize grid, unsigned threads,
                                 unsigned dynamic_shared, StreamHandle stream,
                                 const std::uint64_t* slots, std::size_t count,
                                 bool overlaps) const {
  const Kernel& k = at(kernel);
  if (k.parameters >= 0 && static_cast<std::size_t>(k.parameters) != count) {
    throw InternalError(
        fmt::format("kernel {} takes {} parameters and got {}", k.name, k.parameters, count));
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  constexpr std::size_t kInline = 64;
  std::array<void*, kInline> few;
  std::vector<void*> many;
  void** parameters = few.data();
  if (count > kInline) {
    many.resize(count);
    parameters = many.data();
  }
  // The driver reads the slots and writes none; its signature is older than const.
  for (std::size_t i = 0; i < count; ++i) parameters[i] = const_cast<std::uint64_t*>(slots + i);
  DriverLaunchAttribute overlap{.id = kProgrammaticSerialization};
  overlap.value.enabled = 1;
  const DriverLaunch config{.grid = {grid.x, grid.y, grid.z},
                            .block = {threads, 1, 1},
                            .dynamic_shared_bytes = dynamic_shared,
                            .stream = stream,
                            .attributes = &overlap,
                            .attribute_count = overlaps ? 1U : 0U};
  const DriverResult result = driver().launch_kernel_ex(&config, k.function, parameters, nullptr);
  if (result == kDriverSuccess) return;
  throw_driver_error(
      result, "cuLaunchKernelEx",
      fmt::format("{}: grid {} x {} x {}, {} threads and {} + {} bytes of shared "
                  "memory a block, {} registers a thread",
                  k.name, grid.x, grid.y, grid.z, threads, k.attributes.static_shared,
                  dynamic_shared, k.attributes.registers));
}

}  // namespace chainfold::runtime
