// The machines that the suites `reduce`, `scan` and `papers` run on.
#pragma once

#include <cstdint>
#include <memory>

#include "chainfold/bench/contest.hpp"
#include "chainfold/bench/suite.hpp"

namespace chainfold::bench {

/// Device 0, with ceilings over `bytes` bytes. Fills the head's device, versions and ceilings.
/// Throws DeviceError where there is no device or compiler.
std::unique_ptr<Machine> make_gpu_machine(std::int64_t bytes, bool tune, Report& head);
/// Fills the head's device and versions, and gives the loops of OpenMP as many threads as ours
/// have. Throws DeviceError where there is no CPU plugin.
void describe_cpu(Report& head);
/// Input bytes that fit well into the second-level caches of all cores.
std::int64_t cpu_cached_bytes();
/// The CPU, likewise.
std::unique_ptr<Machine> make_cpu_machine(std::int64_t bytes, bool tune, Report& head);

}  // namespace chainfold::bench
