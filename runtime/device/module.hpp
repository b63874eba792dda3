// Compiled kernels in a device: loading an image, and launching its kernels. The calling convention
// is one 8-byte slot a parameter: a pointer, or a scalar in the slot's low bytes. So every kernel
// parameter is declared 8 bytes wide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/runtime/device/context.hpp"

namespace chainfold::runtime {

/// Blocks in each direction.
struct GridSize {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

/// What the driver knows of a loaded kernel. Bytes, but for `registers` and `max_threads`.
struct KernelAttributes {
  int registers = 0;      ///< a thread
  int local_bytes = 0;    ///< a thread: stack and spills
  int static_shared = 0;  ///< a block
  int max_threads = 0;    ///< a block
};

/// An image loaded into a device. Load it ahead of launches: loading may synchronise and is refused
/// during graph capture. Launching is thread-safe.
class CudaModule {
 public:
  /// Loads a CUBIN or zero-terminated PTX and resolves the kernels, which keep the order of
  /// `names`. Throws DeviceError if the driver refuses the image. Throws InternalError for a name
  /// that it lacks or a kernel with a parameter that is not 8 bytes wide.
  CudaModule(const Context& context, std::span<const std::byte> image,
             std::span<const std::string> names);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  [[nodiscard]] const Context& context() const noexcept { return context_; }
  [[nodiscard]] std::size_t kernel_count() const noexcept { return kernels_.size(); }
  /// The index of a kernel. Throws InternalError if there is none of that name.
  [[nodiscard]] std::size_t find(std::string_view name) const;
  [[nodiscard]] const std::string& name(std::size_t kernel) const;
  [[nodiscard]] const KernelAttributes& attributes(std::size_t kernel) const;

  /// Lets a kernel be launched with up to `bytes` of dynamic shared memory; needed above 48 KiB.
  /// Throws DeviceError if the device has less.
  void allow_dynamic_shared(std::size_t kernel, unsigned bytes);

  /// Occupancy: how many blocks of a kernel one SM holds at a time.
  [[nodiscard]] int resident_blocks(std::size_t kernel, unsigned threads,
                                    unsigned dynamic_shared) const;

  /// Queues a kernel on a stream and returns; allocates nothing up to 64 parameters. `slots` holds
  /// `count` parameters, copied before this returns. A grid with no blocks launches nothing.
  /// `overlaps`: blocks may start before the stream's last kernel has ended; the kernel itself
  /// waits for that. Throws DeviceError if the driver refuses the launch. Errors of the running
  /// kernel show up at a later synchronisation.
  void launch(std::size_t kernel, GridSize grid, unsigned threads, unsigned dynamic_shared,
              StreamHandle stream, const std::uint64_t* slots, std::size_t count,
              bool overlaps = false) const;
  /// The same where the module's context is current on this thread (ContextScope). The driver is
  /// not asked about that again.
  void launch_in_scope(std::size_t kernel, GridSize grid, unsigned threads, unsigned dynamic_shared,
                       StreamHandle stream, const std::uint64_t* slots, std::size_t count,
                       bool overlaps = false) const;

 private:
  struct Kernel {
    std::string name;
    FunctionHandle function = nullptr;
    KernelAttributes attributes;
    int parameters = -1;  // -1: the driver is too old to tell
  };
  [[nodiscard]] const Kernel& at(std::size_t kernel) const;
  Kernel resolve(const std::string& name) const;

  const Context& context_;
  LibraryHandle library_ = nullptr;
  std::vector<Kernel> kernels_;
};

}  // namespace chainfold::runtime
