// A process of its own for the tests of the cache: compiles a kernel and prints what it took.
//
// usage: chainfold_cache_child cpu | cpu_whole | tune | cuda | cuda_80 | resident | tiers | ends MS
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/runtime/jit/machine_code.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"

namespace {

namespace cf = chainfold;

cf::Computation sums() { return cf::over(cf::segments(64), cf::sum(cf::input<float>("x"))); }
/// Compiles fast for any width of vectors.
cf::Computation total() { return cf::over(cf::whole(), cf::sum(cf::input<float>("x"))); }

bool is_mapped(const std::string& library) {
  std::ifstream in("/proc/self/maps");
  const std::string maps{std::istreambuf_iterator<char>(in), {}};
  return maps.find(library) != std::string::npos;
}

void print_cache() {
  const cf::CacheStatistics cache = cf::cache_statistics();
  fmt::print("hits={} misses={} stores={} damaged={} faults={}\n{}\n", cache.hits, cache.misses,
             cache.stores, cache.damaged, cache.faults, cache.warning);
}

void compile_for_cpu(const cf::Computation& computation) {
  const cf::Target target = cf::target("cpu");  // opens the plugin, outside the time below
  const auto start = std::chrono::steady_clock::now();
  const cf::Kernel kernel = cf::compile(computation, {.target = target, .tuning = cf::Tuning::off});
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  const std::vector<float> x(128, 1.5F);
  const auto [result] = kernel.run<float>({{"x", x}});
  const cf::KernelStats stats = kernel.stats();
  fmt::print("compiled={} from_disk={} sums={} nvrtc={} ms={:.3f} compile_ms={:.1f}\n",
             stats.compiled, stats.from_disk, fmt::join(result, ","), is_mapped("libnvrtc"),
             time.count(), stats.compile_ms);
}

void tune_for_cpu() {
  const cf::Kernel kernel = cf::compile(
      sums(),
      {.target = cf::target("cpu"), .tuning = cf::Tuning::measure, .tuning_elements = 100'000});
  const auto tuning = kernel.tuning();
  fmt::print("measured={} compiled={} plan={} date={}\n", tuning ? tuning->measured : -1,
             kernel.stats().compiled, kernel.plan(), tuning ? tuning->date : "");
}

void compile_for_cuda(int arch) {
  const cf::Target target = cf::codegen::gpu_target(arch);
  const cf::Computation computation = sums();
  const auto compiled = cf::codegen::compile_graph(computation.graph(), target,
                                                   {.segment = 64, .base_alignment = 16});
  const std::string source = cf::codegen::emit(compiled.program, target).text;
  const auto start = std::chrono::steady_clock::now();
  const cf::runtime::CacheKey key = cf::runtime::kernel_key(source, target);
  const cf::runtime::MachineCode code =
      cf::runtime::machine_code(key, source, target, cf::runtime::DiskCache::of_process(), "sums");
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  fmt::print("compiled={} from_disk={} code={} nvrtc={} ms={:.3f}\n", code.from_disk ? 0 : 1,
             code.from_disk ? 1 : 0, cf::runtime::hash128(code.bytes).hex(), is_mapped("libnvrtc"),
             time.count());
}

/// A kernel is reused while one of its owners lives, and no longer.
void compile_thrice() {
  const cf::Options options{.target = cf::target("cpu")};
  std::string line = "reused=";
  {
    const cf::Kernel first = cf::compile(sums(), options);
    const cf::Kernel second = cf::compile(sums(), options);
    line += fmt::format("{},{}", first.stats().reused, second.stats().reused);
  }
  const cf::Kernel third = cf::compile(sums(), options);
  fmt::print("{},{} compiled={}\n", line, third.stats().reused, third.stats().compiled);
}

/// Whether a kernel's code is optimised at once, and some time later.
void tell_tiers() {
  const cf::Kernel kernel = cf::compile(sums(), {.target = cf::target("cpu")});
  const std::int64_t at_first = kernel.stats().optimised;
  for (int i = 0; i < 1000 && kernel.stats().optimised == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  fmt::print("optimised={} later={}\n", at_first, kernel.stats().optimised);
}

/// Leaves while code may be compiled in the background.
void end_after(int milliseconds) {
  const auto x = cf::input<float>("x");
  static const cf::Kernel one =
      cf::compile(cf::over(cf::segments(100), cf::variance(x)), {.target = cf::target("cpu")});
  static const cf::Kernel other =
      cf::compile(cf::over(cf::whole(), cf::sum(x)), {.target = cf::target("cpu")});
  const auto [sum] = other.run<float>({{"x", std::vector<float>(1000, 1)}});
  fmt::print("sum={}\n", sum[0]);
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc >= 2 ? argv[1] : "";
  try {
    if (mode == "cpu") {
      compile_for_cpu(sums());
    } else if (mode == "cpu_whole") {
      compile_for_cpu(total());
    } else if (mode == "tune") {
      tune_for_cpu();
    } else if (mode == "cuda") {
      compile_for_cuda(90);
    } else if (mode == "cuda_80") {
      compile_for_cuda(80);
    } else if (mode == "resident") {
      compile_thrice();
    } else if (mode == "tiers") {
      tell_tiers();
    } else if (mode == "ends" && argc == 3) {
      end_after(std::stoi(argv[2]));
    } else {
      fmt::print(stderr,
                 "usage: chainfold_cache_child cpu | cpu_whole | tune | cuda | cuda_80 | resident "
                 "| tiers | "
                 "ends MILLISECONDS\n");
      return 2;
    }
    print_cache();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
