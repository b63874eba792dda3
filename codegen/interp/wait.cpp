// Waits between blocks. A warp whose slots are not all published leaves its Await and comes to it
// again when something was. Where nothing else can run, no one will publish them.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/interp/machine.hpp"

namespace chainfold::codegen {

GlobalArray& Warp::check_word(int buffer, std::int64_t element, const Accessor& who) {
  GlobalArray& array = context_->buffers[static_cast<std::size_t>(buffer)];
  if (element < 0 || element >= array.elements())
    fail(fmt::format("element {} is outside of [0, {})", element, array.elements()));
  const std::string problem = array.shadow().atomic(static_cast<std::size_t>(element), who);
  if (!problem.empty()) fail(fmt::format("element {}: {}", element, problem));
  return array;
}

void Warp::execute(const Ticket&, const Instr& instr) {
  barrier_ = &instr;
  status_ = WarpStatus::at_barrier;
}

void Warp::take_ticket() {
  const auto* op = std::get_if<Ticket>(&barrier_->op);
  if (op == nullptr) return;
  GlobalArray& counter = check_word(op->counter, 0, accessor());
  if (!context_->chosen.empty()) {
    if (std::exchange(block_->has_ticket, true))
      fail("a block takes a second ticket where only some blocks run");
    block_->ticket = block_->index;
    return;
  }
  std::int64_t& taken = context_->tickets[op->counter];
  const auto before = static_cast<std::int64_t>(counter.get(0));
  if (before != taken) {
    fail(fmt::format("the counter is {} after {} tickets: it must be 0 when the launch starts",
                     before, taken));
  }
  block_->ticket = taken++;
  counter.set(0, static_cast<Bits>(taken));
}

void Warp::pass_barrier() {
  if (std::holds_alternative<Ticket>(barrier_->op))
    *slot(barrier_->results[0]) = static_cast<Bits>(block_->ticket);
  status_ = WarpStatus::ready;
}

void Warp::execute(const Publish& op, const Instr&) {
  const Accessor who = accessor();
  const std::int64_t index = integer(op.slot);
  LaunchContext::Publication publication{
      integer(op.ticket), block_->index * kWarpWidth + index_, who.access, {}};
  for (const ValueId id : op.values) publication.values.push_back(*slot(id));
  publication.helped = op.helps;
  const auto known = context_->published.find({op.flags, index});
  if (known != context_->published.end()) {
    LaunchContext::Publication& before = known->second;
    if (!op.helps && !std::exchange(before.helped, false))
      fail(fmt::format("slot {} is published a second time", index));
    if (before.ticket != publication.ticket)
      fail(fmt::format("slot {} is published under tickets {} and {}", index, before.ticket,
                       publication.ticket));
    if (before.values != publication.values)
      fail(fmt::format("slot {} is published with other values", index));
    return;
  }
  context_->published.emplace(std::pair(op.flags, index), std::move(publication));
  const RecordLayout layout = record_layout(context_->program, op.values);
  for (std::int64_t w = 0; w < std::max(layout.words, 1); ++w) {
    const std::int64_t word = index * layout.elements() + 2 * w;
    const std::int64_t mark = layout.words == 0 ? index : word + 1;
    GlobalArray& flags = check_word(op.flags, mark, who);
    if (flags.get(mark) != 0) fail(fmt::format("slot {} was not 0 when the launch started", index));
    flags.set(mark, 1);
    if (layout.words == 0) continue;
    Bits payload = 0;
    for (std::size_t i = 0; i < op.values.size(); ++i) {
      const auto [of, shift] = layout.fields[i];
      const int bits = 8 * size_of(type(op.values[i]).elem);
      const Bits mask = bits == 64 ? ~Bits{0} : (Bits{1} << bits) - 1;
      if (of == w) payload |= (*slot(op.values[i]) & mask) << shift;
    }
    check_word(op.flags, word, who).set(word, payload);
  }
}

bool Warp::left_out(std::int64_t block) const {
  const auto& chosen = context_->chosen;
  return !chosen.empty() && !std::binary_search(chosen.begin(), chosen.end(), block);
}

void Warp::execute(const Await& op, const Instr& instr) {
  const Accessor who = accessor();
  const std::int64_t first = integer(op.first), count = integer(op.count);
  const std::int64_t ticket = integer(op.ticket), stride = integer(op.stride);
  if (count < 0 || count > kWarpWidth)
    fail(fmt::format("waits for {} slots; a warp waits for 0 to 32", count));
  const std::int64_t words = record_layout(context_->program, instr.results).words;
  missing_.clear();
  std::array<const LaunchContext::Publication*, kWarpWidth> found{};
  for (std::int64_t l = 0; l < count; ++l) {
    const std::int64_t publisher = integer(op.publisher) + l * stride;
    if (publisher >= ticket) continue;
    if (publisher < 0) fail(fmt::format("slot {}: there is no ticket {}", first + l, publisher));
    const std::int64_t mark = words == 0 ? first + l : 2 * (first + l) * words + 1;
    const GlobalArray& flags = check_word(op.flags, mark, who);
    const auto publication = context_->published.find({op.flags, first + l});
    if (left_out(publisher)) continue;
    if (publication == context_->published.end()) {
      if (flags.get(mark) != 0)
        fail(fmt::format("slot {} was not 0 when the launch started", first + l));
      missing_.push_back(first + l);
    } else if (publication->second.ticket != publisher) {
      fail(fmt::format("slot {} was published under ticket {}, not {}", first + l,
                       publication->second.ticket, publisher));
    } else {
      found[static_cast<std::size_t>(l)] = &publication->second;
    }
  }
  if (!missing_.empty()) {
    publications_ = context_->published.size();
    status_ = WarpStatus::waiting;
    --frames_.back().next;
    return;
  }
  for (std::size_t l = 0; l < found.size(); ++l) {
    for (std::size_t f = 0; f < instr.results.size(); ++f)
      slot(instr.results[f])[l] = found[l] == nullptr ? 0 : found[l]->values.at(f);
    if (found[l] == nullptr || words > 0) continue;
    std::uint64_t& known = seen_[found[l]->warp];
    known = std::max(known, found[l]->access);
  }
}

// Never patient, so that whatever may be late is.
void Warp::execute(const Overdue& op, const Instr& instr) {
  const std::int64_t first = integer(op.first), count = integer(op.count);
  const std::int64_t ticket = integer(op.ticket), stride = integer(op.stride);
  if (count < 0) fail(fmt::format("looks at {} slots", count));
  const auto is_late = [&](std::int64_t l) {
    const std::int64_t publisher = integer(op.publisher) + l * stride;
    return publisher < ticket && !left_out(publisher) &&
           !context_->published.contains({op.flags, first + l});
  };
  std::int64_t found = 0;
  while (found < count && !is_late(found)) ++found;
  *slot(instr.results[0]) = static_cast<Bits>(found);
}

LaunchContext::Meeting& Warp::meeting() {
  const auto blocks = static_cast<std::size_t>(context_->launch.cluster);
  const std::int64_t cluster = block_->index / context_->launch.cluster;
  LaunchContext::Meeting& meeting = context_->meetings[cluster];
  meeting.blocks.resize(blocks);
  meeting.values.resize(blocks);
  return meeting;
}

void Warp::execute(const Gather& op, const Instr& instr) {
  LaunchContext::Meeting& here = meeting();
  if (!std::exchange(gathers_, true)) {
    const auto rank = static_cast<std::size_t>(block_->index % context_->launch.cluster);
    here.blocks[rank] = block_;
    for (const ValueId id : op.values)
      if (index_ == 0) here.values[rank].push_back(*slot(id));
    // A barrier of each block: the last warp of all passes it for them.
    if (++here.warps == context_->cluster_warps())
      for (BlockState* const block : here.blocks) ++block->epoch;
  }
  if (here.warps < context_->cluster_warps()) {
    status_ = WarpStatus::waiting;
    --frames_.back().next;
    return;
  }
  gathers_ = false;
  for (std::size_t v = 0; v < instr.results.size(); ++v) {
    Bits* const lanes = slot(instr.results[v]);
    std::fill_n(lanes, kWarpWidth, Bits{0});
    for (std::size_t rank = 0; rank < here.values.size(); ++rank)
      lanes[rank] = here.values[rank].at(v);
  }
}

void Warp::look_again() {
  const bool ready = gathers_ ? meeting().warps == context_->cluster_warps()
                              : context_->published.size() != publications_;
  if (ready) status_ = WarpStatus::ready;
}

void Warp::fail_waiting() const {
  if (gathers_) fail("a deadlock: not all warps of the cluster's blocks come to this");
  fail(fmt::format("a deadlock: no block can publish slots {}, which it waits for",
                   fmt::join(missing_, ", ")));
}

}  // namespace chainfold::codegen
