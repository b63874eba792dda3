#include "chainfold/runtime/launch/executable.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/runtime/cache/disk_cache.hpp"
#include "chainfold/runtime/device/module.hpp"
#include "chainfold/runtime/host/background.hpp"
#include "chainfold/runtime/jit/cpu_tiers.hpp"
#include "chainfold/runtime/jit/machine_code.hpp"

namespace chainfold::runtime {

namespace {

/// The first version of the driver whose graphs keep launches that overlap.
constexpr int kFirstProgrammaticEdges = 12030;
/// Bytes of shared memory that a block has without asking.
constexpr unsigned kFreeShared = 48 * 1024;

class CudaExecutable final : public Executable {
 public:
  CudaExecutable(const codegen::Program& program, const MachineCode& code,
                 const std::vector<std::string>& symbols, int device)
      : Executable(code.compile_ms, code.from_disk),
        module_(Context::of(device), std::as_bytes(std::span(code.bytes)), symbols) {
    for (const codegen::Launch& launch : program.launches) {
      threads_.push_back(static_cast<unsigned>(launch.warps) * codegen::kWarpWidth);
      const auto shared = static_cast<unsigned>(codegen::shared_layout(launch).bytes);
      if (shared > kFreeShared) module_.allow_dynamic_shared(shared_.size(), shared);
      shared_.push_back(shared);
      overlaps_.push_back(launch.overlaps && driver().version >= kFirstProgrammaticEdges);
    }
  }
  void launch(std::size_t index, std::int64_t blocks, const std::uint64_t* slots, std::size_t count,
              void* stream, bool after) const override {
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
      throw UserError(ErrorCode::invalid_argument,
                      "the launch needs more blocks than a grid holds; split the input");
    }
    module_.launch_in_scope(index, {.x = static_cast<unsigned>(blocks)}, threads_[index],
                            shared_[index], static_cast<StreamHandle>(stream), slots, count,
                            (index == 0 || after) && overlaps_[index]);
  }

 private:
  CudaModule module_;
  std::vector<unsigned> threads_, shared_;  // a block: threads, bytes
  std::vector<bool> overlaps_;
};

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const codegen::Program& program, const MachineCode& code,
                const codegen::Source& source, const CacheKey& key, DiskCache& cache,
                std::string_view description)
      : Executable(code.compile_ms, code.from_disk) {
    for (const codegen::Launch& launch : program.launches) grains_.push_back(launch.grain);
    auto module = CpuModule::load(code.bytes, source.symbols);
    const std::size_t count = source.symbols.size();
    if (code.effort == Effort::optimised) {
      tiers_ = std::make_shared<CpuTiers>(std::move(module), count);
      return;
    }
    auto optimise = [source, key, &cache, description = std::string(description)](
                        const std::int32_t* given_up) -> CpuTiers::Optimised {
      const auto better = optimised_code(key, source.text, cache, description, given_up);
      if (!better) return {};
      return {.module = CpuModule::load(better->bytes, source.symbols),
              .compile_ms = better->compile_ms};
    };
    tiers_ = std::make_shared<CpuTiers>(std::move(module), count, std::move(optimise));
    if (tiering_of_process() == Tiering::baseline) return;
    // A kernel that is gone by then was not worth it.
    const std::chrono::duration<double, std::milli> proof(code.proof_ms);
    using Clock = std::chrono::steady_clock;
    run_in_background(tiers_, Clock::now() + std::chrono::duration_cast<Clock::duration>(proof));
  }
  void launch(std::size_t index, std::int64_t blocks, const std::uint64_t* slots, std::size_t,
              void*, bool) const override {
    // Many blocks are shared out in runs.
    constexpr std::int64_t kRuns = 512;
    const std::int64_t grain = grains_[index];
    tiers_->launch(index, blocks, grain == 0 ? 0 : std::max(grain, blocks / kRuns), slots);
  }
  void optimise() const override { tiers_->optimise(); }
  [[nodiscard]] bool optimised() const override { return tiers_->optimised(); }
  [[nodiscard]] double optimise_ms() const override { return tiers_->optimise_ms(); }

 private:
  std::shared_ptr<CpuTiers> tiers_;
  std::vector<std::int64_t> grains_;
};

using Shared = std::shared_ptr<const Executable>;

/// A program's executable in this process: being made, or alive for as long as it has an owner.
struct Resident {
  std::shared_future<Shared> in_flight;  // valid while it is being made
  std::weak_ptr<const Executable> alive;
};
struct Residents {
  std::mutex mutex;
  std::map<std::pair<int, CacheKey>, Resident> entries;  // by device
  std::size_t sweep_at = 64;

  /// Forgets executables without owners, each time the number of entries may have doubled.
  void sweep() {
    if (entries.size() < sweep_at) return;
    std::erase_if(entries, [](const auto& entry) {
      return !entry.second.in_flight.valid() && entry.second.alive.expired();
    });
    sweep_at = std::max<std::size_t>(64, 2 * entries.size());
  }
};
// Never destroyed: executables may outlive the statics of their owners.
Residents& residents() {
  static auto* residents = new Residents;
  return *residents;
}

Shared make_executable(const CacheKey& key, const codegen::Program& program,
                       const codegen::Source& source, const codegen::Target& target, int device,
                       std::string_view description, Effort least) {
  DiskCache& cache = DiskCache::of_process();
  const auto load = [&](const MachineCode& code) -> Shared {
    if (target.backend == codegen::Backend::cuda) {
      return std::make_shared<CudaExecutable>(program, code, source.symbols, device);
    }
    return std::make_shared<CpuExecutable>(program, code, source, key, cache, description);
  };
  const MachineCode code = machine_code(key, source.text, target, cache, description, least);
  try {
    return load(code);
  } catch (const Error& error) {
    // The entry is whole, yet the driver or the linker refuses it: the disk is no reason to fail.
    if (!code.from_disk || error.code() == ErrorCode::out_of_memory) throw;
    cache.drop(kKernelKind, key);
    cache.warn(std::string("a kernel from disk was refused and is compiled again: ") +
               error.what());
  }
  return load(machine_code(key, source.text, target, cache, description, least, /*anew=*/true));
}

}  // namespace

Shared load_executable(const codegen::Program& program, const codegen::Target& target, int device,
                       bool& reused, std::string_view description, Effort least) {
  const codegen::Source source = codegen::emit(program, target);
  const CacheKey key = kernel_key(source.text, target);
  Shared alive;
  std::promise<Shared> promise;
  std::shared_future<Shared> in_flight;
  Residents& all = residents();
  {
    const std::lock_guard lock(all.mutex);
    all.sweep();
    Resident& resident = all.entries[{device, key}];
    reused = true;
    alive = resident.alive.lock();
    if (!alive) in_flight = resident.in_flight;
    if (!alive && !in_flight.valid()) {
      reused = false;
      resident.in_flight = promise.get_future().share();
    }
  }
  if (reused) {
    if (!alive) alive = in_flight.get();
    if (least == Effort::optimised) alive->optimise();
    return alive;
  }
  const auto settle = [&](const Shared& made) {
    const std::lock_guard lock(all.mutex);
    all.entries[{device, key}] = {.in_flight = {}, .alive = made};
  };
  try {
    Shared made = make_executable(key, program, source, target, device, description, least);
    settle(made);
    promise.set_value(made);
    return made;
  } catch (...) {
    // Threads that wait get the reason; the next call may try again (a library may have appeared).
    settle(nullptr);
    promise.set_exception(std::current_exception());
    throw;
  }
}

}  // namespace chainfold::runtime
