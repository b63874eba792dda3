#include "chainfold/codegen/program/launch_overlap.hpp"

#include "chainfold/codegen/program/visit.hpp"

namespace chainfold::codegen {

namespace {

BufferRole role_of(const Program& program, int buffer) {
  return program.buffers.at(static_cast<std::size_t>(buffer)).role;
}

bool stores_outputs(const Program& program, const Region& region) {
  bool stores = false;
  for_each_instr(region, [&](const Instr& instr) {
    const auto* store = std::get_if<Store>(&instr.op);
    stores = stores || std::holds_alternative<CopyOut>(instr.op) ||
             (store != nullptr && role_of(program, store->buffer) == BufferRole::output);
  });
  return stores;
}

}  // namespace

EarlyStart::EarlyStart(const Program& program, std::size_t launch)
    : program_(program), inputs_change_(program.launches[0].overlaps) {
  for (std::size_t i = 0; i < launch && program.in_place; ++i)
    inputs_change_ = inputs_change_ || stores_outputs(program, program.launches[i].body);
}

bool EarlyStart::touches(const Instr& instr) const {
  const auto others = [&](int buffer) {
    return inputs_change_ || role_of(program_, buffer) != BufferRole::input;
  };
  if (const auto* load = std::get_if<Load>(&instr.op)) return others(load->buffer);
  if (const auto* copy = std::get_if<CopyAsync>(&instr.op)) return others(copy->buffer);
  return std::holds_alternative<Store>(instr.op) || std::holds_alternative<CopyOut>(instr.op) ||
         std::holds_alternative<AtomicAdd>(instr.op) || std::holds_alternative<Ticket>(instr.op) ||
         std::holds_alternative<Publish>(instr.op) || std::holds_alternative<Await>(instr.op) ||
         std::holds_alternative<Overdue>(instr.op);
}

bool EarlyStart::has_to_wait(const Instr& instr) const {
  bool found = touches(instr);
  for_each_region(instr.op, [&](const Region& region) {
    for_each_instr(region, [&](const Instr& inner) { found = found || touches(inner); });
  });
  return found;
}

std::string_view broken_wait(const Program& program, std::size_t launch, const Instr*& culprit) {
  const Launch& checked = program.launches[launch];
  const EarlyStart early(program, launch);
  const bool next_overlaps =
      launch + 1 < program.launches.size() && program.launches[launch + 1].overlaps;
  int waits = 0, starts = 0;
  for (const Instr& instr : checked.body.body) {
    culprit = &instr;
    if (std::holds_alternative<LetNextStart>(instr.op)) {
      if (!next_overlaps) return "a launch lets the next one start that overlaps it, no other";
      if (++starts > 1) return "a launch lets the next one start once";
      if (launch == 0 && checked.overlaps && waits == 0)
        return "the first launch waits before it lets the next one start";
      continue;
    }
    if (std::holds_alternative<WaitForLaunch>(instr.op)) {
      if (!checked.overlaps) return "only a launch that overlaps waits for the one before";
      if (++waits > 1) return "a launch waits for the one before once";
    } else if (checked.overlaps && waits == 0 && early.has_to_wait(instr)) {
      return program.launches[0].overlaps
                 ? "where the first launch overlaps, none touches memory before it waits"
                 : "a launch that overlaps touches inputs alone before it waits";
    }
    bool inside = false;
    for_each_region(instr.op, [&](const Region& region) {
      inside = inside || contains<WaitForLaunch>(region) || contains<LetNextStart>(region);
    });
    if (inside)
      return "a launch waits for the one before, and lets the next one start, outside of loops and "
             "branches";
  }
  culprit = nullptr;
  return checked.overlaps && waits == 0 ? "a launch that overlaps waits for the one before" : "";
}

}  // namespace chainfold::codegen
