// The table behind chainfold_cpu_plugin_get: no exception and no C++ type crosses it.
#include <llvm/Config/llvm-config.h>
#include <llvm/Support/MemoryBuffer.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <semaphore>

#include "chainfold/runtime/jit/cpu_plugin_abi.h"
#include "compiler.hpp"
#include "host.hpp"
#include "linker.hpp"
#include "stack_sizes.hpp"
#include "vector_calls.hpp"

struct chainfold_cpu_module {
  std::unique_ptr<chainfold::runtime::cpu::LinkedObject> code;
};

namespace {

namespace cpu = chainfold::runtime::cpu;

int fail(chainfold_cpu_error* error, const char* message, std::int32_t line) {
  if (error != nullptr) {
    error->message = strdup(message);
    error->line = line;
  }
  return 1;
}

/// A compilation holds memory and a core: more of them than cores only cost memory. One for which
/// no caller waits takes no slot of the others.
class CompileSlot {
 public:
  explicit CompileSlot(bool awaited) : awaited_(awaited) {
    if (awaited_) slots().acquire();
  }
  ~CompileSlot() {
    if (awaited_) slots().release();
  }
  CompileSlot(const CompileSlot&) = delete;
  CompileSlot& operator=(const CompileSlot&) = delete;

 private:
  static std::counting_semaphore<>& slots() {
    static auto* const instance =
        new std::counting_semaphore<>(std::max(1, tbb::info::default_concurrency()));
    return *instance;
  }
  bool awaited_;
};

/// Runs `work`, which returns 0 or a failure; no exception leaves.
template <class Work>
int guarded(chainfold_cpu_error* error, Work work) {
  try {
    return work();
  } catch (const std::exception& e) {
    return fail(error, e.what(), 0);
  } catch (...) {
    return fail(error, "unknown exception in the CPU plugin", 0);
  }
}

int compile(const char* ir, std::size_t length, chainfold_cpu_effort effort,
            const std::int32_t* given_up, chainfold_cpu_object* object,
            chainfold_cpu_error* error) {
  return guarded(error, [&] {
    const std::string text(ir, length);  // LLVM's lexer needs the closing null byte
    cpu::Failure failure;
    const CompileSlot slot(given_up == nullptr);
    const auto code = cpu::compile_to_object(text, {.tier = effort, .given_up = given_up}, failure);
    if (failure.given_up) return int{CHAINFOLD_CPU_GIVEN_UP};
    if (!code) return fail(error, failure.message.c_str(), failure.line);
    void* data = std::malloc(code->getBufferSize());
    if (data == nullptr) return fail(error, "out of memory for the object file", 0);
    std::memcpy(data, code->getBufferStart(), code->getBufferSize());
    *object = {data, code->getBufferSize()};
    return int{CHAINFOLD_CPU_DONE};
  });
}

void free_object(chainfold_cpu_object* object) {
  std::free(object->data);
  *object = {};
}

int load(const void* data, std::size_t size, const char* const* symbols, std::size_t count,
         chainfold_cpu_launch* functions, std::uint64_t* stack_bytes, chainfold_cpu_module** module,
         chainfold_cpu_error* error) {
  return guarded(error, [&] {
    cpu::Failure failure;
    // A copy: the linker needs the object aligned, and may hold it longer than this call.
    auto object = llvm::MemoryBuffer::getMemBufferCopy({static_cast<const char*>(data), size});
    *stack_bytes = cpu::stack_bytes_of(*object);
    auto code = cpu::LinkedObject::link(std::move(object), symbols, count, functions, failure);
    if (!code) return fail(error, failure.message.c_str(), failure.line);
    *module = new chainfold_cpu_module{std::move(code)};
    return 0;
  });
}

void destroy(chainfold_cpu_module* module) { delete module; }

void free_error(chainfold_cpu_error* error) {
  std::free(error->message);
  *error = {};
}

/// Kernels round to nearest and keep subnormals, in any environment of the calling thread or of a
/// shared pool's worker. Otherwise results would depend on which thread ran a block.
class DefaultFloatEnvironment {
 public:
#if defined(__x86_64__)
  // Only the vector unit's part. Kernels use no other, and the state of the others takes longer
  // than a short launch.
  DefaultFloatEnvironment() : saved_(__builtin_ia32_stmxcsr()) {
    constexpr unsigned kDefault = 0x1f80;
    __builtin_ia32_ldmxcsr(kDefault);
  }
  ~DefaultFloatEnvironment() { __builtin_ia32_ldmxcsr(saved_); }
#else
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
#endif
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  unsigned saved_;
#else
  std::fenv_t saved_{};
#endif
};

/// Blocks in one contiguous range a thread, which reads long runs of memory that it may have
/// touched the last time. A thread that is done takes what is left of the others' ranges. Otherwise
/// a thread that wakes up late would hold up all.
class SharedRanges {
 public:
  /// Of blocks [first, blocks).
  SharedRanges(std::int64_t first, std::int64_t blocks, std::int64_t grain, std::int64_t threads)
      : first_(first),
        blocks_(blocks),
        grain_(grain),
        grains_((blocks - first) / grain),
        threads_(std::min(threads, kMostRanges)),
        chunk_(std::max<std::int64_t>(1, grains_ / (threads_ * kChunks))) {
    for (std::int64_t i = 0; i < threads_; ++i)
      next_[static_cast<std::size_t>(i)].grain.store(begin(i), std::memory_order_relaxed);
  }
  /// Runs thread `me`'s range, then the rest of the others'. Returns how many blocks it ran.
  template <class Run>
  std::int64_t run(std::int64_t me, const Run& run) {
    std::int64_t ran = 0;
    for (std::int64_t k = 0; k < threads_; ++k) {
      const std::int64_t range = (me + k) % threads_, end = begin(range + 1);
      std::atomic<std::int64_t>& next = next_[static_cast<std::size_t>(range)].grain;
      while (next.load(std::memory_order_relaxed) < end) {
        const std::int64_t at = next.fetch_add(chunk_, std::memory_order_relaxed);
        const std::int64_t to = std::min(at + chunk_, end);
        if (at >= end) break;
        const std::int64_t from = first_ + at * grain_;
        const std::int64_t behind = to == grains_ ? blocks_ : first_ + to * grain_;
        run(from, behind);
        ran += behind - from;
      }
    }
    return ran;
  }

