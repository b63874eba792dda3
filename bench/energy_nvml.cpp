#include "chainfold/bench/energy_nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace chainfold::bench {

EnergyCounter::EnergyCounter(const std::string& uuid) {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);  // stays open
  if (library == nullptr) {
    problem_ = fmt::format("no energy: {}", ::dlerror());
    return;
  }
  const auto find = [&](const char* name) {
    void* symbol = ::dlsym(library, name);
    if (symbol == nullptr && problem_.empty())
      problem_ = fmt::format("no energy: NVML lacks {}", name);
    return symbol;
  };
  const auto init = reinterpret_cast<int (*)()>(find("nvmlInit_v2"));
  const auto handle =
      reinterpret_cast<int (*)(const char*, void**)>(find("nvmlDeviceGetHandleByUUID"));
  const auto read = reinterpret_cast<Read>(find("nvmlDeviceGetTotalEnergyConsumption"));
  if (!problem_.empty()) return;
  if (const int code = init(); code != 0) {
    problem_ = fmt::format("no energy: NVML does not start (error {})", code);
  } else if (const int error = handle(uuid.c_str(), &device_); error != 0) {
    problem_ = fmt::format("no energy: NVML does not know {} (error {})", uuid, error);
  } else if (unsigned long long value = 0; read(device_, &value) != 0) {
    problem_ = "no energy: the device does not count it";
  } else {
    read_ = read;
  }
}

std::optional<std::uint64_t> EnergyCounter::millijoules() const {
  unsigned long long value = 0;
  if (read_ == nullptr || read_(device_, &value) != 0) return std::nullopt;
  return value;
}

}  // namespace chainfold::bench
