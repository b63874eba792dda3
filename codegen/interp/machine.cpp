#include "chainfold/codegen/interp/machine.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <variant>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/interp/mma.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/streamed_buffers.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {
namespace {
constexpr std::size_t kLanes = kWarpWidth;
}

LaunchContext::LaunchContext(const Program& the_program, int launch_index,
                             std::vector<GlobalArray>& the_buffers,
                             std::span<const std::uint64_t> the_params,
                             const InterpOptions& options)
    : program(the_program),
      launch(the_program.launches[static_cast<std::size_t>(launch_index)]),
      buffers(the_buffers),
      params(the_params),
      arch(options.arch),
      chosen(options.blocks),
      number(static_cast<std::uint32_t>(launch_index) + 1),
      offset(the_program.values.size(), 0),
      accesses(std::uint64_t{number} << 48) {
  place_region(launch.body);
  streams = passes_caches();
}

bool LaunchContext::passes_caches() const {
  const NonTemporalStores& rule = launch.non_temporal;
  if (rule.from == 0) return false;
  const std::set<int> streamed = streamed_buffers(launch.body);
  const auto size = [&](int buffer) {
    return size_of(program.buffers[static_cast<std::size_t>(buffer)].type);
  };
  const auto array = [&](int buffer) -> const GlobalArray& {
    return buffers[static_cast<std::size_t>(buffer)];
  };
  const auto count =
      params[static_cast<std::size_t>(rule.param)] * static_cast<std::uint64_t>(rule.factor);
  for (const int buffer : streamed) {
    if (count * static_cast<std::uint64_t>(size(buffer)) < static_cast<std::uint64_t>(rule.from))
      return false;
    const std::uintptr_t lines =
        rule.along < 0 ? 0
                       : array(rule.along).begin() *
                             static_cast<std::uintptr_t>(size(buffer) / size(rule.along));
    if ((array(buffer).begin() - lines) % kLineBytes != 0) return false;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (program.buffers[i].role == BufferRole::input && array(buffer).overlaps(buffers[i]))
        return false;
    }
  }
  return !streamed.empty();
}

void LaunchContext::place(ValueId id) {
  const Type& type = program.type(id);
  offset[id] = value_words;
  value_words += (type.shape == Shape::uniform ? 1 : kLanes) * static_cast<std::size_t>(type.width);
}

void LaunchContext::place_region(const Region& region) {
  for (const Instr& instr : region.body) {
    for (ValueId id : instr.results) place(id);
    if (const auto* loop = std::get_if<For>(&instr.op)) {
      place(loop->index);
      for (ValueId id : loop->carried) place(id);
    }
    for_each_region(instr.op, [&](const Region& inner) { place_region(inner); });
  }
}

void Warp::start(LaunchContext& context, BlockState& block, int index) {
  context_ = &context;
  block_ = &block;
  index_ = index;
  status_ = WarpStatus::ready;
  barrier_ = current_ = nullptr;
  values_.resize(context.value_words);
  seen_.clear();
  gathers_ = false;
  missing_.clear();
  outgoing_.clear();
  frames_.clear();
  frames_.push_back({.region = &context.launch.body});
}

void Warp::fail(std::string_view problem, int lane) const {
  std::string where =
      fmt::format("launch {}, block {}, warp {}", context_->launch.name, block_->index, index_);
  if (lane >= 0) where += fmt::format(", lane {}", lane);
  if (current_ != nullptr) where += ", " + print(context_->program, context_->launch, *current_);
  throw InternalError(fmt::format("{}: {}", where, problem));
}

void Warp::step() {
  Frame& frame = frames_.back();
  if (frame.next == frame.region->body.size()) return end_region();
  const Instr& instr = frame.region->body[frame.next++];
  current_ = &instr;
  std::visit([&](const auto& op) { execute(op, instr); }, instr.op);
}

