// Memory as the interpreter sees it: elements, and beside each what hardware does not tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "chainfold/codegen/interp/interp.hpp"

namespace chainfold::codegen {

/// Of warps (block * 32 + warp): up to which of their accesses they are known to be done.
using Seen = std::map<std::int64_t, std::uint64_t>;

/// Who accesses memory, and when: launches, blocks and warps by number; `epoch` counts the barriers
/// its block has passed; `access` is another number for every executed instruction.
struct Accessor {
  std::uint32_t launch = 0;
  std::int64_t block = 0;
  int warp = 0;
  std::uint32_t epoch = 0;
  std::uint64_t access = 0;
  const Seen* seen = nullptr;  ///< of other blocks, by atomics and waits; null: nothing
  bool input = false;          ///< reads through an input, whose memory outputs may have
};

/// Remembers of every element of a writable array whether it was written, by whom, and who read it.
/// Two accesses of one launch conflict if one of them writes and they come from different blocks.
/// The exception is an access behind a write that its warp is known to have seen (Accessor::seen).
/// They also conflict if one of them writes and they come from different warps of one block with no
/// barrier between.
class Shadow {
 public:
  void reset(std::size_t elements, bool initialised);
  [[nodiscard]] bool tracks() const { return !cells_.empty() || sparse_; }
  /// Empty if all is well; else what is wrong, in words.
  std::string read(std::size_t element, const Accessor& who);
  std::string write(std::size_t element, const Accessor& who);
  /// An atomic operation: conflicts with every other access of its launch, not with its like.
  std::string atomic(std::size_t element, const Accessor& who);
  /// What is there is not to be read any more, until it is written again.
  void forget(std::size_t element) { cell(element).initialised = false; }

 private:
  struct Cell {
    std::int64_t writer_block = -1, reader_block = -1;
    std::uint64_t write_access = 0;
    std::uint32_t write_launch = 0, write_epoch = 0;
    std::uint32_t read_launch = 0, read_epoch = 0, atomic_launch = 0;
    std::uint32_t reader_warps = 0;  // of read_epoch, as bits
    std::uint8_t writer_warp = 0;
    bool initialised = false, many_blocks_read = false;
  };
  static std::string other_writer(const Cell& cell, const Accessor& who);
  Cell& cell(std::size_t element) {
    return sparse_ ? touched_.try_emplace(element, untouched_).first->second : cells_[element];
  }
  std::vector<Cell> cells_;
  bool sparse_ = false;  // of a long array, only what was touched
  Cell untouched_;
  std::unordered_map<std::size_t, Cell> touched_;
};

/// One buffer of the program: the caller's bytes and their shadow (none for inputs, but for those
/// whose memory is an output's).
class GlobalArray {
 public:
  GlobalArray(const Buffer& buffer, const InterpBuffer& memory, bool initialised);
  [[nodiscard]] std::int64_t elements() const { return memory_.elements; }
  [[nodiscard]] bool aligned(std::int64_t element, int width) const;
  /// Elements from the last boundary of memory, of which there is one every `unit` bytes.
  [[nodiscard]] std::int64_t misalignment(std::int64_t element, int unit) const;
  [[nodiscard]] Bits get(std::int64_t element) const;
  void set(std::int64_t element, Bits bits);
  [[nodiscard]] std::uintptr_t begin() const {
    return reinterpret_cast<std::uintptr_t>(memory_.data);
  }
  Shadow& shadow() { return *shadow_; }
  [[nodiscard]] bool overlaps(const GlobalArray& other) const;
  /// The program's output `output` lies in the memory of this input. Throws InternalError unless
  /// they begin at one place and have elements of one size.
  void lies_on(GlobalArray& output);

 private:
  [[nodiscard]] std::uintptr_t end() const;
  std::string name_;
  DType type_;
  bool packed_;
  InterpBuffer memory_;
  std::shared_ptr<Shadow> shadow_ = std::make_shared<Shadow>();
};

/// One shared array of one block.
class SharedMemory {
 public:
  void reset(std::size_t elements);
  [[nodiscard]] std::int64_t elements() const { return static_cast<std::int64_t>(values_.size()); }
  [[nodiscard]] bool aligned(std::int64_t element, int width) const { return element % width == 0; }
  [[nodiscard]] Bits get(std::int64_t element) const {
    return values_[static_cast<std::size_t>(element)];
  }
  void set(std::int64_t element, Bits bits) { values_[static_cast<std::size_t>(element)] = bits; }
  Shadow& shadow() { return shadow_; }

 private:
  std::vector<Bits> values_;
  Shadow shadow_;
};

}  // namespace chainfold::codegen
