// The CUDA devices of this machine, as planner and tuner need to know them.
#pragma once

#include <cstdint>
#include <string>

#include "chainfold/runtime/device/driver_api.hpp"

namespace chainfold::runtime {

/// One device. Sizes are in bytes, clocks in kHz; nothing here changes while the process runs.
struct DeviceInfo {
  int ordinal = 0;
  DeviceHandle handle = 0;
  std::string name;  ///< e.g. "NVIDIA H200"
  std::string uuid;  ///< "GPU-..." as nvidia-smi prints it
  int major = 0;
  int minor = 0;  ///< compute capability
  int sms = 0;
  int warp_size = 32;
  int max_threads_per_block = 0;
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;
  int registers_per_sm = 0;
  std::int64_t total_bytes = 0;
  int l2_bytes = 0;
  int shared_per_block = 0;        ///< without asking for more
  int shared_per_block_optin = 0;  ///< the most that a kernel may ask for
  int shared_per_sm = 0;
  int reserved_shared_per_block = 0;
  int driver_version = 0;  ///< 1000 * major + 10 * minor of the CUDA that the driver serves

  /// The architecture as compilers name it: 90 for sm_90.
  [[nodiscard]] int arch() const noexcept { return 10 * major + minor; }
};

/// How many CUDA devices this process sees; 0 without a driver. Never throws.
int device_count() noexcept;

/// The device of an ordinal, read once. Throws DeviceError (missing_library, device_failed) as
/// driver() does, and (invalid_argument) if there is no such device.
const DeviceInfo& device_info(int ordinal);

}  // namespace chainfold::runtime
