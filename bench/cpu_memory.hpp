// Memory, clocks and ceilings of the CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "chainfold/bench/cases.hpp"
#include "chainfold/bench/report.hpp"

namespace chainfold::bench {

/// Host memory in large pages where the system has them, every byte 0xff.
class Buffer {
 public:
  explicit Buffer(std::int64_t bytes);
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_.get());
  }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::int64_t bytes_;
  std::unique_ptr<void, void (*)(void*)> data_;
};

/// `count` elements of what an input holds.
Buffer make_input(const Case::Input& input, std::int64_t count);

/// Times in milliseconds of calls, interleaved; result i belongs to call i. `wash` runs before each
/// call, untimed: neither what one call leaves in the caches, to be read again or written back, nor
/// threads that it leaves awake may count for the next one.
std::vector<std::vector<double>> time_rounds(const std::vector<std::function<void()>>& round,
                                             std::size_t repeats,
                                             const std::function<void()>& wash);

/// The same for what finds its inputs in the caches: batches of calls in a row, about a millisecond
/// each, behind one that is not timed; milliseconds of one call. About `seconds` go to each.
std::vector<std::vector<double>> time_batches(const std::vector<std::function<void()>>& round,
                                              double seconds);

/// The ceilings' own data: every word is its index times a constant, so its sum is known.
class CpuCeilings {
 public:
  /// Of `least` bytes or more: rates of memory, whatever the size of what is held against them.
  explicit CpuCeilings(std::int64_t least);
  /// Throws std::runtime_error if a byte was not read.
  void read() const { read(streams_); }
  void copy() const;
  /// Takes the place of all else in the caches, and waits until every pool's threads sleep.
  void wash() const;
  [[nodiscard]] Ceilings measure(std::size_t repeats) const;
  /// Of `bytes` bytes at the most that stay in the caches, each thread reading its own part again
  /// and again.
  [[nodiscard]] Ceilings measure_cached(std::int64_t bytes, std::size_t repeats) const;
  [[nodiscard]] std::int64_t bytes() const noexcept { return data_.bytes(); }
  /// Places that every thread reads at once: what was fastest.
  [[nodiscard]] int streams() const noexcept { return streams_; }
  /// Whether copies are faster by stores past the caches.
  [[nodiscard]] bool past_caches() const noexcept { return past_caches_; }

 private:
  void read(int streams) const;
  void copy(bool past_caches) const;
  [[nodiscard]] std::int64_t words() const noexcept { return data_.bytes() / 8; }
  Buffer data_, target_;
  int streams_ = 1;
  bool past_caches_ = false;
};

}  // namespace chainfold::bench
