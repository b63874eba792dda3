#include "chainfold/codegen/program/look_back_rules.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace chainfold::codegen {
namespace {

class Analysis {
 public:
  explicit Analysis(const Program& program)
      : program_(program), use_(program.buffers.size(), Use::none) {}

  void region(const Region& region) {
    for (const Instr& instr : region.body) {
      if (broken_) return;
      instr_ = &instr;
      std::visit([&](const auto& op) { visit(op, instr); }, instr.op);
    }
  }
  [[nodiscard]] const std::optional<BrokenLookBack>& broken() const { return broken_; }

 private:
  enum class Use : std::uint8_t { none, plain, counter, flags };
  using Values = std::set<ValueId>;

  /// What is known at a point of the launch.
  struct State {
    Values tickets;  ///< values that are tickets
    /// (a, b): b was taken when a was, or later, on every path on which both are there.
    std::set<std::pair<ValueId, ValueId>> order;
    Values awaited;  ///< tickets under which something may have been waited for
  };
  /// Stands in State::awaited for tickets that have no name any more.
  static constexpr ValueId kNameless = kNoValue;

  void fail(std::string_view rule) {
    if (!broken_) broken_ = {instr_, rule};
  }
  void access(int buffer, Use use) {
    Use& known = use_[static_cast<std::size_t>(buffer)];
    if (known != Use::none && known != use)
      fail("a launch accesses counters by tickets alone, slots by publish and await alone");
    known = use;
  }
  void slots(int buffer, const std::vector<ValueId>& values) {
    std::vector<DType> types;
    for (const ValueId id : values) types.push_back(program_.type(id).elem);
    slots(buffer, types);
  }
  void slots(int buffer, const std::vector<DType>& types) {
    access(buffer, Use::flags);
    const auto& known = carried_.try_emplace(buffer, types).first->second;
    if (known != types) fail("all slots of a buffer carry values of the same types");
  }
  [[nodiscard]] bool is_ticket(ValueId id) const { return state_.tickets.contains(id); }
  [[nodiscard]] static bool not_later(const State& state, ValueId a, ValueId b) {
    return a == b || state.order.contains({a, b});
  }

  template <class Op>
  void visit(const Op&, const Instr&) {}
  void visit(const Load& op, const Instr&) { access(op.buffer, Use::plain); }
  void visit(const Store& op, const Instr&) { access(op.buffer, Use::plain); }
  void visit(const AtomicAdd& op, const Instr&) { access(op.buffer, Use::plain); }
  void visit(const CopyAsync& op, const Instr&) { access(op.buffer, Use::plain); }
  void visit(const CopyOut& op, const Instr&) { access(op.buffer, Use::plain); }

  void visit(const Ticket& op, const Instr& instr) {
    access(op.counter, Use::counter);
    if (counter_ >= 0 && counter_ != op.counter) fail("a launch takes tickets from one counter");
    counter_ = op.counter;
    const ValueId taken = instr.results[0];
    for (const Values* before : {&state_.tickets, &state_.awaited}) {
      for (const ValueId id : *before) state_.order.insert({id, taken});
    }
    state_.tickets.insert(taken);
  }
  void visit(const Publish& op, const Instr&) {
    slots(op.flags, op.values);
    if (op.helps) return;  // who waits for the slot waits for its own publisher
    if (!is_ticket(op.ticket)) return fail("a slot is published under a ticket of the block");
    for (const ValueId awaited : state_.awaited) {
      if (!not_later(state_, awaited, op.ticket))
        fail("a slot is published before its block waits under a later ticket");
    }
  }
  void visit(const Await& op, const Instr& instr) {
    slots(op.flags, instr.results);
    if (!is_ticket(op.ticket)) fail("a wait needs a ticket that the block has taken");
    state_.awaited.insert(op.ticket);
  }

  void visit(const Overdue& op, const Instr&) {
    slots(op.flags, op.types);
    if (!is_ticket(op.ticket)) fail("a look needs a ticket that the block has taken");
  }

  void visit(const If& op, const Instr& instr) {
    State before = state_;
    region(op.then_body);
    State then_state = std::exchange(state_, before);
    region(op.else_body);
    // Values of one branch alone are of no path on which the other's are.
    State both = std::move(before);
    for (const State* branch : std::initializer_list<const State*>{&then_state, &state_}) {
      both.order.insert(branch->order.begin(), branch->order.end());
      both.awaited.insert(branch->awaited.begin(), branch->awaited.end());
    }
    auto joined = [&](ValueId low_then, ValueId low_else, ValueId then_id, ValueId else_id) {
      return not_later(then_state, low_then, then_id) && not_later(state_, low_else, else_id);
    };
    std::vector<std::size_t> results;  // that are tickets
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      if (then_state.tickets.contains(op.then_body.yields[i]) && is_ticket(op.else_body.yields[i]))
        results.push_back(i);
    }
    Values known = both.tickets;
    known.insert(both.awaited.begin(), both.awaited.end());
    std::set<std::pair<ValueId, ValueId>> found;
    for (const std::size_t i : results) {
      const ValueId result = instr.results[i], x = op.then_body.yields[i],
                    y = op.else_body.yields[i];
      for (const ValueId id : known) {
        if (joined(id, id, x, y)) found.insert({id, result});
        if (joined(x, y, id, id)) found.insert({result, id});
      }
      for (const std::size_t j : results) {
        if (joined(x, y, op.then_body.yields[j], op.else_body.yields[j]))
          found.insert({result, instr.results[j]});
      }
    }
    both.order.insert(found.begin(), found.end());
    for (const std::size_t i : results) both.tickets.insert(instr.results[i]);
    state_ = std::move(both);
  }

