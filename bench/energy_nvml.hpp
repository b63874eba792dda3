// The energy that a GPU has used, as its driver counts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace chainfold::bench {

class EnergyCounter {
 public:
  /// Of the device with this UUID ("GPU-..."). Where NVML or the counter is missing, problem() says
  /// so and millijoules() is empty.
  explicit EnergyCounter(const std::string& uuid);
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Since the driver was loaded. The counter moves some ten times a second.
  [[nodiscard]] std::optional<std::uint64_t> millijoules() const;

 private:
  using Read = int (*)(void* device, unsigned long long* millijoules);
  std::string problem_;
  void* device_ = nullptr;
  Read read_ = nullptr;
};

}  // namespace chainfold::bench
