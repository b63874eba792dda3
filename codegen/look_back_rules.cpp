#include "chainfold/codegen/look_back_rules.hpp"

#include <cstddef>
#include <vector>

namespace chainfold::codegen {
namespace {

class Analysis {
 public:
  explicit Analysis(const Program& program)
      : use_(program.buffers.size(), Use::none), is_ticket_(program.values.size(), false) {}

  void region(const Region& region) {
    for (const Instr& instr : region.body) {
      if (broken_) return;
      instr_ = &instr;
      std::visit([&](const auto& op) { visit(op); }, instr.op);
    }
  }
  [[nodiscard]] const std::optional<BrokenLookBack>& broken() const { return broken_; }

 private:
  enum class Use : std::uint8_t { none, plain, counter, flags };

  void fail(std::string_view rule) {
    if (!broken_) broken_ = {instr_, rule};
  }
  void access(int buffer, Use use) {
    Use& known = use_[static_cast<std::size_t>(buffer)];
    if (known != Use::none && known != use)
      fail("a launch accesses counters by tickets alone, slots by publish and await alone");
    known = use;
  }

  template <class Op>
  void visit(const Op&) {}
  void visit(const Load& op) { access(op.buffer, Use::plain); }
  void visit(const Store& op) { access(op.buffer, Use::plain); }
  void visit(const AtomicAdd& op) { access(op.buffer, Use::plain); }

  void visit(const Ticket& op) {
    access(op.counter, Use::counter);
    latest_ = instr_->results[0];
    is_ticket_[latest_] = true;
  }
  void visit(const Publish& op) {
    access(op.flags, Use::flags);
    if (op.ticket != latest_)
      fail("a slot is published under the last ticket that the block has taken");
  }
  void visit(const Await& op) {
    access(op.flags, Use::flags);
    if (!is_ticket_[op.ticket]) fail("a wait needs a ticket that the block has taken");
  }

  // Behind a region that takes tickets, or may have, none is known to be the last.
  void visit(const For& op) {
    const bool takes = contains<Ticket>(op.body);
    if (takes) latest_ = kNoValue;
    region(op.body);
    if (takes) latest_ = kNoValue;
  }
  void visit(const If& op) {
    const bool takes = contains<Ticket>(op.then_body) || contains<Ticket>(op.else_body);
    const ValueId before = latest_;
    region(op.then_body);
    latest_ = before;
    region(op.else_body);
    latest_ = takes ? kNoValue : before;
  }

  std::vector<Use> use_;
  std::vector<bool> is_ticket_;
  ValueId latest_ = kNoValue;
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
