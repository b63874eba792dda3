#include "chainfold/bench/ceilings_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::bench {
namespace {

constexpr unsigned kThreads = 512;
constexpr int kLoads = 4;  // 16-byte loads that a thread has in flight
constexpr std::int64_t kTileBytes = std::int64_t{kThreads} * kLoads * 16;
constexpr std::size_t kDriverCopy = ~std::size_t{0};
constexpr const char* kNames[] = {"fill_words",  "fill_f16",      "fill_f32",      "fill_f64",
                                  "fill_i8",     "fill_shipdate", "fill_discount", "fill_quantity",
                                  "fill_price",  "fill_bf16",     "fill_i32",      "fill_other",
                                  "fill_normal", "fill_uniform",  "fill_balanced", "fill_f64_short",
                                  "read_tile",   "read_strided",  "copy_tile",     "copy_strided",
                                  "hold"};

constexpr const char* kHead = R"cuda(
#define CHAINFOLD_BENCH_FN __device__ __forceinline__
typedef unsigned int u32;
typedef unsigned long long u64;
)cuda";

constexpr const char* kKernels = R"cuda(
#define EACH u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x
extern "C" __global__ void fill_words(u32* out, u64 n) { for (EACH) out[i] = (u32)mix(i); }
__device__ __forceinline__ unsigned short half_bits(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
extern "C" __global__ void fill_f16(unsigned short* out, u64 n) { for (EACH) out[i] = half_bits((float)random_f16(i) * 0x1p-14f); }
extern "C" __global__ void fill_other(unsigned short* out, u64 n) { for (EACH) out[i] = half_bits((float)random_other(i) * 0x1p-14f); }
extern "C" __global__ void fill_balanced(unsigned short* out, u64 n) { for (EACH) out[i] = half_bits((float)random_balanced(i) * 0x1p-14f); }
extern "C" __global__ void fill_normal(unsigned short* out, u64 n) { for (EACH) out[i] = half_bits((float)random_normal(i) * 0x1p-16f); }
extern "C" __global__ void fill_uniform(unsigned short* out, u64 n) { for (EACH) out[i] = half_bits((float)random_uniform(i) * 0x1p-14f); }
extern "C" __global__ void fill_bf16(unsigned short* out, u64 n) {
  for (EACH) out[i] = (unsigned short)(__float_as_uint((float)random_bf16(i) * 0x1p-11f) >> 16);  // exact
}
extern "C" __global__ void fill_i32(int* out, u64 n) { for (EACH) out[i] = (int)random_i32(i); }
extern "C" __global__ void fill_f32(float* out, u64 n) { for (EACH) out[i] = (float)random_f32(i) * 0x1p-23f; }
extern "C" __global__ void fill_f64(double* out, u64 n) { for (EACH) out[i] = (double)random_f64(i) * 0x1p-52; }
extern "C" __global__ void fill_f64_short(double* out, u64 n) { for (EACH) out[i] = (double)random_f32(i) * 0x1p-23; }
extern "C" __global__ void fill_i8(signed char* out, u64 n) { for (EACH) out[i] = (signed char)random_i8(i); }
extern "C" __global__ void fill_shipdate(int* out, u64 n) { for (EACH) out[i] = (int)random_shipdate(i); }
extern "C" __global__ void fill_discount(long long* out, u64 n) { for (EACH) out[i] = random_discount(i); }
extern "C" __global__ void fill_quantity(long long* out, u64 n) { for (EACH) out[i] = random_quantity(i); }
extern "C" __global__ void fill_price(long long* out, u64 n) { for (EACH) out[i] = random_price(i); }

// Every block leaves the sum of its words and the number of bytes that it read.
__device__ __forceinline__ void leave(u64 sum, u64 bytes, u64* partials) {
  __shared__ u64 sums[32], counts[32];
  for (int d = 16; d > 0; d >>= 1) {
    sum += __shfl_xor_sync(~0u, sum, d);
    bytes += __shfl_xor_sync(~0u, bytes, d);
  }
  if (threadIdx.x % 32 == 0) { sums[threadIdx.x / 32] = sum; counts[threadIdx.x / 32] = bytes; }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < blockDim.x / 32; ++w) { sum += sums[w]; bytes += counts[w]; }
  partials[2 * (u64)blockIdx.x] = sum;
  partials[2 * (u64)blockIdx.x + 1] = bytes;
}
__device__ __forceinline__ u64 total(uint4 v) { return ((u64)v.x + v.y) + ((u64)v.z + v.w); }

