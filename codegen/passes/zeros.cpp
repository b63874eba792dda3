// drop_zeros: additions of +0.0 to what cannot be -0.0 go.
//
// The sum x + 0.0 is x but for x = -0.0, whose sum is +0.0 (IEEE 754-2019, 6.3), so compilers keep
// it. Folds have such sums where an element becomes a state, and where a state of (high, low) parts
// becomes a value. Behind a scan's carry, which is a sum of its own, that would be one addition an
// element in vain. Which values cannot be -0.0 is a greatest fixed point: all are taken for such
// until an instruction says otherwise. So a loop's carried value is one if its first value and what
// the body makes of it are.
#include "chainfold/codegen/passes/zeros.hpp"

#include <map>
#include <utility>
#include <vector>

#include "chainfold/codegen/program/visit.hpp"

namespace chainfold::codegen {
namespace {

class ZeroFacts {
 public:
  explicit ZeroFacts(const Program& program)
      : program_(program), facts_(program.values.size(), Fact{true, true}) {}

  /// Visits a launch until nothing falls any more; facts only fall, so it ends.
  void launch(const Launch& launch) {
    memory_.clear();
    do {
      fell_ = false;
      region(launch.body);
    } while (fell_);
  }

  /// The value is +0.0 in every lane and element.
  [[nodiscard]] bool zero(ValueId id) const { return facts_[id].zero; }
  /// No element of the value, in any lane, is -0.0. Says something of floats alone: whatever makes
  /// a float of another type's value says so anew.
  [[nodiscard]] bool never_negative(ValueId id) const { return facts_[id].never; }

 private:
  struct Fact {
    bool zero = false, never = false;
  };
  /// What a shared array (-1, array) or a slot's field (buffer, field) may hold.
  using Place = std::pair<int, int>;

  static Fact both(Fact a, Fact b) { return {a.zero && b.zero, a.never && b.never}; }
  Fact fact(ValueId id) const { return facts_[id]; }

  void fall(Fact& known, Fact now) {
    const Fact next = both(known, now);
    fell_ = fell_ || next.zero != known.zero || next.never != known.never;
    known = next;
  }
  void set(ValueId id, Fact now) { fall(facts_[id], now); }
  /// Of all that is ever stored in a place. Lanes that are off, slots that nothing waited for and
  /// blocks that are not there give +0.0, of which both facts are true.
  Fact& held(Place place) { return memory_.try_emplace(place, Fact{true, true}).first->second; }

  void region(const Region& body) {
    for (const Instr& instr : body.body) visit(instr);
  }

  void visit(const Instr& instr) {
    if (const auto* loop = std::get_if<For>(&instr.op)) {
      for (std::size_t i = 0; i < loop->init.size(); ++i)
        set(loop->carried[i], fact(loop->init[i]));
      set(loop->index, {});
      region(loop->body);
      for (std::size_t i = 0; i < loop->init.size(); ++i) {
        set(loop->carried[i], fact(loop->body.yields[i]));
        set(instr.results[i], fact(loop->carried[i]));
      }
      return;
    }
    if (const auto* branch = std::get_if<If>(&instr.op)) {
      region(branch->then_body);
      region(branch->else_body);
      for (std::size_t i = 0; i < instr.results.size(); ++i) {
        set(instr.results[i],
            both(fact(branch->then_body.yields[i]), fact(branch->else_body.yields[i])));
      }
      return;
    }
    if (const auto* store = std::get_if<SharedStore>(&instr.op)) {
      fall(held({-1, store->array}), fact(store->value));
    } else if (const auto* copy = std::get_if<CopyAsync>(&instr.op)) {
      fall(held({-1, copy->array}), {});
    } else if (const auto* publish = std::get_if<Publish>(&instr.op)) {
      for (std::size_t i = 0; i < publish->values.size(); ++i)
        fall(held({publish->flags, static_cast<int>(i)}), fact(publish->values[i]));
    } else if (const auto* await = std::get_if<Await>(&instr.op)) {
      for (std::size_t i = 0; i < instr.results.size(); ++i)
        set(instr.results[i], held({await->flags, static_cast<int>(i)}));
    } else if (const auto* gather = std::get_if<Gather>(&instr.op)) {
      for (std::size_t i = 0; i < instr.results.size(); ++i)
        set(instr.results[i], fact(gather->values[i]));
    } else {
      for (ValueId result : instr.results) set(result, of(instr, result));
    }
  }

