#include "chainfold/codegen/target/target.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/machine.hpp"

namespace chainfold::codegen {
namespace {

struct GpuRow {
  int arch;
  int processors;      // of a typical device
  int resident_warps;  // CUDA C++ programming guide, technical specifications; so is
  int shared_kib;      // shared memory of a multiprocessor
  double bytes;        // of memory a cycle and multiprocessor, of a typical device's data sheet
};
constexpr GpuRow kGpus[] = {
    {75, 40, 32, 64, 5.0},   {80, 108, 64, 164, 12.8}, {86, 84, 48, 100, 6.6},
    {87, 16, 48, 164, 9.8},  {89, 142, 48, 100, 2.8},  {90, 132, 64, 228, 18.4},
    {100, 148, 64, 228, 28}, {103, 148, 64, 228, 28},  {120, 170, 48, 100, 4.4},
    {121, 48, 48, 100, 2.3},
};

/// Processors that were measured (docs/tuned-values.md#memory-of-a-cpu). A tile of a Sapphire
/// Rapids is a quarter of a core's own cache.
struct CpuRow {
  std::string_view name;
  int streams, ahead_bytes, tile_bytes;
};
constexpr int kTileBytes = 256 * 1024;
constexpr CpuRow kCpus[] = {{"znver3", 2, 0, kTileBytes},
                            {"znver4", 2, 0, kTileBytes},
                            {"sapphirerapids", 1, 8 * 1024, 2 * kTileBytes}};

/// Memory answers after so many cycles when it has little to do.
constexpr int kLatencyCycles = 700;
constexpr int kRegisters = 64 * 1024;
/// Cycles from one launch to the next, some two microseconds.
constexpr int kLaunchCycles = 3500;
/// The architecture on which evict-last hints were measured (docs/decisions/0049-cache-hints.md).
constexpr int kKeepsArch = 90;
constexpr int kFirstAsyncCopies = 80, kFirstBulkCopies = 90, kFirstOverlaps = 90;
/// Clusters have so many blocks on all architectures with clusters, of any kind of device.
constexpr int kFirstClusters = 90, kClusterBlocks = 8;

std::string known_targets() {
  std::string names = "cpu";
  for (const GpuRow& row : kGpus) names += fmt::format(", sm_{}", row.arch);
  return names;
}

}  // namespace

Target gpu_target(int arch, int processors) {
  for (const GpuRow& row : kGpus) {
    if (row.arch != arch) continue;
    Target target;
    target.name = fmt::format("sm_{}", arch);
    target.backend = Backend::cuda;
    target.arch = arch;
    target.processors = processors > 0 ? processors : row.processors;
    target.resident_warps = row.resident_warps;
    target.processor_shared_bytes = row.shared_kib * 1024;
    target.lane_words = true;
    target.async_copies = arch >= kFirstAsyncCopies;
    target.overlaps = arch >= kFirstOverlaps;
    target.wide_sums = arch == 80 || arch == 90 || arch == 100;
    target.bulk_copies = arch >= kFirstBulkCopies;
    if (arch >= kFirstClusters) target.cluster_blocks = kClusterBlocks;
    target.evict_first_bytes = kGpuLineBytes;
    if (arch == kKeepsArch) target.evict_last_bytes = std::int64_t{32} << 20;
    target.rates = {.issue = 4,
                    .pipe_slots = 4,
                    .bytes_per_cycle = row.bytes,
                    .bytes_ahead = static_cast<int>(row.bytes * kLatencyCycles),
                    .registers = kRegisters,
                    .launch_cycles = kLaunchCycles};
    target.shared_bytes =
        target.processor_shared_bytes - (target.async_copies ? kReservedShared : 0);
    return target;
  }
  throw UserError(
      ErrorCode::unsupported,
      fmt::format("architecture sm_{} is not supported; known targets: {}", arch, known_targets()));
}

Target cpu_target(int threads, std::string_view processor, int vector_bits) {
  if (threads < 1) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("a CPU target needs at least one thread, not {}", threads));
  }
  Target target;
  target.name = "cpu";
  target.backend = Backend::llvm;
  target.processors = threads;
  target.vector_bytes = 0;
  target.accesses_anywhere = true;
  target.words = true;
  target.f16_words = vector_bits >= 512;  // with AVX2 they take longer (docs/tuned-values.md#cpu)
  target.integer_order = true;
  target.max_warps = 1;
  target.resident_warps = 1;
  target.shared_bytes = kCpuArrayBytes;
  target.processor_shared_bytes = 0;
  target.vector_lanes = true;
  target.register_bytes = (vector_bits >= 512 ? 32 : 16) * vector_bits / 8;
  target.has_mma = false;
  // A load is one or two elements a lane, and what follows a batch's loads delays the next batch's.
  // So the fewer instructions there are a byte, the more bytes are on their way.
  target.loads_in_flight = 64;
  target.row_loads = 32;
  target.non_temporal_bytes = std::int64_t{32} << 20;  // as much as last levels of caches hold
  const auto* known = std::find_if(std::begin(kCpus), std::end(kCpus),
                                   [&](const CpuRow& row) { return row.name == processor; });
  target.tile_bytes = kTileBytes;
  if (known != std::end(kCpus)) {
    target.interleaved_streams = known->streams;
    target.ahead_bytes = known->ahead_bytes;
    target.tile_bytes = known->tile_bytes;
  }
  // An operation on 32 lanes is two or four of a processor's own, of which it starts two a cycle.
  target.rates = {.issue = 1, .pipe_slots = 1, .bytes_per_cycle = 4, .launch_cycles = 20000};
  return target;
}

Target parse_target(std::string_view name) {
  if (name == "cpu") return cpu_target(1);
  constexpr std::string_view kPrefix = "sm_";
  if (name.starts_with(kPrefix)) {
    std::string_view digits = name.substr(kPrefix.size());
    // "a" asks for one architecture's own instructions; what this library emits runs without them.
    if (digits.ends_with('a')) digits.remove_suffix(1);
    int arch = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), arch);
    if (error == std::errc{} && end == digits.data() + digits.size()) {
      Target target = gpu_target(arch);
      target.name = name;
      return target;
    }
  }
  throw UserError(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is no target; known targets: {}", name, known_targets()));
}

}  // namespace chainfold::codegen