void Warp::end_region() {
  Frame& frame = frames_.back();
  if (frame.owner == nullptr) {
    check_copies();
    status_ = WarpStatus::done;
    return;
  }
  const auto* loop = std::get_if<For>(&frame.owner->op);
  // The distance to hi is taken without sign: lo and hi may be far apart.
  const bool again = loop != nullptr && static_cast<std::uint64_t>(frame.hi) -
                                                static_cast<std::uint64_t>(frame.index) >
                                            static_cast<std::uint64_t>(frame.step);
  if (again) {
    copy(frame.region->yields, loop->carried);
    frame.index += frame.step;
    *slot(loop->index) = bits_of_int(type(loop->index).elem, frame.index);
    frame.next = 0;
    return;
  }
  copy(frame.region->yields, frame.owner->results);
  frames_.pop_back();
}

// --- values

std::size_t Warp::words(ValueId id) const {
  const Type& t = type(id);
  return (t.shape == Shape::uniform ? 1 : kLanes) * static_cast<std::size_t>(t.width);
}

Warp::View Warp::view(ValueId id) const {
  const Type& t = type(id);
  const auto width = static_cast<std::size_t>(t.width);
  return {slot(id), t.shape == Shape::uniform ? 0 : width, width == 1 ? std::size_t{0} : 1};
}

// All at once: what is yielded may be what is carried, in another order.
void Warp::copy(std::span<const ValueId> from, std::span<const ValueId> to) {
  staging_.clear();
  for (ValueId id : from) staging_.insert(staging_.end(), slot(id), slot(id) + words(id));
  const Bits* next = staging_.data();
  for (ValueId id : to) {
    std::copy_n(next, words(id), slot(id));
    next += words(id);
  }
}

// --- operations on values

void Warp::execute(const Const& op, const Instr& instr) { *slot(instr.results[0]) = op.bits; }

void Warp::execute(const Special& op, const Instr& instr) {
  Bits* out = slot(instr.results[0]);
  switch (op.which) {
    case Builtin::block: *out = static_cast<Bits>(block_->index); break;
    case Builtin::warp: *out = static_cast<Bits>(index_); break;
    case Builtin::lane:
      for (std::size_t l = 0; l < kLanes; ++l) out[l] = l;
      break;
    case Builtin::streams: *out = context_->streams ? 1 : 0; break;
  }
}

void Warp::execute(const ParamRef& op, const Instr& instr) {
  const int bits = 8 * size_of(type(instr.results[0]).elem);
  const Bits value = context_->params[static_cast<std::size_t>(op.index)];
  *slot(instr.results[0]) = bits == 64 ? value : value & ((Bits{1} << bits) - 1);
}

void Warp::execute(const Compute& op, const Instr& instr) {
  const ValueId result = instr.results[0];
  const Type& t = type(result);
  const DType operand_type = type(op.operands.back()).elem;
  std::array<View, 3> in{};
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = view(op.operands[std::min(i, op.operands.size() - 1)]);
  }
  const std::size_t lanes = t.shape == Shape::uniform ? 1 : kLanes;
  Bits* out = slot(result);
  for (std::size_t l = 0; l < lanes; ++l) {
    for (std::size_t e = 0; e < static_cast<std::size_t>(t.width); ++e) {
      *out++ =
          evaluate(op.op, operand_type, t.elem, in[0].at(l, e), in[1].at(l, e), in[2].at(l, e));
    }
  }
}

void Warp::execute(const Splat& op, const Instr& instr) {
  const std::size_t width = words(op.value);
  Bits* out = slot(instr.results[0]);
  for (std::size_t l = 0; l < kLanes; ++l) out = std::copy_n(slot(op.value), width, out);
}

void Warp::execute(const Extract& op, const Instr& instr) {
  const auto from = static_cast<std::size_t>(type(op.value).width);
  const auto width = static_cast<std::size_t>(type(instr.results[0]).width);
  const Bits* in = slot(op.value) + op.first;
  Bits* out = slot(instr.results[0]);
  for (std::size_t done = 0; done < words(instr.results[0]); done += width, in += from) {
    out = std::copy_n(in, width, out);
  }
}

void Warp::execute(const Concat& op, const Instr& instr) {
  const ValueId result = instr.results[0];
  const std::size_t lanes = type(result).shape == Shape::uniform ? 1 : kLanes;
  Bits* out = slot(result);
  for (std::size_t l = 0; l < lanes; ++l) {
    for (ValueId id : op.parts) {
      const View part = view(id);
      for (std::size_t e = 0; e < static_cast<std::size_t>(type(id).width); ++e)
        *out++ = part.at(l, e);
    }
  }
}

