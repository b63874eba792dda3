// The energy that a GPU has used, as its driver counts it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "chainfold/runtime/device/memory.hpp"

namespace chainfold::bench {

class EnergyCounter {
 public:
  /// Of the device with this UUID ("GPU-..."). Where NVML or the counter is missing, problem() says
  /// so and millijoules() is empty.
  explicit EnergyCounter(const std::string& uuid);
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Since the driver was loaded. The counter moves some ten times a second, and reading it takes
  /// milliseconds.
  [[nodiscard]] std::optional<std::uint64_t> millijoules() const;
  /// Joules of one of the calls that `queue` queues, over a loop of four seconds throughout which
  /// the device is busy: the power between two steps of the counter, of which each is seen up to a
  /// batch of 20 ms late, times how long a call takes in the loop. `ms`: about how long it takes.
  /// Nothing where the counter does not move, or calls are so short that the host could not keep
  /// the device busy.
  [[nodiscard]] std::optional<double> joules_of(const runtime::Context& context,
                                                const runtime::Stream& stream, double ms,
                                                const std::function<void()>& queue) const;

 private:
  using Read = int (*)(void* device, unsigned long long* millijoules);
  std::string problem_;
  void* device_ = nullptr;
  Read read_ = nullptr;
};

}  // namespace chainfold::bench
