#include "chainfold/codegen/lower/scan/ring.hpp"

#include <string>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/staged.hpp"

namespace chainfold::codegen {

ScanRing::ScanRing(Builder& builder, Program& program, const Graph& graph, const Plan& plan,
                   ScanTile& run)
    : b_(builder), graph_(graph), plan_(plan), run_(run) {
  Launch& launch = program.launches.back();
  const int slots = plan.warps * plan.stages;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const DType type = graph.inputs[i].type;
    copies_.push_back(run_copy(plan, type));
    const std::string name = "run_" + std::to_string(i);
    launch.shared.push_back({name, type, slots * copies_[i].elements});
    launch.rings.push_back({name, slots});
  }
}

ValueId ScanRing::slot_of(ValueId number) {
  const ValueId first = b_.mul(b_.convert(b_.warp(), DType::i64), b_.i64(plan_.stages));
  return b_.add(first, b_.rem(number, b_.i64(plan_.stages)));
}

ValueId ScanRing::place(std::size_t input, ValueId number) {
  return b_.mul(slot_of(number), b_.i64(copies_[input].elements));
}

void ScanRing::start(ValueId number, ValueId begin, ValueId count, int rows, bool behind_loads) {
  const ValueId slot = slot_of(number);
  const bool all = count == kNoValue;
  const std::int64_t left_out = (plan_.scan.staged_rows - rows) * run_.row_elements();
  if (all) count = b_.i64(staged_elements(plan_) - left_out);
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    if (!run_.tile().uses_input(i)) continue;
    const auto index = static_cast<int>(i);
    // Runs of the whole input may end anywhere, and with heads the last one.
    const bool whole = copies_[i].exact && (all || (plan_.segment > 0 && !plan_.scan.heads));
    b_.copy_async({.buffer = index,
                   .first = begin,
                   .unit = copies_[i].unit,
                   .array = index,
                   .to = place(i, number),
                   .elements = copies_[i].elements - static_cast<int>(left_out),
                   .begin = begin,
                   .limit = b_.add(begin, count),
                   .whole = whole,
                   .behind_loads = behind_loads,
                   .ring = index,
                   .slot = slot});
  }
}

void ScanRing::wait(ValueId number) {
  const ValueId round = b_.div(number, b_.i64(plan_.stages));
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    if (run_.tile().uses_input(i)) b_.copy_wait(static_cast<int>(i), slot_of(number), round);
  }
}

void ScanRing::read(ValueId number, ValueId begin) {
  std::vector<ValueId> bases;
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    const StageCopy& copy = copies_[i];
    const ValueId base = place(i, number);
    const auto index = static_cast<int>(i);
    bases.push_back(copy.exact ? base : b_.add(base, b_.misalignment(index, begin, copy.unit)));
  }
  run_.tile().read_stage(std::move(bases));
}

}  // namespace chainfold::codegen