void Warp::gather_lanes(ValueId from, ValueId other, ValueId to,
                        std::span<const std::uint8_t> source) {
  const auto width = static_cast<std::size_t>(type(from).width);
  Bits* out = slot(to);
  for (std::size_t l = 0; l < kLanes; ++l) {
    const Bits* in = slot(source[l] < kLanes ? from : other);
    out = std::copy_n(in + source[l] % kLanes * width, width, out);
  }
}

void Warp::execute(const Shuffle& op, const Instr& instr) {
  if (op.kind == ShuffleKind::first) {
    std::copy_n(slot(op.value), type(op.value).width, slot(instr.results[0]));
    return;
  }
  std::array<std::uint8_t, kLanes> source{};
  for (std::size_t l = 0; l < kLanes; ++l) {
    const auto distance = static_cast<std::size_t>(op.mask);
    Bits lane = l;
    switch (op.kind) {
      case ShuffleKind::xor_mask: lane = l ^ distance; break;
      case ShuffleKind::from_lane: lane = view(op.source).at(l, 0); break;
      case ShuffleKind::up: lane = l < distance ? l : l - distance; break;
      case ShuffleKind::down: lane = l + distance < kLanes ? l + distance : l; break;
      case ShuffleKind::first: lane = 0; break;
    }
    source[l] = static_cast<std::uint8_t>(lane % kLanes);
  }
  gather_lanes(op.value, kNoValue, instr.results[0], source);
}

void Warp::execute(const Permute& op, const Instr& instr) {
  gather_lanes(op.value, op.other, instr.results[0], op.source);
}

void Warp::execute(const Funnel& op, const Instr& instr) {
  const View low = view(op.low), high = view(op.high), from = view(op.from);
  const auto width = static_cast<std::size_t>(type(op.low).width);
  Bits* out = slot(instr.results[0]);
  for (std::size_t l = 0; l < kLanes; ++l) {
    const std::size_t first = from.at(l, 0) % width;
    for (std::size_t e = first; e < first + width; ++e)
      *out++ = e < width ? low.at(l, e) : high.at(l, e - width);
  }
}

void Warp::execute(const Vote& op, const Instr& instr) {
  const Bits* in = slot(op.value);
  auto set = [](Bits bits) { return bits != 0; };
  if (op.kind == VoteKind::count) {
    *slot(instr.results[0]) = static_cast<Bits>(std::count_if(in, in + kLanes, set));
    return;
  }
  const bool result = op.kind == VoteKind::any ? std::any_of(in, in + kLanes, set)
                                               : std::all_of(in, in + kLanes, set);
  *slot(instr.results[0]) = result ? 1 : 0;
}

void Warp::execute(const ConstFragment& op, const Instr& instr) {
  const Type& t = type(instr.results[0]);
  const auto masks =
      lane_masks(mma_table()[static_cast<std::size_t>(t.mma_row)], t.operand, op.matrix);
  const Bits one = bits_of_int(t.elem, 1);
  Bits* out = slot(instr.results[0]);
  for (std::size_t l = 0; l < kLanes; ++l) {
    for (std::size_t e = 0; e < static_cast<std::size_t>(t.width); ++e)
      *out++ = (masks[e] >> l) & 1u ? one : 0;
  }
}

void Warp::execute(const Pack& op, const Instr& instr) {
  Bits* out = slot(instr.results[0]);
  for (std::size_t l = 0; l < kLanes; ++l) {
    for (const auto& [id, count] : op.pieces) {
      if (id == kNoValue) {
        out = std::fill_n(out, count, Bits{0});
        continue;
      }
      const View piece = view(id);
      for (std::size_t e = 0; e < static_cast<std::size_t>(type(id).width); ++e)
        *out++ = piece.at(l, e);
    }
  }
}

void Warp::execute(const Mma& op, const Instr& instr) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(type(instr.results[0]).mma_row)];
  interpret_mma(row, context_->arch, slot(op.a), slot(op.b), slot(op.c), slot(instr.results[0]));
}

