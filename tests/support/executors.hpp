// Runs a program on two executors, the interpreter and the CPU plugin, over equal memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chainfold/codegen/program.hpp"

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

/// Whether both are NaN, or the floats are at most `ulps` apart, or the bits are equal.
bool agree(DType type, codegen::Bits a, codegen::Bits b, int ulps = 0);

/// Executes all launches of `program` by the interpreter and by the code of emit_llvm, over copies
/// of `arrays` (one a buffer), and compares every array that is not an input. Returns what differs:
/// the buffer, the element and both values of the first difference; empty if nothing does. The
/// compiled blocks run in two ranges.
std::string difference(const codegen::Program& program, const std::vector<GuardedArray>& arrays,
                       const std::vector<std::uint64_t>& params, int ulps = 0);

}  // namespace chainfold::test