  /// What is assumed where a trip of a loop begins: too much at first, until a trip bears it out.
  struct Head {
    std::vector<bool> ticket;                             ///< carried values that are tickets
    std::set<std::pair<std::size_t, std::size_t>> order;  ///< among them
    std::set<std::pair<ValueId, std::size_t>> behind;     ///< tickets from outside before them
    std::set<std::size_t> awaited;                        ///< carried tickets waited under
    Values awaited_outside;
    bool nameless = false;  ///< whether others were
  };
  static State at_head(const State& outside, const Head& head, const std::vector<ValueId>& names) {
    State state = outside;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (head.ticket[i]) state.tickets.insert(names[i]);
    }
    for (const auto& [i, j] : head.order) state.order.insert({names[i], names[j]});
    for (const auto& [id, i] : head.behind) state.order.insert({id, names[i]});
    for (const std::size_t i : head.awaited) state.awaited.insert(names[i]);
    state.awaited.insert(head.awaited_outside.begin(), head.awaited_outside.end());
    if (!head.nameless) return state;
    // What was known of the nameless ones before is not true of those that joined them.
    std::erase_if(state.order, [](const auto& pair) { return pair.first == kNameless; });
    state.awaited.insert(kNameless);
    return state;
  }
  /// The earliest carried ticket of the next trip that is not before `id`, of this one.
  [[nodiscard]] std::optional<std::size_t> renamed(const Head& head, const For& op,
                                                   ValueId id) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < op.carried.size(); ++i) {
      if (!head.ticket[i] || !not_later(state_, id, op.body.yields[i])) continue;
      if (!best || head.order.contains({i, *best})) best = i;
    }
    return best;
  }
  /// Takes back what a trip, behind which we are, does not bear out; whether there was any.
  bool weaken(Head& head, const For& op, const State& outside) const {
    const std::vector<ValueId>& next = op.body.yields;
    Head weaker = head;
    for (std::size_t i = 0; i < next.size(); ++i)
      weaker.ticket[i] = head.ticket[i] && is_ticket(next[i]);
    std::erase_if(weaker.order, [&](const auto& pair) {
      return !weaker.ticket[pair.first] || !weaker.ticket[pair.second] ||
             !not_later(state_, next[pair.first], next[pair.second]);
    });
    std::erase_if(weaker.behind, [&](const auto& pair) {
      return !weaker.ticket[pair.second] || !not_later(state_, pair.first, next[pair.second]);
    });
    for (const ValueId id : state_.awaited) {
      if (id == kNameless) {
        weaker.nameless = true;
      } else if (outside.tickets.contains(id) || outside.awaited.contains(id)) {
        weaker.awaited_outside.insert(id);
      } else if (const auto carried = renamed(weaker, op, id)) {
        weaker.awaited.insert(*carried);
      } else {
        weaker.nameless = true;
      }
    }
    std::erase_if(weaker.awaited, [&](std::size_t i) {
      if (!weaker.ticket[i]) weaker.nameless = true;
      return !weaker.ticket[i];
    });
    const bool changed = weaker.ticket != head.ticket || weaker.order != head.order ||
                         weaker.behind != head.behind || weaker.awaited != head.awaited ||
                         weaker.awaited_outside != head.awaited_outside ||
                         weaker.nameless != head.nameless;
    head = std::move(weaker);
    return changed;
  }
  void visit(const For& op, const Instr& instr) {
    const State outside = state_;
    Head head;
    const std::size_t count = op.init.size();
    for (const ValueId id : op.init) head.ticket.push_back(is_ticket(id));
    for (std::size_t i = 0; i < count; ++i) {
      if (!head.ticket[i]) continue;
      for (std::size_t j = 0; j < count; ++j) {
        if (i != j && head.ticket[j] && not_later(outside, op.init[i], op.init[j]))
          head.order.insert({i, j});
      }
      for (const Values* known : {&outside.tickets, &outside.awaited}) {
        for (const ValueId id : *known) {
          if (not_later(outside, id, op.init[i])) head.behind.insert({id, i});
        }
      }
    }
    do {  // what is assumed only ever shrinks, and what was waited for grows
      state_ = at_head(outside, head, op.carried);
      region(op.body);
      if (broken_) return;
    } while (weaken(head, op, outside));
    state_ = at_head(outside, head, instr.results);
  }

  const Program& program_;
  std::vector<Use> use_;
  std::map<int, std::vector<DType>> carried_;  // by the slots of a buffer
  State state_;
  int counter_ = -1;
  const Instr* instr_ = nullptr;
  std::optional<BrokenLookBack> broken_;
};

}  // namespace

std::optional<BrokenLookBack> find_broken_look_back(const Program& program, const Launch& launch) {
  Analysis analysis(program);
  analysis.region(launch.body);
  return analysis.broken();
}

}  // namespace chainfold::codegen