 private:
  static constexpr std::int64_t kChunks = 16;  // a range's chunks: a late thread costs one of them
  static constexpr std::int64_t kMostRanges = 64;  // here, so that a launch allocates nothing
  struct alignas(128) Cursor {                     // a pair of cache lines of its own
    std::atomic<std::int64_t> grain{0};
  };
  [[nodiscard]] std::int64_t begin(std::int64_t range) const {
    return grains_ / threads_ * range + std::min(range, grains_ % threads_);
  }
  std::int64_t first_, blocks_, grain_, grains_, threads_, chunk_;
  std::array<Cursor, kMostRanges> next_;
};

using Clock = std::chrono::steady_clock;

/// When the last launch that other threads could have shared ended, of any kernel.
struct alignas(128) LastEnd {  // a pair of cache lines of its own
  std::atomic<Clock::rep> time{0};
} last_end;

/// Notes the end of a launch.
struct NoteEnd {
  NoteEnd() = default;
  ~NoteEnd() {
    last_end.time.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  NoteEnd(const NoteEnd&) = delete;
  NoteEnd& operator=(const NoteEnd&) = delete;
};

/// The time that launches of a function took one thread the last time. A launch that is known to be
/// worth sharing need not run a part alone to find out. Times are guesses: functions may share an
/// entry, and the same blocks may do less this time.
class Memory {
 public:
  /// Nanoseconds of all blocks; 0: not known.
  [[nodiscard]] std::int64_t recall(chainfold_cpu_launch launch, std::int64_t blocks) const {
    const Entry& entry = of(launch);
    const bool same = entry.launch.load(std::memory_order_relaxed) == launch &&
                      entry.blocks.load(std::memory_order_relaxed) == blocks;
    return same ? entry.time.load(std::memory_order_relaxed) : 0;
  }
  /// `ran` of the blocks took so long.
  void note(chainfold_cpu_launch launch, std::int64_t blocks, std::int64_t ran,
            Clock::duration time) {
    if (ran == 0) return;
    const std::chrono::duration<double, std::nano> taken = time;
    Entry& entry = of(launch);
    entry.launch.store(launch, std::memory_order_relaxed);
    entry.blocks.store(blocks, std::memory_order_relaxed);
    entry.time.store(static_cast<std::int64_t>(taken.count() / static_cast<double>(ran) *
                                               static_cast<double>(blocks)),
                     std::memory_order_relaxed);
  }

