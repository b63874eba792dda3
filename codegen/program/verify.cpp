#include "chainfold/codegen/program/verify.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/program/block_uniform.hpp"
#include "chainfold/codegen/program/launch_overlap.hpp"
#include "chainfold/codegen/program/look_back_rules.hpp"
#include "chainfold/codegen/program/rules.hpp"
#include "chainfold/codegen/program/streamed_buffers.hpp"

namespace chainfold::codegen {
namespace {

constexpr int kMaxWarps = 32;

bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program), state_(program.values.size(), State::undefined), rules_(program) {}

  void run() {
    check_declarations();
    std::set<std::string> names;
    for (const Launch& launch : program_.launches) {
      launch_ = &launch;
      instr_ = nullptr;
      check(is_identifier(launch.name), "a launch's name must be an identifier");
      check(names.insert(launch.name).second, "two launches have one name");
      check(launch.warps >= 1 && launch.warps <= kMaxWarps, "a block has 1 to 32 warps");
      check(launch.grain >= 0, "a thread takes blocks");
      check(is_power_of_two(launch.streams.count), "strands are a power of two");
      check(launch.streams.count == 1 || !contains<Ticket, Publish, Await, Overdue>(launch.body),
            "blocks that wait for others are taken in order");
      check(launch.min_blocks >= 0, "min_blocks must not be negative");
      check(launch.cluster >= 1 && launch.cluster <= kWarpWidth, "a cluster has 1 to 32 blocks");
      for (const SharedArray& array : launch.shared) {
        check(array.elements > 0, "a shared array needs elements");
      }
      check(lines_are_placed(launch), "lines are along the narrowest buffer that stores stream to");
      for (const CopyRing& ring : launch.rings) check(ring.slots > 0, "a ring needs slots");
      nested(launch.body, {});
      instr_ = nullptr;
      check(launch.body.yields.empty(), "a launch's body yields nothing");
      if (const Instr* culprit = find_divergent_barrier(program_, launch)) {
        instr_ = culprit;
        check(false, "a barrier stands where warps of a block may differ");
      }
      check_gathers(launch);
      const auto index = static_cast<std::size_t>(launch_ - program_.launches.data());
      if (const auto rule = broken_wait(program_, index, instr_); !rule.empty()) fail(rule);
      if (const auto broken = find_broken_look_back(program_, launch)) {
        instr_ = broken->instr;
        fail(broken->rule);
      }
    }
  }

 private:
  enum class State : std::uint8_t { undefined, visible, gone };

  void check(bool holds, std::string_view rule) const {
    if (!holds) fail(rule);
  }
  [[nodiscard]] bool lines_are_placed(const Launch& launch) const {
    const int along = launch.non_temporal.along;
    const std::set<int> streamed = streamed_buffers(launch.body);
    if (along < 0 || streamed.empty()) return true;
    auto size = [&](int buffer) {
      return size_of(program_.buffers[static_cast<std::size_t>(buffer)].type);
    };
    return launch.non_temporal.from > 0 && streamed.count(along) == 1 &&
           std::all_of(streamed.begin(), streamed.end(),
                       [&](int buffer) { return size(buffer) >= size(along); });
  }
  [[noreturn]] void fail(std::string_view rule) const {
    codegen::fail({program_, launch_, instr_}, rule);
  }

  // --- declarations

  void check_declarations() {
    for (const Buffer& buffer : program_.buffers) {
      check(is_power_of_two(buffer.alignment) && buffer.alignment >= size_of(buffer.type),
            "a buffer's alignment must be a power of two of at least its element's size");
    }
    for (std::size_t i = 0; i < program_.params.size(); ++i) {
      const Param& param = program_.params[i];
      if (param.role != ParamRole::size) continue;
      check(param.type == DType::i64, "a size is an i64");
      check(static_cast<std::size_t>(param.size.params()) <= i,
            "a size follows from parameters before it");
    }
    for (std::size_t i = 0; i < program_.values.size(); ++i) {
      const Type& type = program_.values[i];
      if (type.shape != Shape::fragment) {
        if (type.width < 1 || type.mma_row != -1) fail(fmt::format("%{} has a broken type", i));
        continue;
      }
      if (type.mma_row < 0 || static_cast<std::size_t>(type.mma_row) >= mma_table().size()) {
        fail(fmt::format("%{} is a fragment of no row of the table", i));
      }
      if (type != fragment(type.mma_row, type.operand)) {
        fail(fmt::format("%{} does not fit its row", i));
      }
    }
  }

  void check_gathers(const Launch& launch) {
    int gathers = 0;
    for (const Instr& instr : launch.body.body) {
      instr_ = &instr;
      gathers += std::holds_alternative<Gather>(instr.op) ? 1 : 0;
      bool inside = false;
      for_each_region(instr.op,
                      [&](const Region& region) { inside = inside || contains<Gather>(region); });
      check(!inside, "a cluster gathers outside of loops and branches");
      check(gathers <= 1, "a launch gathers once");
    }
    instr_ = nullptr;
  }

  // --- definitions and uses

  void define(ValueId id) {
    check(id < program_.values.size(), "a result has no type");
    if (state_[id] != State::undefined) fail(fmt::format("%{} is defined twice", id));
    state_[id] = State::visible;
    scope_.push_back(id);
  }
  void use(ValueId id) const {
    check(id < program_.values.size(), "an operand has no type");
    if (state_[id] != State::visible) fail(fmt::format("%{} is not visible here", id));
  }

  void region(const Region& region) {
    for (const Instr& instr : region.body) {
      instr_ = &instr;
      for_each_operand(instr.op, [&](ValueId id) { use(id); });
      rules_.check(*launch_, instr);
      if (const auto* loop = std::get_if<For>(&instr.op)) {
        std::vector<ValueId> arguments = loop->carried;
        arguments.push_back(loop->index);
        nested(loop->body, arguments);
      } else if (const auto* branch = std::get_if<If>(&instr.op)) {
        nested(branch->then_body, {});
        instr_ = &instr;
        nested(branch->else_body, {});
      }
      instr_ = &instr;
      for (ValueId id : instr.results) define(id);
    }
    for (ValueId id : region.yields) use(id);
  }
  // A region inside an instruction: what it defines is gone behind it.
  void nested(const Region& inner, const std::vector<ValueId>& arguments) {
    const std::size_t outer = scope_.size();
    for (ValueId id : arguments) define(id);
    region(inner);
    for (std::size_t i = outer; i < scope_.size(); ++i) state_[scope_[i]] = State::gone;
    scope_.resize(outer);
  }

  const Program& program_;
  const Launch* launch_ = nullptr;
  const Instr* instr_ = nullptr;
  std::vector<State> state_;
  OperationRules rules_;
  std::vector<ValueId> scope_;
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace chainfold::codegen