  Fact of(const Instr& instr, ValueId result) {
    if (std::holds_alternative<Const>(instr.op)) {
      const Bits bits = std::get<Const>(instr.op).bits;
      const DType type = program_.type(result).elem;
      const bool negative = bits == Bits{1} << (8 * size_of(type) - 1);
      return {bits == 0, !negative};
    }
    if (const auto* compute = std::get_if<Compute>(&instr.op)) return of(*compute, result);
    if (const auto* splat = std::get_if<Splat>(&instr.op)) return fact(splat->value);
    if (const auto* extract = std::get_if<Extract>(&instr.op)) return fact(extract->value);
    if (const auto* shuffle = std::get_if<Shuffle>(&instr.op)) return fact(shuffle->value);
    if (const auto* load = std::get_if<SharedLoad>(&instr.op)) return held({-1, load->array});
    if (const auto* concat = std::get_if<Concat>(&instr.op)) {
      Fact all{true, true};
      for (ValueId part : concat->parts) all = both(all, fact(part));
      return all;
    }
    if (const auto* funnel = std::get_if<Funnel>(&instr.op))
      return both(fact(funnel->low), fact(funnel->high));
    if (const auto* permute = std::get_if<Permute>(&instr.op)) {
      const Fact one = fact(permute->value);
      return permute->other == kNoValue ? one : both(one, fact(permute->other));
    }
    return {};
  }

  Fact of(const Compute& compute, ValueId result) const {
    const auto& x = compute.operands;
    const DType type = program_.type(result).elem;
    switch (compute.op) {
      case Op::select: return both(fact(x[1]), fact(x[2]));
      case Op::add:  // rounded to nearest, a sum is -0.0 only if both sides are
        return {zero(x[0]) && zero(x[1]), never_negative(x[0]) || never_negative(x[1])};
      case Op::sub: return {false, never_negative(x[0])};
      case Op::mul: return {false, x[0] == x[1]};
      case Op::abs:
      case Op::exp: return {false, true};
      case Op::sqrt: return {false, never_negative(x[0])};
      case Op::min:
      case Op::max: return {false, never_negative(x[0]) && never_negative(x[1])};
      case Op::convert: {
        const DType from = program_.type(x[0]).elem;
        if (!is_float(from)) return {zero(x[0]), true};
        // Of a narrower type, what is small and negative becomes -0.0.
        return {zero(x[0]), never_negative(x[0]) && size_of(type) > size_of(from)};
      }
      default: return {};
    }
  }

  const Program& program_;
  std::vector<Fact> facts_;
  std::map<Place, Fact> memory_;
  bool fell_ = false;
};

/// What the sum is if one of its sides changes nothing, else kNoValue.
ValueId unchanged(const Program& program, const ZeroFacts& facts, const Instr& instr) {
  const auto* sum = std::get_if<Compute>(&instr.op);
  if (sum == nullptr || sum->op != Op::add) return kNoValue;
  const Type& type = program.type(instr.results[0]);
  if (!is_float(type.elem)) return kNoValue;
  const ValueId a = sum->operands[0], b = sum->operands[1];
  for (const auto& [kept, gone] : {std::pair{a, b}, std::pair{b, a}}) {
    if (facts.zero(gone) && facts.never_negative(kept) && program.type(kept) == type) return kept;
  }
  return kNoValue;
}

void replace(Region& region, const Program& program, const ZeroFacts& facts,
             std::vector<ValueId>& stands_for) {
  const auto current = [&](ValueId& id) { id = stands_for[id]; };
  for (Instr& instr : region.body) {
    for_each_operand(instr.op, current);
    for_each_region(instr.op, [&](Region& inner) { replace(inner, program, facts, stands_for); });
    const ValueId kept = unchanged(program, facts, instr);
    if (kept != kNoValue) stands_for[instr.results[0]] = kept;
  }
  for (ValueId& id : region.yields) current(id);
}

}  // namespace

void drop_zeros(Program& program) {
  ZeroFacts facts(program);
  for (const Launch& launch : program.launches) facts.launch(launch);
  std::vector<ValueId> stands_for(program.values.size());
  for (std::size_t i = 0; i < stands_for.size(); ++i) stands_for[i] = static_cast<ValueId>(i);
  for (Launch& launch : program.launches) replace(launch.body, program, facts, stands_for);
}

}  // namespace chainfold::codegen
