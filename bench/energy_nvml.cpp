#include "chainfold/bench/energy_nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

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

std::optional<double> EnergyCounter::joules_of(const runtime::Context& context,
                                               const runtime::Stream& stream, double ms,
                                               const std::function<void()>& queue) const {
  constexpr double kBatchMs = 20;  // longer than reading the counter, which a queued batch outlasts
  constexpr double kMostCalls = 1000;                          // the driver queues no more
  constexpr double kWarmUp = 0.3, kAtLeast = 4, kAtMost = 12;  // seconds
  if (ms * kMostCalls < kBatchMs || !millijoules()) return std::nullopt;
  using Clock = std::chrono::steady_clock;
  using runtime::Event;
  const auto calls = static_cast<std::size_t>(std::clamp(kBatchMs / ms, 1.0, kMostCalls));
  const std::array<Event, 2> ends = {Event(context), Event(context)};
  const Event begin(context, Event::Timing::on), end(context, Event::Timing::on);
  std::size_t batches = 0;
  const auto queue_batch = [&] {
    for (std::size_t i = 0; i < calls; ++i) queue();
    ends[batches++ % 2].record(stream.handle());
  };
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  struct Step {
    std::uint64_t millijoules;
    double at;
  };
  // One batch is always queued behind the one that is waited for, so that the device has work while
  // the host reads the counter.
  const auto next_step = [&](double not_before) -> std::optional<Step> {
    auto last = millijoules();
    while (last && seconds() < kAtMost) {
      queue_batch();
      ends[batches % 2].synchronize();
      const auto now = millijoules();
      const double at = seconds();
      if (now && now != last && at >= not_before) return Step{*now, at};
      last = now;
    }
    return std::nullopt;
  };
  queue_batch();
  const std::optional<Step> first = next_step(kWarmUp);
  const std::size_t before = batches;
  begin.record(stream.handle());
  const std::optional<Step> second = first ? next_step(first->at + kAtLeast) : std::nullopt;
  end.record(stream.handle());
  stream.synchronize();
  if (!first || !second || batches == before) return std::nullopt;
  const double watts = static_cast<double>(second->millijoules - first->millijoules) * 1e-3 /
                       (second->at - first->at);
  return watts * end.milliseconds_since(begin) * 1e-3 /
         static_cast<double>((batches - before) * calls);
}

}  // namespace chainfold::bench