extern "C" __global__ void __launch_bounds__(512) read_tile(const uint4* __restrict__ in, u64 n, u64* partials) {
  const u64 at = blockIdx.x * (u64)(512 * 4) + threadIdx.x;
  uint4 v[4];
  u64 sum = 0, bytes = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = at + 512 * k < n ? in[at + 512 * k] : uint4{0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < 4; ++k) { sum += total(v[k]); bytes += at + 512 * k < n ? 16 : 0; }
  leave(sum, bytes, partials);
}
extern "C" __global__ void __launch_bounds__(512) read_strided(const uint4* __restrict__ in, u64 n, u64* partials) {
  const u64 step = (u64)gridDim.x * 512;
  u64 i = blockIdx.x * (u64)512 + threadIdx.x, sum = 0, bytes = 0;
  for (; i + 3 * step < n; i += 4 * step) {
    const uint4 a = in[i], b = in[i + step], c = in[i + 2 * step], d = in[i + 3 * step];
    sum += (total(a) + total(b)) + (total(c) + total(d));
    bytes += 64;
  }
  for (; i < n; i += step) { sum += total(in[i]); bytes += 16; }
  leave(sum, bytes, partials);
}
extern "C" __global__ void hold(u64 nanoseconds) {
  u64 begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < nanoseconds);
}
extern "C" __global__ void __launch_bounds__(512) copy_tile(const uint4* __restrict__ in, u64 n, uint4* out) {
  const u64 at = blockIdx.x * (u64)(512 * 4) + threadIdx.x;
  uint4 v[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) if (at + 512 * k < n) v[k] = in[at + 512 * k];
#pragma unroll
  for (int k = 0; k < 4; ++k) if (at + 512 * k < n) out[at + 512 * k] = v[k];
}
extern "C" __global__ void __launch_bounds__(512) copy_strided(const uint4* __restrict__ in, u64 n, uint4* out) {
  const u64 step = (u64)gridDim.x * 512;
  u64 i = blockIdx.x * (u64)512 + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    const uint4 a = in[i], b = in[i + step], c = in[i + 2 * step], d = in[i + 3 * step];
    out[i] = a; out[i + step] = b; out[i + 2 * step] = c; out[i + 3 * step] = d;
  }
  for (; i < n; i += step) out[i] = in[i];
}
)cuda";

runtime::Cubin compile_kernels(const runtime::Context& context) {
  return runtime::compile_cubin(std::string(kHead) + kRandomText + kKernels,
                                {.arch = context.device().arch()});
}

std::uint64_t slot(runtime::DevicePtr pointer) { return pointer; }

/// The sum of the 32-bit words that fill_words writes, modulo 2^64.
std::uint64_t sum_of_words(std::uint64_t count) {
  const std::uint64_t workers = std::max(1u, std::thread::hardware_concurrency());
  std::uint64_t sum = 0;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (std::uint64_t w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      std::uint64_t mine = 0;
      for (std::uint64_t i = count * w / workers; i < count * (w + 1) / workers; ++i)
        mine += static_cast<std::uint32_t>(mix(i));
      const std::lock_guard lock(mutex);
      sum += mine;
    });
  }
  threads.clear();
  return sum;
}

}  // namespace

