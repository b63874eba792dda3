#include "chainfold/codegen/interp/memory.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::codegen {

void Shadow::reset(std::size_t elements, bool initialised) {
  constexpr std::size_t kMostCells = std::size_t{1} << 20;
  untouched_ = {};
  untouched_.initialised = initialised;
  touched_.clear();
  sparse_ = elements > kMostCells;
  cells_.assign(sparse_ ? 0 : elements, untouched_);
}

std::string Shadow::other_writer(const Cell& cell, const Accessor& who) {
  if (cell.atomic_launch == who.launch)
    return "a race: atomic operations access it in the same launch";
  if (cell.write_launch != who.launch) return {};
  if (cell.writer_block != who.block) {
    if (who.seen != nullptr) {
      const auto known = who.seen->find(cell.writer_block * kWarpWidth + cell.writer_warp);
      if (known != who.seen->end() && cell.write_access <= known->second) return {};
    }
    return fmt::format("a race: block {} writes it in the same launch", cell.writer_block);
  }
  if (cell.writer_warp != who.warp && cell.write_epoch == who.epoch) {
    return fmt::format("a race: warp {} writes it with no barrier between", cell.writer_warp);
  }
  return {};
}

std::string Shadow::read(std::size_t element, const Accessor& who) {
  Cell& cell = this->cell(element);
  if (!cell.initialised) return "it was never written";
  if (who.input && cell.write_access != 0) return "it was stored before, through the output";
  if (std::string problem = other_writer(cell, who); !problem.empty()) return problem;
  if (cell.read_launch != who.launch) {
    cell.read_launch = who.launch;
    cell.reader_block = who.block;
    cell.many_blocks_read = false;
    cell.reader_warps = 0;
  }
  if (cell.reader_block != who.block) cell.many_blocks_read = true;
  if (cell.read_epoch != who.epoch) cell.reader_warps = 0;
  cell.read_epoch = who.epoch;
  cell.reader_warps |= 1u << who.warp;
  return {};
}

std::string Shadow::write(std::size_t element, const Accessor& who) {
  Cell& cell = this->cell(element);
  if (cell.write_access == who.access) return "two lanes of one store write it";
  if (std::string problem = other_writer(cell, who); !problem.empty()) return problem;
  if (cell.read_launch == who.launch) {
    if (cell.many_blocks_read || cell.reader_block != who.block) {
      return "a race: another block reads it in the same launch";
    }
    if (cell.read_epoch == who.epoch && (cell.reader_warps & ~(1u << who.warp)) != 0) {
      return "a race: another warp reads it with no barrier between";
    }
  }
  cell.initialised = true;
  cell.write_launch = who.launch;
  cell.writer_block = who.block;
  cell.writer_warp = static_cast<std::uint8_t>(who.warp);
  cell.write_epoch = who.epoch;
  cell.write_access = who.access;
  return {};
}

std::string Shadow::atomic(std::size_t element, const Accessor& who) {
  Cell& cell = this->cell(element);
  if (!cell.initialised) return "it was never written";
  if (cell.write_launch == who.launch || cell.read_launch == who.launch)
    return "a race: other operations access it in the same launch";
  cell.atomic_launch = who.launch;
  return {};
}

GlobalArray::GlobalArray(const Buffer& buffer, const InterpBuffer& memory, bool initialised)
    : name_(buffer.name), type_(buffer.type), packed_(buffer.packed), memory_(memory) {
  if (memory.elements < 0 || (memory.elements > 0 && memory.data == nullptr)) {
    throw InternalError(
        fmt::format("buffer {}: {} elements at {}", buffer.name, memory.elements, memory.data));
  }
  if (reinterpret_cast<std::uintptr_t>(memory.data) %
          static_cast<std::uintptr_t>(buffer.alignment) !=
      0) {
    throw InternalError(fmt::format("buffer {}: memory is not aligned to the declared {} bytes",
                                    buffer.name, buffer.alignment));
  }
  if (buffer.role != BufferRole::input) {
    const bool given = initialised || buffer.role == BufferRole::carry_in;
    shadow_->reset(static_cast<std::size_t>(memory.elements), given);
  }
}

std::uintptr_t GlobalArray::end() const {
  if (packed_) return begin() + static_cast<std::uintptr_t>((memory_.elements + 7) / 8);
  return begin() + static_cast<std::uintptr_t>(memory_.elements) *
                       static_cast<std::uintptr_t>(size_of(type_));
}

bool GlobalArray::overlaps(const GlobalArray& other) const {
  return begin() < other.end() && other.begin() < end();
}

void GlobalArray::lies_on(GlobalArray& output) {
  if (begin() != output.begin() || packed_ || size_of(type_) != size_of(output.type_)) {
    throw InternalError(fmt::format(
        "buffers {} and {} overlap, but do not begin at one place with elements of one size", name_,
        output.name_));
  }
  shadow_ = output.shadow_;
  shadow_->reset(static_cast<std::size_t>(std::max(memory_.elements, output.memory_.elements)),
                 true);
}

bool GlobalArray::aligned(std::int64_t element, int width) const {
  if (packed_) return true;
  const auto size = static_cast<std::uintptr_t>(size_of(type_));
  const auto address =
      reinterpret_cast<std::uintptr_t>(memory_.data) + static_cast<std::uintptr_t>(element) * size;
  return address % (size * static_cast<std::uintptr_t>(width)) == 0;
}

std::int64_t GlobalArray::misalignment(std::int64_t element, int unit) const {
  const auto size = static_cast<std::uintptr_t>(size_of(type_));
  const auto address =
      reinterpret_cast<std::uintptr_t>(memory_.data) + static_cast<std::uintptr_t>(element) * size;
  return static_cast<std::int64_t>(address % static_cast<std::uintptr_t>(unit) / size);
}

Bits GlobalArray::get(std::int64_t element) const {
  if (packed_) {
    const auto byte = static_cast<const std::byte*>(memory_.data)[element / 8];
    return std::to_integer<Bits>(byte) >> (element % 8) & 1;
  }
  const auto size = static_cast<std::size_t>(size_of(type_));
  Bits bits = 0;  // the low bytes come first on every host this runs on
  std::memcpy(
      &bits, static_cast<const std::byte*>(memory_.data) + static_cast<std::size_t>(element) * size,
      size);
  return type_ == DType::boolean ? Bits{bits != 0} : bits;
}

void GlobalArray::set(std::int64_t element, Bits bits) {
  const auto size = static_cast<std::size_t>(size_of(type_));
  std::memcpy(static_cast<std::byte*>(memory_.data) + static_cast<std::size_t>(element) * size,
              &bits, size);
}

void SharedMemory::reset(std::size_t elements) {
  values_.assign(elements, 0);
  shadow_.reset(elements, false);
}

}  // namespace chainfold::codegen
