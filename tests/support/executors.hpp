// Runs a program on two executors, the interpreter and the CPU plugin, over equal memory.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::test {

/// Elements in memory of their own that ends at an unreadable page: touching anything behind the
/// last element (or, with `begin`, before the first) ends the process.
class GuardedArray {
 public:
  enum class At : std::uint8_t { end, begin };
  GuardedArray(DType type, std::int64_t elements, At at = At::end);
  ~GuardedArray();
  GuardedArray(GuardedArray&& other) noexcept;
  GuardedArray& operator=(GuardedArray&&) = delete;
  GuardedArray(const GuardedArray&) = delete;

  [[nodiscard]] DType type() const { return type_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  [[nodiscard]] unsigned char* data() const { return data_; }
  [[nodiscard]] codegen::Bits get(std::int64_t i) const;
  void set(std::int64_t i, codegen::Bits bits) const;

 private:
  DType type_;
  std::int64_t elements_;
  unsigned char* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  unsigned char* data_ = nullptr;
};

/// The values that break operations: zeros, ones, limits, subnormals, infinities, NaN and
/// neighbours.
std::vector<codegen::Bits> difficult_values(DType type);
/// Random bits of `type`; booleans are 0 or 1.
codegen::Bits random_bits(DType type, std::uint64_t random);

/// Whether both are NaN, or the floats are at most `ulps` apart (of a number that is no smaller
/// than `least`, of f32 or f64), or the bits are equal.
bool agree(DType type, codegen::Bits a, codegen::Bits b, int ulps = 0, double least = 0);

/// What exp, log and pow of the CPU's code may be apart from those of the C library: functions of
/// whole vectors are of 4 ulp (glibc, libmvec).
inline constexpr int kTranscendentalUlps = 4;

/// Executes all launches of `program` by the interpreter and by the code of emit_llvm, baseline
/// code (whose results are to be the same, bit for bit) and optimised code, over copies of `arrays`
/// (one a buffer), and compares every array that is not an input as agree() does (with a `least`
/// outputs alone: what blocks tell each other is the bits of such values), and what is named after
/// functions that may err ("exp_...") to the ulps of their rows. Returns what differs: the buffer,
/// the element and both values of the first difference; empty if nothing does. The compiled blocks
/// run in two ranges.
std::string difference(const codegen::Program& program, const std::vector<GuardedArray>& arrays,
                       const std::vector<std::uint64_t>& params, int ulps = 0, double least = 0);

/// A program of one launch that grows buffer by buffer, with the memory of each.
struct Bench {
  codegen::Program program;
  std::vector<GuardedArray> arrays;
  std::vector<std::uint64_t> params;
  std::mt19937_64 random{7};

  explicit Bench(std::int64_t blocks) {
    program.name = "bench";
    program.launches.push_back({.name = "bench", .grid = blocks, .warps = 1});
  }
  /// Adds a buffer and its array: random bits in an input, zeros elsewhere. Its index.
  int buffer(DType type, codegen::BufferRole role, std::int64_t elements, int alignment = 0,
             GuardedArray::At at = GuardedArray::At::end) {
    const int index = static_cast<int>(program.buffers.size());
    program.buffers.push_back({"b" + std::to_string(index), type, role, index,
                               alignment == 0 ? size_of(type) : alignment, elements});
    GuardedArray& array = arrays.emplace_back(type, elements, at);
    for (std::int64_t i = 0; i < elements; ++i)
      array.set(
          i, role == codegen::BufferRole::input ? random_bits(type, random()) : codegen::Bits{0});
    return index;
  }
  /// The same of random bits, at either end of memory. `elements` counts bits.
  int packed_input(std::int64_t elements, GuardedArray::At at = GuardedArray::At::end) {
    const int index = buffer(DType::u8, codegen::BufferRole::input, (elements + 7) / 8, 0, at);
    program.buffers.back().type = DType::boolean;
    program.buffers.back().packed = true;
    return index;
  }
  [[nodiscard]] std::string run() const { return difference(program, arrays, params); }
};

}  // namespace chainfold::test
