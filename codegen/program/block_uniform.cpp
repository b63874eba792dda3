#include "chainfold/codegen/program/block_uniform.hpp"

#include <cstddef>
#include <vector>

namespace chainfold::codegen {
namespace {

class Analysis {
 public:
  explicit Analysis(const Program& program) : same_(program.values.size(), false) {}

  void region(const Region& region) {
    for (const Instr& instr : region.body) visit(instr);
  }
  [[nodiscard]] const Instr* culprit() const { return culprit_; }

 private:
  bool same(ValueId id) const { return same_[id]; }

  void visit(const Instr& instr) {
    if (const auto* loop = std::get_if<For>(&instr.op)) {
      visit_loop(instr, *loop);
    } else if (const auto* branch = std::get_if<If>(&instr.op)) {
      visit_branch(instr, *branch);
    } else if (std::holds_alternative<Barrier>(instr.op) ||
               std::holds_alternative<Ticket>(instr.op) ||
               std::holds_alternative<Gather>(instr.op)) {
      if (divergent_ != nullptr && culprit_ == nullptr) culprit_ = divergent_;
      for (ValueId id : instr.results) same_[id] = true;
    } else {
      bool all = true;
      for_each_operand(instr.op, [&](ValueId id) { all = all && same(id); });
      if (const auto* special = std::get_if<Special>(&instr.op))
        all = special->which == Builtin::block || special->which == Builtin::streams;
      // Lanes differ, so a vote over them counts as differing between warps too.
      if (std::holds_alternative<Vote>(instr.op)) all = false;
      // Each warp finds what the one before it left.
      if (std::holds_alternative<AtomicAdd>(instr.op)) all = false;
      // Nor do two of them look at the same time.
      if (std::holds_alternative<Overdue>(instr.op)) all = false;
      for (ValueId id : instr.results) same_[id] = all;
    }
  }

  // Runs `body` as the inside of `instr`, which all warps take alike only if `alike`.
  template <class F>
  void inside(const Instr& instr, bool alike, F&& body) {
    const Instr* outer = divergent_;
    if (!alike && divergent_ == nullptr) divergent_ = &instr;
    body();
    divergent_ = outer;
  }

  void visit_loop(const Instr& instr, const For& loop) {
    const bool bounds = same(loop.lo) && same(loop.hi) && same(loop.step);
    std::vector<bool> carried;
    for (ValueId id : loop.init) carried.push_back(bounds && same(id));
    const Instr* known = culprit_;
    for (bool stable = false; !stable;) {  // falls only from true to false, so it ends
      stable = true;
      culprit_ = known;
      same_[loop.index] = bounds;
      for (std::size_t i = 0; i < carried.size(); ++i) same_[loop.carried[i]] = carried[i];
      inside(instr, bounds, [&] { region(loop.body); });
      for (std::size_t i = 0; i < carried.size(); ++i) {
        if (carried[i] && !same(loop.body.yields[i])) {
          carried[i] = false;
          stable = false;
        }
      }
    }
    for (std::size_t i = 0; i < carried.size(); ++i) same_[instr.results[i]] = carried[i];
  }

  void visit_branch(const Instr& instr, const If& branch) {
    const bool condition = same(branch.condition);
    inside(instr, condition, [&] {
      region(branch.then_body);
      region(branch.else_body);
    });
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      same_[instr.results[i]] =
          condition && same(branch.then_body.yields[i]) && same(branch.else_body.yields[i]);
    }
  }

  std::vector<bool> same_;
  const Instr* divergent_ = nullptr;
  const Instr* culprit_ = nullptr;
};

}  // namespace

const Instr* find_divergent_barrier(const Program& program, const Launch& launch) {
  if (launch.warps == 1) return nullptr;  // there is no other warp
  Analysis analysis(program);
  analysis.region(launch.body);
  return analysis.culprit();
}

}  // namespace chainfold::codegen