 private:
  struct alignas(32) Entry {
    std::atomic<chainfold_cpu_launch> launch{nullptr};
    std::atomic<std::int64_t> blocks{0}, time{0};
  };
  [[nodiscard]] Entry& of(chainfold_cpu_launch launch) const {
    const auto address = reinterpret_cast<std::uintptr_t>(launch);
    return entries_[(address >> 4 ^ address >> 12) % entries_.size()];
  }
  mutable std::array<Entry, 256> entries_;
} memory;

/// What is left of a launch for several threads.
struct Shared {
  std::int64_t first;    ///< block
  std::int64_t threads;  ///< 1: nothing is left
};

/// Decides how many threads share a launch (docs/decisions/0027-cpu-launches.md). Blocks that are
/// known to take longer than it takes to get another thread are shared at once. So are few blocks
/// of unknown times: a part that runs alone would be much of them. Of others the first blocks run
/// alone, and their time is a guess for the rest. If the rest takes no longer than it takes to get
/// a thread, this thread runs all of it. Else as many threads share it as have that much work each.
///
/// Threads that sleep have to be woken. Where launches follow one another, the first one that is
/// shared pays for that. Later ones find the threads still looking for work.
template <class Run>
Shared run_alone(chainfold_cpu_launch launch, std::int64_t blocks, std::int64_t grain,
                 std::int64_t threads, const Run& run) {
  constexpr std::int64_t kFewBlocks = 8, kShare = 64;  // the others idle for a small part only
  constexpr std::chrono::nanoseconds kFollows = std::chrono::microseconds(80);
  constexpr std::chrono::nanoseconds kWorthWaking = std::chrono::microseconds(10);
  constexpr std::chrono::nanoseconds kWorthSharing = std::chrono::microseconds(5);
  const auto start = Clock::now();
  const Clock::duration since =
      start.time_since_epoch() - Clock::duration(last_end.time.load(std::memory_order_relaxed));
  const auto worth = since < kFollows ? kWorthSharing : kWorthWaking;
  auto sharers = [&](Clock::duration time) {
    return std::clamp<std::int64_t>(time / worth, 2, threads);
  };
  const std::chrono::nanoseconds known(memory.recall(launch, blocks));
  if (known > worth) return {.first = 0, .threads = sharers(known)};
  if (known.count() == 0 && blocks < kFewBlocks) return {.first = 0, .threads = threads};
  const std::int64_t first = std::max<std::int64_t>(1, std::min(grain, blocks / kShare));
  run(0, first);
  const Clock::duration taken = Clock::now() - start;
  memory.note(launch, blocks, first, taken);
  const auto rest = taken * ((blocks - first) / first);
  if (rest > worth) return {first, sharers(rest)};
  run(first, blocks);
  return {.first = blocks, .threads = 1};
}

int parallel_for(const chainfold_cpu_launch* function, std::int64_t blocks, std::int64_t grain,
                 const std::uint64_t* args) {
  if (blocks <= 0) return 0;
  const auto current = [&] { return __atomic_load_n(function, __ATOMIC_ACQUIRE); };
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    const DefaultFloatEnvironment environment;
    current()(begin, end, args);
  };
  const chainfold_cpu_launch launch = current();  // of which times are noted
  const bool stays = grain == 0;
  grain = std::clamp<std::int64_t>(grain, 1, blocks);
  const std::int64_t threads =
      std::min<std::int64_t>(blocks / grain, tbb::this_task_arena::max_concurrency());
  if (threads < 2) {
    run(0, blocks);
    return 0;
  }
  const NoteEnd note;
  const Shared rest = stays ? Shared{.first = 0, .threads = threads}
                            : run_alone(launch, blocks, grain, threads, run);
  if (rest.threads == 1) return 0;
  try {
    SharedRanges ranges(rest.first, blocks, std::min(grain, blocks - rest.first), rest.threads);
    // Isolated, so that a thread that waits here never picks up a task of the host program. Such a
    // task might take a lock that this thread holds.
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          std::int64_t{0}, rest.threads,
          [&](std::int64_t me) {
            const auto start = Clock::now();
            const std::int64_t ran = ranges.run(me, run);
            if (me == 0 && !stays) memory.note(launch, blocks, ran, Clock::now() - start);
          },
          tbb::static_partitioner{});
    });
    return 0;
  } catch (...) {
    return 1;  // the kernel throws nothing: the scheduler found no memory or no threads
  }
}

std::uint64_t worker_stack() {
  return tbb::global_control::active_value(tbb::global_control::thread_stack_size);
}

chainfold_cpu_plugin make_table() {
  const cpu::Host& host = cpu::host();
  // Objects that call the library's functions do not run on machines without it.
  static const std::string features =
      host.features + (cpu::has_vector_functions() ? ",libmvec" : "");
  return {.abi_version = CHAINFOLD_CPU_PLUGIN_ABI_VERSION,
          .struct_size = sizeof(chainfold_cpu_plugin),
          .llvm_version = LLVM_VERSION_STRING,
          .host_cpu = host.cpu.c_str(),
          .host_features = features.c_str(),
          .vector_bits = host.vector_bits,
          .threads = std::max(1, tbb::info::default_concurrency()),
          .compile = compile,
          .free_object = free_object,
          .load = load,
          .destroy = destroy,
          .free_error = free_error,
          .parallel_for = parallel_for,
          .worker_stack = worker_stack};
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const chainfold_cpu_plugin*
chainfold_cpu_plugin_get() {
  try {
    static const chainfold_cpu_plugin table = make_table();
    return &table;
  } catch (...) {
    return nullptr;
  }
}
