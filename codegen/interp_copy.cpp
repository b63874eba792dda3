// Copies that run beside the warp that started them. The interpreter lets each arrive at the last
// moment that the rules allow, and poisons its destination until then: a program that reads too
// early, or leaves a copy behind, fails whatever the hardware's timing would be.
#include <fmt/format.h>

#include "chainfold/codegen/interp_machine.hpp"

namespace chainfold::codegen {

std::int64_t Warp::misalignment(int buffer, ValueId first, int unit) const {
  return context_->buffers[static_cast<std::size_t>(buffer)].misalignment(integer(first), unit);
}

CopySlot& Warp::copy_slot(int ring, ValueId slot) {
  auto& slots = block_->rings[static_cast<std::size_t>(ring)];
  const std::int64_t index = integer(slot);
  if (index < 0 || index >= static_cast<std::int64_t>(slots.size()))
    fail(fmt::format("slot {} is outside of [0, {})", index, slots.size()));
  CopySlot& chosen = slots[static_cast<std::size_t>(index)];
  if (chosen.warp < 0) chosen.warp = index_;
  if (chosen.warp != index_) fail(fmt::format("slot {} belongs to warp {}", index, chosen.warp));
  return chosen;
}

void Warp::check_copies() const {
  for (const auto& ring : block_->rings) {
    for (const CopySlot& slot : ring) {
      if (slot.warp == index_ && slot.started != slot.arrived)
        fail("the warp ends while a copy that it started is under way");
    }
  }
}

void Warp::execute(const Misalignment& op, const Instr& instr) {
  *slot(instr.results[0]) = static_cast<Bits>(misalignment(op.buffer, op.first, op.unit));
}

void Warp::execute(const CopyAsync& op, const Instr&) {
  CopySlot& copy = copy_slot(op.ring, op.slot);
  if (copy.started != copy.arrived) fail("the slot's last copy was not waited for");
  const GlobalArray& source = context_->buffers[static_cast<std::size_t>(op.buffer)];
  SharedMemory& array = block_->shared[static_cast<std::size_t>(op.array)];
  const std::int64_t from = integer(op.first) - misalignment(op.buffer, op.first, op.unit);
  const std::int64_t to = integer(op.to);
  if (from < 0 || from > source.elements() - op.elements) {
    fail(fmt::format("elements {} to {} are outside of [0, {})", from, from + op.elements - 1,
                     source.elements()));
  }
  if (to < 0 || to > array.elements() - op.elements) {
    fail(fmt::format("shared elements {} to {} are outside of [0, {})", to, to + op.elements - 1,
                     array.elements()));
  }
  const int unit =
      16 / size_of(context_->program.buffers[static_cast<std::size_t>(op.buffer)].type);
  if (to % unit != 0) fail(fmt::format("shared element {} is not aligned to 16 bytes", to));
  const Accessor who{context_->number, block_->index, index_, block_->epoch, ++context_->accesses};
  for (std::int64_t e = 0; e < op.elements; ++e) {
    const auto place = static_cast<std::size_t>(to + e);
    if (const std::string problem = array.shadow().write(place, who); !problem.empty())
      fail(fmt::format("copies to element {}: {}", to + e, problem));
    array.shadow().forget(place);
  }
  ++copy.started;
  copy.buffer = op.buffer;
  copy.array = op.array;
  copy.from = from;
  copy.to = to;
  copy.elements = op.elements;
}

void Warp::execute(const CopyWait& op, const Instr&) {
  CopySlot& copy = copy_slot(op.ring, op.slot);
  const std::int64_t round = integer(op.round);
  if (round != copy.started - 1)
    fail(fmt::format("waits for copy {} of {} that were started", round, copy.started));
  if (copy.arrived == copy.started) return;
  const GlobalArray& source = context_->buffers[static_cast<std::size_t>(copy.buffer)];
  SharedMemory& array = block_->shared[static_cast<std::size_t>(copy.array)];
  const Accessor who{context_->number, block_->index, index_, block_->epoch, ++context_->accesses};
  for (std::int64_t e = 0; e < copy.elements; ++e) {
    if (const std::string problem =
            array.shadow().write(static_cast<std::size_t>(copy.to + e), who);
        !problem.empty()) {
      fail(fmt::format("a copy arrives at element {}: {}", copy.to + e, problem));
    }
    array.set(copy.to + e, source.get(copy.from + e));
  }
  ++copy.arrived;
}

}  // namespace chainfold::codegen
