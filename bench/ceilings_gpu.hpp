// The limits of a GPU's memory: kernels that only read or only copy, and account for every byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chainfold/bench/random_data.hpp"
#include "chainfold/bench/report.hpp"
#include "chainfold/runtime/device/memory.hpp"
#include "chainfold/runtime/device/module.hpp"

namespace chainfold::bench {

/// The benchmark's own kernels: filling buffers with random data, reading and copying.
class GpuKernels {
 public:
  explicit GpuKernels(const runtime::Context& context);

  /// Queues the filling of a buffer with `count` elements of a source.
  void fill(Source source, runtime::DevicePtr out, std::int64_t count,
            runtime::StreamHandle stream) const;

  [[nodiscard]] const runtime::CudaModule& module() const noexcept { return module_; }

 private:
  runtime::CudaModule module_;
};

/// Reading and copying `bytes` of random words, in the launch shapes that turned out fastest.
class GpuCeilings {
 public:
  /// Tries the shapes; each must account for every byte. Throws std::runtime_error if one does not.
  GpuCeilings(const runtime::Context& context, const GpuKernels& kernels, std::int64_t bytes);

  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  /// Queues one of the fastest shape.
  void read() const { read(fastest_read_); }
  void copy() const { copy(fastest_copy_); }
  /// Queues what keeps the stream busy, without memory, while the host queues so many kernels,
  /// copies and events: none of them is timed while it waits for the host.
  void hold(std::size_t calls) const;
  /// The times in milliseconds of calls that each queue work, taken with events: `round` is queued
  /// as a whole, `repeats` times, so no call waits for the host. Result i belongs to call i.
  std::vector<std::vector<double>> time_rounds(const std::vector<std::function<void()>>& round,
                                               std::size_t repeats) const;
  /// Both, alone on the stream.
  [[nodiscard]] Ceilings measure(std::size_t repeats = 21) const;
  /// The shapes in words.
  [[nodiscard]] std::string description() const;
  [[nodiscard]] const runtime::Stream& stream() const noexcept { return stream_; }

 private:
  struct Shape {
    std::string name;
    std::size_t kernel = 0;  ///< copies: kDriverCopy for the driver's own
    unsigned blocks = 0;
  };
  void read(const Shape& shape, runtime::DevicePtr from) const;
  void read(const Shape& shape) const { read(shape, data_.pointer()); }
  void copy(const Shape& shape) const;
  void check_read(const Shape& shape, runtime::DevicePtr from, const std::string& what);
  std::vector<Shape> read_shapes() const;
  std::vector<Shape> copy_shapes() const;

  const runtime::Context& context_;
  const GpuKernels& kernels_;
  std::int64_t bytes_;
  runtime::Stream stream_;
  runtime::DeviceBuffer data_, target_, partials_;
  std::uint64_t checksum_ = 0;  ///< the sum of all 32-bit words, as the host computed it
  Shape fastest_read_, fastest_copy_;
};

}  // namespace chainfold::bench