GpuKernels::GpuKernels(const runtime::Context& context)
    : module_(context, compile_kernels(context).image,
              std::vector<std::string>(std::begin(kNames), std::end(kNames))) {}

void GpuKernels::fill(Source source, runtime::DevicePtr out, std::int64_t count,
                      runtime::StreamHandle stream) const {
  const std::uint64_t slots[] = {slot(out), static_cast<std::uint64_t>(count)};
  const std::size_t kernel = 1 + static_cast<std::size_t>(source);  // in the order of kNames
  module_.launch(kernel, {4096, 1, 1}, 256, 0, stream, slots, 2);
}

GpuCeilings::GpuCeilings(const runtime::Context& context, const GpuKernels& kernels,
                         std::int64_t bytes)
    : context_(context),
      kernels_(kernels),
      bytes_(bytes / 16 * 16),
      stream_(context),
      data_(context, static_cast<std::size_t>(bytes_)),
      target_(context, static_cast<std::size_t>(bytes_)),
      partials_(context, static_cast<std::size_t>(16 * (bytes_ / kTileBytes + 4096))) {
  const std::uint64_t words = static_cast<std::uint64_t>(bytes_) / 4;
  const std::uint64_t slots[] = {slot(data_.pointer()), words};
  kernels_.module().launch(0, {4096, 1, 1}, 256, 0, stream_.handle(), slots, 2);
  checksum_ = sum_of_words(words);

  const auto fastest = [&](const std::vector<Shape>& shapes, auto&& run) {
    std::vector<std::function<void()>> round;
    for (const Shape& shape : shapes) round.push_back([&, shape] { run(shape); });
    const auto times = time_rounds(round, 7);
    std::size_t best = 0;
    for (std::size_t i = 1; i < shapes.size(); ++i)
      if (median(times[i]) < median(times[best])) best = i;
    return shapes[best];
  };
  const std::vector<Shape> reads = read_shapes();
  for (const Shape& shape : reads) check_read(shape, data_.pointer(), "read kernel " + shape.name);
  fastest_read_ = fastest(reads, [&](const Shape& shape) { read(shape); });
  const std::vector<Shape> copies = copy_shapes();
  for (const Shape& shape : copies) {
    runtime::fill_bytes(context_, target_.pointer(), 0, static_cast<std::size_t>(bytes_),
                        stream_.handle());
    copy(shape);
    check_read(fastest_read_, target_.pointer(), "copy " + shape.name);
  }
  fastest_copy_ = fastest(copies, [&](const Shape& shape) { copy(shape); });
}

std::vector<GpuCeilings::Shape> GpuCeilings::read_shapes() const {
  const auto tiles = static_cast<unsigned>((bytes_ + kTileBytes - 1) / kTileBytes);
  const auto sms = static_cast<unsigned>(context_.device().sms);
  const runtime::CudaModule& module = kernels_.module();
  std::vector<Shape> shapes = {{"a tile a block", module.find("read_tile"), tiles}};
  for (const unsigned waves : {2u, 4u, 8u, 16u}) {
    shapes.push_back({fmt::format("{} blocks an SM", waves), module.find("read_strided"),
                      std::min(waves * sms, tiles)});
  }
  return shapes;
}

std::vector<GpuCeilings::Shape> GpuCeilings::copy_shapes() const {
  const auto tiles = static_cast<unsigned>((bytes_ + kTileBytes - 1) / kTileBytes);
  const auto sms = static_cast<unsigned>(context_.device().sms);
  const runtime::CudaModule& module = kernels_.module();
  std::vector<Shape> shapes = {{"of the driver", kDriverCopy, 0},
                               {"a tile a block", module.find("copy_tile"), tiles}};
  for (const unsigned waves : {4u, 16u}) {
    shapes.push_back({fmt::format("{} blocks an SM", waves), module.find("copy_strided"),
                      std::min(waves * sms, tiles)});
  }
  return shapes;
}

