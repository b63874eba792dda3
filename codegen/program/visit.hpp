// for_each_operand and for_each_region of program.hpp: the one place that knows where operations
// keep their operands.
#pragma once

#include <type_traits>
#include <utility>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {
namespace detail {
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;
}  // namespace detail

template <class F>
void for_each_operand(Operation& op, F&& fn) {
  auto maybe = [&](ValueId& id) {
    if (id != kNoValue) fn(id);
  };
  auto place = [&](Address& at) {
    fn(at.base);
    maybe(at.step);
    maybe(at.offset);
  };
  std::visit(detail::Overloaded{[](Const&) {},
                                [](Special&) {},
                                [](ParamRef&) {},
                                [](ConstFragment&) {},
                                [](Barrier&) {},
                                [](WaitForLaunch&) {},
                                [](LetNextStart&) {},
                                [&](Misalignment& o) { fn(o.first); },
                                [&](CopyAsync& o) {
                                  fn(o.first);
                                  fn(o.to);
                                  maybe(o.begin);
                                  fn(o.limit);
                                  fn(o.slot);
                                },
                                [&](CopyWait& o) {
                                  fn(o.slot);
                                  fn(o.round);
                                },
                                [&](CopyOut& o) {
                                  fn(o.first);
                                  fn(o.from);
                                },
                                [](CopyOutWait&) {},
                                [](Ticket&) {},
                                [&](Publish& o) {
                                  fn(o.slot);
                                  fn(o.ticket);
                                  for (auto& id : o.values) fn(id);
                                },
                                [&](Await& o) {
                                  fn(o.first);
                                  fn(o.count);
                                  fn(o.ticket);
                                  fn(o.publisher);
                                  fn(o.stride);
                                },
                                [&](Overdue& o) {
                                  fn(o.first);
                                  fn(o.count);
                                  fn(o.ticket);
                                  fn(o.publisher);
                                  fn(o.stride);
                                },
                                [&](Gather& o) {
                                  for (auto& id : o.values) fn(id);
                                },
                                [&](Load& o) {
                                  place(o.at);
                                  maybe(o.mask);
                                  maybe(o.ahead);
                                },
                                [&](Store& o) {
                                  place(o.at);
                                  maybe(o.mask);
                                  fn(o.value);
                                },
                                [&](AtomicAdd& o) {
                                  place(o.at);
                                  maybe(o.mask);
                                  fn(o.value);
                                },
                                [&](SharedLoad& o) {
                                  place(o.at);
                                  maybe(o.mask);
                                },
                                [&](SharedStore& o) {
                                  place(o.at);
                                  maybe(o.mask);
                                  fn(o.value);
                                },
                                [&](Compute& o) {
                                  for (auto& id : o.operands) fn(id);
                                },
                                [&](Splat& o) { fn(o.value); },
                                [&](Extract& o) { fn(o.value); },
                                [&](Concat& o) {
                                  for (auto& id : o.parts) fn(id);
                                },
                                [&](Shuffle& o) {
                                  fn(o.value);
                                  maybe(o.source);
                                },
                                [&](Funnel& o) {
                                  fn(o.low);
                                  fn(o.high);
                                  fn(o.from);
                                },
                                [&](Permute& o) {
                                  fn(o.value);
                                  maybe(o.other);
                                },
                                [&](Vote& o) { fn(o.value); },
                                [&](Pack& o) {
                                  for (auto& piece : o.pieces) maybe(piece.first);
                                },
                                [&](Mma& o) {
                                  fn(o.a);
                                  fn(o.b);
                                  fn(o.c);
                                },
                                [&](For& o) {
                                  fn(o.lo);
                                  fn(o.hi);
                                  fn(o.step);
                                  for (auto& id : o.init) fn(id);
                                },
                                [&](If& o) { fn(o.condition); }},
             op);
}

template <class F>
void for_each_region(Operation& op, F&& fn) {
  if (auto* loop = std::get_if<For>(&op)) {
    fn(loop->body);
  } else if (auto* branch = std::get_if<If>(&op)) {
    fn(branch->then_body);
    fn(branch->else_body);
  }
}

template <class F>
void for_each_operand(const Operation& op, F&& fn) {
  for_each_operand(const_cast<Operation&>(op), [&](ValueId& id) { fn(ValueId{id}); });
}

template <class F>
void for_each_region(const Operation& op, F&& fn) {
  for_each_region(const_cast<Operation&>(op), [&](Region& region) { fn(std::as_const(region)); });
}

/// Calls fn with every instruction of a region, those of the regions inside it included.
template <class F>
void for_each_instr(const Region& region, F&& fn) {
  for (const Instr& instr : region.body) {
    fn(instr);
    for_each_region(instr.op, [&](const Region& inner) { for_each_instr(inner, fn); });
  }
}

/// Whether an operation of one of these kinds stands in `region` or in a region inside it.
template <class... Ops>
bool contains(const Region& region) {
  bool found = false;
  for (const Instr& instr : region.body) {
    found = found || (std::holds_alternative<Ops>(instr.op) || ...);
    for_each_region(instr.op,
                    [&](const Region& inner) { found = found || contains<Ops...>(inner); });
  }
  return found;
}

}  // namespace chainfold::codegen
