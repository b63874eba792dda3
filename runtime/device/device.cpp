#include "chainfold/runtime/device/device.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

namespace chainfold::runtime {
namespace {

int attribute(DeviceHandle device, DeviceAttribute which) {
  int value = 0;
  check(driver().device_get_attribute(&value, which, device), "cuDeviceGetAttribute",
        fmt::format("attribute {}", static_cast<int>(which)));
  return value;
}

std::string uuid_text(const DeviceUuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

DeviceInfo read_device(int ordinal) {
  const DriverApi& api = driver();
  DeviceInfo info;
  info.ordinal = ordinal;
  info.driver_version = api.version;
  check(api.device_get(&info.handle, ordinal), "cuDeviceGet", fmt::format("device {}", ordinal));
  std::array<char, 256> name{};
  check(api.device_get_name(name.data(), static_cast<int>(name.size()) - 1, info.handle),
        "cuDeviceGetName");
  info.name = name.data();
  DeviceUuid uuid{};
  check(api.device_get_uuid(&uuid, info.handle), "cuDeviceGetUuid");
  info.uuid = uuid_text(uuid);
  std::size_t bytes = 0;
  check(api.device_total_mem(&bytes, info.handle), "cuDeviceTotalMem");
  info.total_bytes = static_cast<std::int64_t>(bytes);

  using A = DeviceAttribute;
  const std::pair<int DeviceInfo::*, A> fields[] = {
      {&DeviceInfo::major, A::capability_major},
      {&DeviceInfo::minor, A::capability_minor},
      {&DeviceInfo::sms, A::sm_count},
      {&DeviceInfo::warp_size, A::warp_size},
      {&DeviceInfo::max_threads_per_block, A::max_threads_per_block},
      {&DeviceInfo::max_threads_per_sm, A::max_threads_per_sm},
      {&DeviceInfo::max_blocks_per_sm, A::max_blocks_per_sm},
      {&DeviceInfo::registers_per_sm, A::registers_per_sm},
      {&DeviceInfo::l2_bytes, A::l2_bytes},
      {&DeviceInfo::shared_per_block, A::shared_per_block},
      {&DeviceInfo::shared_per_block_optin, A::shared_per_block_optin},
      {&DeviceInfo::shared_per_sm, A::shared_per_sm},
      {&DeviceInfo::reserved_shared_per_block, A::reserved_shared_per_block},
  };
  for (const auto& [field, which] : fields) info.*field = attribute(info.handle, which);
  return info;
}

std::vector<DeviceInfo> read_devices() {
  int count = 0;
  check(driver().device_get_count(&count), "cuDeviceGetCount");
  std::vector<DeviceInfo> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int ordinal = 0; ordinal < count; ++ordinal) devices.push_back(read_device(ordinal));
  return devices;
}

const std::vector<DeviceInfo>& devices() {
  // Leaked, so that it outlives every static that may still ask; a failure is tried again.
  static const auto* const kDevices = new std::vector<DeviceInfo>(read_devices());
  return *kDevices;
}

}  // namespace

int device_count() noexcept {
  try {
    return driver_available() ? static_cast<int>(devices().size()) : 0;
  } catch (...) {
    return 0;
  }
}

const DeviceInfo& device_info(int ordinal) {
  const std::vector<DeviceInfo>& all = devices();
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= all.size()) {
    throw DeviceError(ErrorCode::invalid_argument,
                      fmt::format("there is no CUDA device {}: this process sees {} (see "
                                  "CUDA_VISIBLE_DEVICES)",
                                  ordinal, all.size()));
  }
  return all[static_cast<std::size_t>(ordinal)];
}

}  // namespace chainfold::runtime