void GpuCeilings::read(const Shape& shape, runtime::DevicePtr from) const {
  const std::uint64_t slots[] = {slot(from), static_cast<std::uint64_t>(bytes_ / 16),
                                 slot(partials_.pointer())};
  kernels_.module().launch(shape.kernel, {shape.blocks, 1, 1}, kThreads, 0, stream_.handle(), slots,
                           3);
}

void GpuCeilings::copy(const Shape& shape) const {
  if (shape.kernel == kDriverCopy) {
    runtime::copy_on_device(context_, target_.pointer(), data_.pointer(),
                            static_cast<std::size_t>(bytes_), stream_.handle());
    return;
  }
  const std::uint64_t slots[] = {slot(data_.pointer()), static_cast<std::uint64_t>(bytes_ / 16),
                                 slot(target_.pointer())};
  kernels_.module().launch(shape.kernel, {shape.blocks, 1, 1}, kThreads, 0, stream_.handle(), slots,
                           3);
}

void GpuCeilings::check_read(const Shape& shape, runtime::DevicePtr from, const std::string& what) {
  std::vector<std::uint64_t> partials(2 * std::size_t{shape.blocks});
  const std::size_t size = partials.size() * sizeof(std::uint64_t);
  runtime::fill_bytes(context_, partials_.pointer(), 0xff, size, stream_.handle());
  read(shape, from);
  runtime::copy_to_host(context_, partials.data(), partials_.pointer(), size, stream_.handle());
  stream_.synchronize();
  std::uint64_t sum = 0, bytes = 0;
  for (std::size_t i = 0; i < partials.size(); i += 2) {
    sum += partials[i];
    bytes += partials[i + 1];
  }
  if (bytes != static_cast<std::uint64_t>(bytes_) || sum != checksum_) {
    throw std::runtime_error(
        fmt::format("the ceiling is no ceiling: {} accounts for {} bytes of {}, sum of words {:#x} "
                    "instead of {:#x}",
                    what, bytes, bytes_, sum, checksum_));
  }
}

Ceilings GpuCeilings::measure(std::size_t repeats) const {
  const auto times = time_rounds({[&] { read(); }, [&] { copy(); }}, repeats);
  return {bytes_, median(times[0]), median(times[1])};
}

std::string GpuCeilings::description() const {
  return fmt::format("read: {}; copy: {}", fastest_read_.name, fastest_copy_.name);
}

void GpuCeilings::hold(std::size_t calls) const {
  // A launch takes the host 3 to 5 us, an event less; slow hosts take longer at times.
  constexpr std::uint64_t kNanosecondsOfACall = 10'000;
  const std::uint64_t slots[] = {kNanosecondsOfACall * calls};
  kernels_.module().launch(kernels_.module().find("hold"), {1, 1, 1}, 1, 0, stream_.handle(), slots,
                           1);
}

std::vector<std::vector<double>> GpuCeilings::time_rounds(
    const std::vector<std::function<void()>>& round, std::size_t repeats) const {
  constexpr std::size_t kWarmUps = 2;
  std::vector<runtime::Event> begins, ends;
  for (std::size_t i = 0; i < round.size(); ++i) {
    begins.emplace_back(context_, runtime::Event::Timing::on);
    ends.emplace_back(context_, runtime::Event::Timing::on);
  }
  std::vector<std::vector<double>> times(round.size());
  for (std::size_t r = 0; r < kWarmUps + repeats; ++r) {
    hold(1 + 4 * round.size());  // two events and up to two launches of each
    round.front()();             // not timed: caches are as it leaves them
    for (std::size_t i = 0; i < round.size(); ++i) {
      begins[i].record(stream_.handle());
      round[i]();
      ends[i].record(stream_.handle());
    }
    stream_.synchronize();
    for (std::size_t i = 0; r >= kWarmUps && i < round.size(); ++i)
      times[i].push_back(ends[i].milliseconds_since(begins[i]));
  }
  return times;
}

}  // namespace chainfold::bench
