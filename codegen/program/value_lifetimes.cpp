#include "chainfold/codegen/program/value_lifetimes.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "chainfold/codegen/program/visit.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kNever = -1;

int registers_of(const Type& type) {
  if (type.shape == Shape::uniform) return 0;
  if (type.shape == Shape::fragment)
    return mma_table()[static_cast<std::size_t>(type.mma_row)].registers(type.operand);
  return type.elem == DType::boolean ? 0 : (type.width * size_of(type.elem) + 3) / 4;
}

/// From the instruction that makes a value to the last that reads it, in the order of the text. A
/// value from before a loop that the loop reads lives to the loop's end.
class Lifetimes {
 public:
  explicit Lifetimes(const Program& program)
      : program_(program),
        made_(program.values.size(), kNever),
        read_(program.values.size(), kNever) {}

  int peak(const Region& region) {
    walk(region);
    std::vector<int> change(static_cast<std::size_t>(at_) + 2, 0);
    for (std::size_t id = 0; id < made_.size(); ++id) {
      if (made_[id] == kNever || read_[id] == kNever) continue;
      const int registers = registers_of(program_.values[id]);
      change[static_cast<std::size_t>(made_[id])] += registers;
      change[static_cast<std::size_t>(read_[id]) + 1] -= registers;
    }
    int now = 0, most = 0;
    for (const int by : change) most = std::max(most, now += by);
    return most;
  }

 private:
  void make(ValueId id) { made_[id] = at_; }
  void read(ValueId id) {
    read_[id] = at_;
    for (auto& loop : loops_) {
      if (made_[id] < loop.begin) loop.reads.push_back(id);
    }
  }

  void walk(const Region& region) {
    for (const Instr& instr : region.body) {
      ++at_;
      for_each_operand(instr.op, [&](ValueId id) { read(id); });
      if (const auto* loop = std::get_if<For>(&instr.op)) {
        for (const ValueId id : loop->carried) make(id);
        loops_.push_back({at_, {}});
        walk(loop->body);
        ++at_;
        for (const ValueId id : loop->body.yields) read(id);
        const std::vector<ValueId> reads = std::move(loops_.back().reads);
        loops_.pop_back();
        for (const ValueId id : reads) read(id);
      } else {
        for_each_region(instr.op, [&](const Region& inner) {
          walk(inner);
          ++at_;
          for (const ValueId id : inner.yields) read(id);
        });
      }
      for (const ValueId id : instr.results) make(id);
    }
  }

  struct Loop {
    int begin;
    std::vector<ValueId> reads;  // of values from before it
  };
  const Program& program_;
  std::vector<int> made_, read_;
  std::vector<Loop> loops_;
  int at_ = 0;
};

}  // namespace

int peak_registers(const Program& program, const Region& region) {
  return Lifetimes(program).peak(region);
}

}  // namespace chainfold::codegen