// --- memory

Accessor Warp::accessor() {
  return {.launch = context_->number,
          .block = block_->index,
          .warp = index_,
          .epoch = block_->epoch,
          .access = ++context_->accesses,
          .seen = &seen_};
}

std::int64_t Warp::own_offset(ValueId offset, std::size_t lane) const {
  const Bits bits = view(offset).at(lane, 0);
  return type(offset).elem == DType::i32 ? static_cast<std::int32_t>(bits)
                                         : static_cast<std::int64_t>(bits);
}

// Calls fn(lane, first element) for every lane that takes part, after the checks that all accesses
// share.
template <class Array, class F>
void Warp::for_each_place(Array& array, const Address& at, ValueId mask, const Type& t,
                          bool anywhere, F&& fn) {
  const std::int64_t base = integer(at.base);
  const std::int64_t stride = at.step != kNoValue ? integer(at.step) : at.stride;
  const std::size_t lanes = t.shape == Shape::uniform ? 1 : kLanes;
  const auto width = static_cast<std::size_t>(t.width);
  for (std::size_t l = 0; l < lanes; ++l) {
    std::size_t begin = 0, end = width;  // of the lane's elements, what is not masked at the ends
    if (mask != kNoValue) {
      const bool by_elements = type(mask).width > 1;
      const auto is_set = [&](std::size_t e) { return view(mask).at(l, by_elements ? e : 0) != 0; };
      while (begin < end && !is_set(begin)) ++begin;
      while (end > begin && !is_set(end - 1)) --end;
      if (begin == end) continue;
    }
    const auto lane_index = static_cast<std::int64_t>(l);
    const std::int64_t own = at.offset == kNoValue ? 0 : own_offset(at.offset, l);
    const std::int64_t first =
        base + own + (lane_index / at.group) * stride + (lane_index % at.group) * t.width;
    const std::int64_t from = first + static_cast<std::int64_t>(begin);
    const std::int64_t behind = first + static_cast<std::int64_t>(end);
    if (from < 0 || behind > array.elements()) {
      fail(fmt::format("elements {} to {} are outside of [0, {})", from, behind - 1,
                       array.elements()),
           static_cast<int>(l));
    }
    if (!anywhere && !array.aligned(first, t.width)) {
      fail(fmt::format("element {} is not aligned to {} elements", first, t.width),
           static_cast<int>(l));
    }
    fn(l, first);
  }
}

template <class Array>
void Warp::read(Array& array, const Address& at, ValueId mask, ValueId result, bool input) {
  const Type& t = type(result);
  Accessor who = accessor();
  who.input = input;
  Bits* out = slot(result);
  std::fill_n(out, words(result), Bits{0});
  const bool by_elements = mask != kNoValue && type(mask).width > 1;
  for_each_place(array, at, mask, t, context_->program.accesses_anywhere,
                 [&](std::size_t l, std::int64_t first) {
                   for (std::int64_t e = 0; e < t.width; ++e) {
                     if (by_elements && view(mask).at(l, static_cast<std::size_t>(e)) == 0)
                       continue;
                     if (array.shadow().tracks()) {
                       const std::string problem =
                           array.shadow().read(static_cast<std::size_t>(first + e), who);
                       if (!problem.empty()) {
                         fail(fmt::format("reads element {}: {}", first + e, problem),
                              static_cast<int>(l));
                       }
                     }
                     out[l * static_cast<std::size_t>(t.width) + static_cast<std::size_t>(e)] =
                         array.get(first + e);
                   }
                 });
}

template <class Array>
void Warp::write(Array& array, const Address& at, ValueId mask, ValueId value, bool anywhere) {
  const Type& t = type(value);
  const Accessor who = accessor();
  const Bits* in = slot(value);
  for_each_place(array, at, mask, t, anywhere, [&](std::size_t l, std::int64_t first) {
    for (std::int64_t e = 0; e < t.width; ++e) {
      const std::string problem = array.shadow().write(static_cast<std::size_t>(first + e), who);
      if (!problem.empty()) {
        fail(fmt::format("writes element {}: {}", first + e, problem), static_cast<int>(l));
      }
      array.set(first + e, in[l * static_cast<std::size_t>(t.width) + static_cast<std::size_t>(e)]);
    }
  });
}

