// Copies that run beside the warp that started them. The interpreter lets each arrive at the last
// moment that the rules allow, and poisons its destination until then. So a program that reads too
// early, or leaves a copy behind, fails whatever the hardware's timing would be.
#include <fmt/format.h>

#include "chainfold/codegen/interp/machine.hpp"

namespace chainfold::codegen {

namespace {
/// NaN, -1 or true, as an element of a type.
Bits anything(DType type) {
  return type == DType::boolean ? 1 : ~Bits{0} >> (64 - 8 * size_of(type));
}
}  // namespace

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
  if (!outgoing_.empty()) fail("the warp ends while a copy out that it started is under way");
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
  const int unit =
      16 / size_of(context_->program.buffers[static_cast<std::size_t>(op.buffer)].type);
  const std::int64_t begin = op.begin == kNoValue ? 0 : integer(op.begin);
  const std::int64_t limit = integer(op.limit);
  const bool nothing = op.begin != kNoValue && limit == begin;
  if (!nothing && (limit < begin || limit > source.elements()))
    fail(fmt::format("a copy's limit {} is outside of [{}, {}]", limit, begin, source.elements()));
  if (!nothing && begin < 0) fail(fmt::format("a copy begins at element {}", begin));
  if (op.whole && (source.misalignment(begin, 16) != 0 || (limit - begin) % unit != 0))
    fail("the input does not lie on 16 bytes");
  if (to < 0 || to > array.elements() - op.elements) {
    fail(fmt::format("shared elements {} to {} are outside of [0, {})", to, to + op.elements - 1,
                     array.elements()));
  }
  if (to % unit != 0) fail(fmt::format("shared element {} is not aligned to 16 bytes", to));
  const Accessor who = accessor();
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
  copy.begin = begin;
  copy.limit = limit;
}

void Warp::execute(const CopyWait& op, const Instr&) {
  CopySlot& copy = copy_slot(op.ring, op.slot);
  const std::int64_t round = integer(op.round);
  if (round != copy.started - 1)
    fail(fmt::format("waits for copy {} of {} that were started", round, copy.started));
  if (copy.arrived == copy.started) return;
  GlobalArray& source = context_->buffers[static_cast<std::size_t>(copy.buffer)];
  SharedMemory& array = block_->shared[static_cast<std::size_t>(copy.array)];
  const Accessor who = accessor();
  Accessor reader = who;
  reader.input = true;
  const Bits beyond =
      anything(context_->program.buffers[static_cast<std::size_t>(copy.buffer)].type);
  for (std::int64_t e = 0; e < copy.elements; ++e) {
    if (const std::string problem =
            array.shadow().write(static_cast<std::size_t>(copy.to + e), who);
        !problem.empty()) {
      fail(fmt::format("a copy arrives at element {}: {}", copy.to + e, problem));
    }
    const std::int64_t from = copy.from + e;
    const bool touched = from >= copy.begin && from < copy.limit;
    if (touched && source.shadow().tracks()) {
      const std::string problem = source.shadow().read(static_cast<std::size_t>(from), reader);
      if (!problem.empty()) fail(fmt::format("a copy reads element {}: {}", from, problem));
    }
    array.set(copy.to + e, touched ? source.get(from) : beyond);
  }
  ++copy.arrived;
}

void Warp::execute(const CopyOut& op, const Instr&) {
  const GlobalArray& target = context_->buffers[static_cast<std::size_t>(op.buffer)];
  SharedMemory& source = block_->shared[static_cast<std::size_t>(op.array)];
  const std::int64_t from = integer(op.from), to = integer(op.first);
  const int unit =
      16 / size_of(context_->program.buffers[static_cast<std::size_t>(op.buffer)].type);
  const auto within = [&](std::int64_t first, std::int64_t elements, std::string_view what) {
    if (first < 0 || first > elements - op.elements) {
      fail(fmt::format("{} elements {} to {} are outside of [0, {})", what, first,
                       first + op.elements - 1, elements));
    }
  };
  within(from, source.elements(), "shared");
  within(to, target.elements(), "output");
  if (from % unit != 0) fail(fmt::format("shared element {} is not aligned to 16 bytes", from));
  if (target.misalignment(to, 16) != 0)
    fail(fmt::format("output element {} is not aligned to 16 bytes", to));
  outgoing_.push_back({op.buffer, op.array, from, to, {}});
  const Accessor who = accessor();
  for (std::int64_t e = from; e < from + op.elements; ++e) {
    const std::string problem = source.shadow().read(static_cast<std::size_t>(e), who);
    if (!problem.empty()) fail(fmt::format("a copy reads shared element {}: {}", e, problem));
    outgoing_.back().values.push_back(source.get(e));
  }
}

void Warp::execute(const CopyOutWait&, const Instr&) {
  const Accessor who = accessor();
  for (const Outgoing& copy : outgoing_) {
    GlobalArray& target = context_->buffers[static_cast<std::size_t>(copy.buffer)];
    const SharedMemory& array = block_->shared[static_cast<std::size_t>(copy.array)];
    for (std::size_t e = 0; e < copy.values.size(); ++e) {
      const std::int64_t from = copy.from + static_cast<std::int64_t>(e);
      if (array.get(from) != copy.values[e])
        fail(fmt::format("shared element {} is written before a copy has read it", from));
      const std::int64_t to = copy.to + static_cast<std::int64_t>(e);
      const std::string wrote = target.shadow().write(static_cast<std::size_t>(to), who);
      if (!wrote.empty()) fail(fmt::format("a copy writes element {}: {}", to, wrote));
      target.set(to, copy.values[e]);
    }
  }
  outgoing_.clear();
}

}  // namespace chainfold::codegen
