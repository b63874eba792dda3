// eliminate_dead: one backward walk; what has no effect and no user goes.
#include "chainfold/codegen/passes/dead.hpp"

#include <unordered_set>

namespace chainfold::codegen {

namespace {

bool has_effect(Operation& op) {
  if (std::holds_alternative<Store>(op) || std::holds_alternative<SharedStore>(op) ||
      std::holds_alternative<Barrier>(op) || std::holds_alternative<WaitForLaunch>(op) ||
      std::holds_alternative<LetNextStart>(op) || std::holds_alternative<CopyAsync>(op) ||
      std::holds_alternative<CopyWait>(op) || std::holds_alternative<CopyOut>(op) ||
      std::holds_alternative<CopyOutWait>(op) || std::holds_alternative<AtomicAdd>(op) ||
      std::holds_alternative<Ticket>(op) || std::holds_alternative<Publish>(op) ||
      std::holds_alternative<Await>(op) || std::holds_alternative<Gather>(op)) {
    return true;
  }
  bool effect = false;
  for_each_region(op, [&](Region& region) {
    for (Instr& instr : region.body) effect = effect || has_effect(instr.op);
  });
  return effect;
}

void sweep(Region& region, std::unordered_set<ValueId>& live) {
  for (ValueId id : region.yields) live.insert(id);
  std::vector<Instr> kept;
  for (auto it = region.body.rbegin(); it != region.body.rend(); ++it) {
    bool used = has_effect(it->op);
    for (ValueId result : it->results) used = used || live.count(result) > 0;
    if (!used) continue;
    for_each_operand(it->op, [&](ValueId& id) { live.insert(id); });
    for_each_region(it->op, [&](Region& inner) { sweep(inner, live); });
    kept.push_back(std::move(*it));
  }
  region.body.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

}  // namespace

void eliminate_dead(Program& program) {
  for (Launch& launch : program.launches) {
    std::unordered_set<ValueId> live;
    sweep(launch.body, live);
  }
}

}  // namespace chainfold::codegen