void Warp::execute(const Load& op, const Instr& instr) {
  const auto buffer = static_cast<std::size_t>(op.buffer);
  read(context_->buffers[buffer], op.at, op.mask, instr.results[0],
       context_->program.buffers[buffer].role == BufferRole::input);
}
void Warp::execute(const Store& op, const Instr&) {
  // Where all buffers begin with a line, every launch tells whether rows do.
  const bool lines = context_->launch.non_temporal.along < 0
                         ? integer(op.at.base) % kWarpWidth == 0
                         : misalignment(op.buffer, op.at.base, kLineBytes) == 0;
  if (op.streams && !lines && (context_->streams || context_->launch.non_temporal.along < 0))
    fail(fmt::format("streams from element {} on, at which no line begins", integer(op.at.base)));
  write(context_->buffers[static_cast<std::size_t>(op.buffer)], op.at, op.mask, op.value,
        context_->program.accesses_anywhere);
}
void Warp::execute(const AtomicAdd& op, const Instr& instr) {
  GlobalArray& array = context_->buffers[static_cast<std::size_t>(op.buffer)];
  const Type& t = type(op.value);
  const Accessor who = accessor();
  const std::int64_t self = block_->index * kWarpWidth + index_;
  auto show = [](const Seen& from, Seen& to) {
    for (const auto& [warp, access] : from) {
      std::uint64_t& known = to[warp];
      known = std::max(known, access);
    }
  };
  const Bits* in = slot(op.value);
  Bits* out = slot(instr.results[0]);
  std::fill_n(out, kLanes, Bits{0});
  for_each_place(array, op.at, op.mask, t, false, [&](std::size_t l, std::int64_t element) {
    const std::string problem = array.shadow().atomic(static_cast<std::size_t>(element), who);
    if (!problem.empty())
      fail(fmt::format("adds to element {}: {}", element, problem), static_cast<int>(l));
    out[l] = array.get(element);
    array.set(element, evaluate(Op::add, t.elem, t.elem, out[l], in[l], 0));
    if (op.order == AtomicOrder::relaxed) return;
    Seen& released = context_->released[{op.buffer, element}];
    show(released, seen_);
    seen_[self] = who.access;
    show(seen_, released);
  });
}
void Warp::execute(const SharedLoad& op, const Instr& instr) {
  read(block_->shared[static_cast<std::size_t>(op.array)], op.at, op.mask, instr.results[0]);
}
void Warp::execute(const SharedStore& op, const Instr&) {
  write(block_->shared[static_cast<std::size_t>(op.array)], op.at, op.mask, op.value, false);
}

// --- control

void Warp::execute(const Barrier&, const Instr& instr) {
  barrier_ = &instr;
  status_ = WarpStatus::at_barrier;
}

void Warp::execute(const For& op, const Instr& instr) {
  const auto bound = [&](ValueId id) {
    const std::int64_t value = integer(id);
    return type(id).elem == DType::i32 ? std::int64_t{static_cast<std::int32_t>(value)} : value;
  };
  const std::int64_t lo = bound(op.lo), hi = bound(op.hi), step = bound(op.step);
  if (step <= 0) fail(fmt::format("a loop's step must be positive, not {}", step));
  if (lo >= hi) return copy(op.init, instr.results);
  if (type(op.index).elem == DType::i32 &&
      lo + (hi - 1 - lo) / step * step + step > std::numeric_limits<std::int32_t>::max())
    fail("a loop's index leaves 32 bits");
  copy(op.init, op.carried);
  *slot(op.index) = bits_of_int(type(op.index).elem, lo);
  frames_.push_back(
      {.region = &op.body, .owner = &instr, .next = 0, .index = lo, .hi = hi, .step = step});
}

void Warp::execute(const If& op, const Instr& instr) {
  const Region* taken = *slot(op.condition) != 0 ? &op.then_body : &op.else_body;
  frames_.push_back({.region = taken, .owner = &instr});
}

}  // namespace chainfold::codegen
