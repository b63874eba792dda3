#include "chainfold/codegen/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "chainfold/codegen/base/op_table.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/program/value_lifetimes.hpp"
#include "chainfold/codegen/program/visit.hpp"

namespace chainfold::codegen {

namespace {

/// Slots of issue of an instruction on a warp.
constexpr double kPlainSlots = 1;
/// Types of 8 bytes take their operations in two halves.
constexpr double kWideTypes = 2;
/// Loads, shared memory and shuffles have a pipe that takes so many bytes at once.
constexpr double kPipeBytes = 128;
/// A matrix instruction keeps its pipe for two cycles, for f64 four; the next one of a warp need
/// not wait for that.
constexpr double kMmaSlots = 8, kMmaTurns = 4;

double slots_of(Op op) { return row_of(op).slots; }

double bytes_of(const Type& type) {
  return static_cast<double>(type.width) * size_of(type.elem) * kWarpWidth;
}

double times_through_pipe(const Type& type) {
  return type.shape == Shape::uniform ? 1 : std::max(1.0, bytes_of(type) / kPipeBytes);
}

/// What a warp does on its way through a launch.
struct Tally {
  double slots = 0;
  double turns = 0;   // slots for which the warp itself is busy
  double ahead = 0;   // bytes of loads under way, at most
  double copied = 0;  // bytes of one asynchronous copy, the largest
};

/// One warp of one block, walked through with the uniform values that are known.
class Walk {
 public:
  Walk(const Program& program, const TargetRates& rates, std::vector<std::uint64_t> params,
       std::int64_t block, std::int64_t warp)
      : program_(program),
        pipe_slots_(rates.pipe_slots),
        params_(std::move(params)),
        block_(block),
        warp_(warp),
        known_(program.values.size()),
        pending_(program.values.size(), false) {}

  Tally through(const Region& region) {
    walk(region, 1);
    return tally_;
  }

 private:
  void walk(const Region& region, double times) {
    for (const Instr& instr : region.body) {
      if (const auto* loop = std::get_if<For>(&instr.op)) {
        walk_loop(*loop, times);
      } else if (const auto* branch = std::get_if<If>(&instr.op)) {
        walk_branch(instr, *branch, times);
      } else {
        learn(instr);
        follow_loads(instr);
        tally_.slots += times * slots(instr);
        tally_.turns += times * turns(instr);
      }
    }
  }

  void walk_loop(const For& loop, double times) {
    const auto lo = known_[loop.lo], hi = known_[loop.hi], step = known_[loop.step];
    if (!lo || !hi || !step || *step <= 0) return walk(loop.body, times);
    // Rounds before the first are those that only start copies.
    const std::int64_t first = std::max<std::int64_t>(*lo, 0);
    walk_rounds(loop, times, *lo, std::min(*hi, first), *step);
    walk_rounds(loop, times, first, *hi, *step);
  }

  /// Rounds [lo, hi) of a loop, all of them like the one in the middle, below 0 like the first.
  void walk_rounds(const For& loop, double times, std::int64_t lo, std::int64_t hi,
                   std::int64_t step) {
    if (lo >= hi) return;
    const std::int64_t count = (hi - lo + step - 1) / step;
    known_[loop.index] = lo + (lo < 0 ? 0 : count / 2) * step;
    walk(loop.body, times * static_cast<double>(count));
  }

  void walk_branch(const Instr& instr, const If& branch, double times) {
    if (const auto condition = known_[branch.condition]) {
      const Region& taken = *condition != 0 ? branch.then_body : branch.else_body;
      walk(taken, times);
      for (std::size_t i = 0; i < instr.results.size(); ++i)
        known_[instr.results[i]] = known_[taken.yields[i]];
      return;
    }
    const Tally before = tally_;
    walk(branch.then_body, times);
    const Tally first = tally_;
    tally_ = before;
    walk(branch.else_body, times);
    tally_.slots = std::min(tally_.slots, first.slots);
    tally_.turns = std::min(tally_.turns, first.turns);
    tally_.ahead = std::max(tally_.ahead, first.ahead);
    tally_.copied = std::max(tally_.copied, first.copied);
  }

  /// The value of a uniform result, where it follows from what is known.
  void learn(const Instr& instr) {
    if (instr.results.size() != 1) return;
    const ValueId result = instr.results[0];
    const Type& type = program_.type(result);
    if (type.shape != Shape::uniform || is_float(type.elem)) return;
    auto& value = known_[result];
    if (const auto* constant = std::get_if<Const>(&instr.op)) {
      value = number(type.elem, constant->bits);
    } else if (const auto* special = std::get_if<Special>(&instr.op)) {
      value = special->which == Builtin::block  ? block_
              : special->which == Builtin::warp ? warp_
                                                : 0;
    } else if (const auto* param = std::get_if<ParamRef>(&instr.op)) {
      value = number(type.elem, params_[static_cast<std::size_t>(param->index)]);
    } else if (std::holds_alternative<Misalignment>(instr.op)) {
      value = 0;
    } else if (const auto* compute = std::get_if<Compute>(&instr.op)) {
      Bits operands[3] = {};
      const Type* of = &type;
      for (std::size_t i = 0; i < compute->operands.size(); ++i) {
        const auto& operand = known_[compute->operands[i]];
        if (!operand) return;
        operands[i] = bits_of_int(program_.type(compute->operands[i]).elem, *operand);
        // The type of what is computed with: of the last operand, since select's first is boolean.
        of = &program_.type(compute->operands[i]);
      }
      value = number(type.elem, evaluate(compute->op, of->elem, type.elem, operands[0], operands[1],
                                         operands[2]));
    }
  }

  static std::int64_t number(DType type, Bits bits) {
    return static_cast<std::int64_t>(
        evaluate(Op::convert, type, is_signed(type) ? DType::i64 : DType::u64, bits));
  }

  /// Loads are under way until the first instruction that computes with one.
  void follow_loads(const Instr& instr) {
    if (std::holds_alternative<Load>(instr.op)) {
      for (const ValueId id : instr.results) {
        pending_[id] = true;
        under_way_ += bytes_of(program_.type(id));
      }
      tally_.ahead = std::max(tally_.ahead, under_way_);
      return;
    }
    if (const auto* copy = std::get_if<CopyAsync>(&instr.op)) {
      const int size = size_of(program_.buffers[static_cast<std::size_t>(copy->buffer)].type);
      tally_.copied = std::max(tally_.copied, static_cast<double>(copy->elements) * size);
      return;
    }
    bool waits = false;
    for_each_operand(instr.op, [&](ValueId id) { waits = waits || pending_[id]; });
    if (!waits) return;
    if (moves_nothing(instr.op)) {
      for (const ValueId id : instr.results) pending_[id] = true;
      return;
    }
    under_way_ = 0;
    std::fill(pending_.begin(), pending_.end(), false);
  }

  /// What only names registers anew.
  static bool moves_nothing(const Operation& op) {
    return std::holds_alternative<Extract>(op) || std::holds_alternative<Concat>(op) ||
           std::holds_alternative<Pack>(op) || std::holds_alternative<Splat>(op);
  }

  double slots(const Instr& instr) const {
    if (const auto* compute = std::get_if<Compute>(&instr.op)) {
      const Type& type = program_.type(instr.results[0]);
      if (type.shape == Shape::uniform) return 0;  // beside the lanes
      const DType of = program_.type(compute->operands.back()).elem;
      return slots_of(compute->op) * type.width * (size_of(of) == 8 ? kWideTypes : 1);
    }
    if (std::holds_alternative<Load>(instr.op) || std::holds_alternative<SharedLoad>(instr.op) ||
        std::holds_alternative<Shuffle>(instr.op) || std::holds_alternative<Permute>(instr.op)) {
      return pipe_slots_ * times_through_pipe(program_.type(instr.results[0]));
    }
    if (const auto* store = std::get_if<Store>(&instr.op))
      return pipe_slots_ * times_through_pipe(program_.type(store->value));
    if (const auto* store = std::get_if<SharedStore>(&instr.op))
      return pipe_slots_ * times_through_pipe(program_.type(store->value));
    if (std::holds_alternative<Mma>(instr.op))
      return kMmaSlots * (program_.type(instr.results[0]).elem == DType::f64 ? kWideTypes : 1);
    if (std::holds_alternative<Vote>(instr.op) || std::holds_alternative<Barrier>(instr.op) ||
        std::holds_alternative<Gather>(instr.op) || std::holds_alternative<CopyAsync>(instr.op) ||
        std::holds_alternative<CopyWait>(instr.op) || std::holds_alternative<CopyOut>(instr.op) ||
        std::holds_alternative<CopyOutWait>(instr.op))
      return kPlainSlots;
    return 0;
  }

  /// A warp goes on while its loads and matrix instructions are on their way.
  double turns(const Instr& instr) const {
    if (std::holds_alternative<Mma>(instr.op)) return kMmaTurns;
    if (std::holds_alternative<Load>(instr.op) || std::holds_alternative<SharedLoad>(instr.op))
      return times_through_pipe(program_.type(instr.results[0]));
    return slots(instr);
  }

  const Program& program_;
  double pipe_slots_;
  std::vector<std::uint64_t> params_;
  std::int64_t block_, warp_;
  std::vector<std::optional<std::int64_t>> known_;
  std::vector<bool> pending_;
  double under_way_ = 0;
  Tally tally_;
};

/// What a launch over all elements would get; parameters of the user's are 1, as in a tuning.
std::vector<std::uint64_t> params_of(const Program& program, const Plan& plan, const Graph& graph,
                                     std::int64_t elements) {
  const bool columns = plan.strategy == Strategy::columns;
  const std::int64_t size = std::max<std::int64_t>(plan.segment, 1);
  const std::int64_t rows = columns ? elements / size : 0;
  const std::int64_t segments = plan.is_whole() ? 1 : columns ? size : elements / size;
  const std::int64_t cuts = columns ? 1 : segments;
  const bool cut_up = columns || plan.strategy == Strategy::parts;
  const std::int64_t length = columns ? rows : plan.segment > 0 ? plan.segment : elements;
  const PartCut cut = cut_up ? cut_parts(plan, length, cuts) : PartCut{};
  std::vector<std::uint64_t> values;
  for (const Param& param : program.params) {
    std::int64_t value = 0;
    switch (param.role) {
      case ParamRole::segments: value = segments; break;
      case ParamRole::elements: value = elements; break;
      case ParamRole::rows: value = rows; break;
      case ParamRole::stride: value = plan.segment; break;
      case ParamRole::parts: value = cut.parts; break;
      case ParamRole::part_end: value = cut_up ? cut.parts * cuts : 0; break;
      case ParamRole::part_length: value = cut.part_length; break;
      case ParamRole::user: value = 1; break;
      case ParamRole::size: value = param.size.evaluate(values); break;
      case ParamRole::literal:
        value =
            static_cast<std::int64_t>(graph.literals[static_cast<std::size_t>(param.index)].bits);
        break;
      case ParamRole::origin:
      case ParamRole::first_bit:
      case ParamRole::part_begin:
      case ParamRole::has_carry_in:
      case ParamRole::has_carry_out:
      case ParamRole::room:
      case ParamRole::has_status: break;
    }
    values.push_back(static_cast<std::uint64_t>(value));
  }
  return values;
}

/// Bytes of each buffer of a program.
std::vector<double> sizes_of(const Compiled& compiled, const Graph& graph, std::int64_t elements,
                             const std::vector<std::uint64_t>& params) {
  const Plan& plan = compiled.plan;
  const std::int64_t segments = plan.is_whole()                      ? 1
                                : plan.strategy == Strategy::columns ? plan.segment
                                                                     : elements / plan.segment;
  std::vector<double> sizes;
  for (const Buffer& buffer : compiled.program.buffers) {
    std::int64_t count = 0;
    switch (buffer.role) {
      case BufferRole::input: count = elements; break;
      case BufferRole::output: {
        const NodeId id = graph.outputs[static_cast<std::size_t>(buffer.index)];
        count = graph.node(id).level == Level::element ? elements : segments;
        break;
      }
      case BufferRole::scratch: count = buffer.elements.evaluate(params); break;
      case BufferRole::carry_in:
      case BufferRole::carry_out:
      case BufferRole::status: break;
    }
    const double bytes = static_cast<double>(count) * size_of(buffer.type);
    sizes.push_back(buffer.packed ? bytes / 8 : bytes);
  }
  return sizes;
}

/// Bytes that a launch moves, each array's once.
struct Traffic {
  double read = 0, written = 0;
  double states = 0;  ///< read of scratch, which other blocks have written just before
};
Traffic traffic_of(const Program& program, const Launch& launch, const std::vector<double>& sizes) {
  std::set<int> read, written;
  for_each_instr(launch.body, [&](const Instr& instr) {
    if (const auto* load = std::get_if<Load>(&instr.op)) read.insert(load->buffer);
    if (const auto* copy = std::get_if<CopyAsync>(&instr.op)) read.insert(copy->buffer);
    if (const auto* store = std::get_if<Store>(&instr.op)) written.insert(store->buffer);
    if (const auto* copy = std::get_if<CopyOut>(&instr.op)) written.insert(copy->buffer);
    if (const auto* add = std::get_if<AtomicAdd>(&instr.op)) written.insert(add->buffer);
  });
  Traffic traffic;
  for (const int buffer : read) {
    const auto index = static_cast<std::size_t>(buffer);
    const bool scratch = program.buffers[index].role == BufferRole::scratch;
    (scratch ? traffic.states : traffic.read) += sizes[index];
  }
  for (const int buffer : written) traffic.written += sizes[static_cast<std::size_t>(buffer)];
  return traffic;
}

double resident_blocks(const Launch& launch, int registers, const Target& target) {
  double blocks = std::max(1.0, static_cast<double>(target.resident_warps) / launch.warps);
  const auto shared = static_cast<double>(shared_layout(launch).bytes);
  if (shared > 0)
    blocks = std::min(blocks, target.processor_shared_bytes / (shared + kReservedShared));
  if (target.rates.registers > 0)
    blocks = std::min(blocks, static_cast<double>(target.rates.registers) /
                                  (registers * kWarpWidth * launch.warps));
  return std::max(1.0, std::floor(blocks));
}

LaunchEstimate estimate_launch(const Program& program, const Launch& launch, const Target& target,
                               const std::vector<std::uint64_t>& params, const Traffic& traffic) {
  /// Registers of addresses, counters and what the compiler keeps for itself; and a thread's most.
  constexpr int kOwnRegisters = 16, kMostRegisters = 255;
  /// A warp issues every fourth cycle at best: it waits for its own results.
  constexpr double kOneWarp = 0.25;
  /// What is in the second-level cache comes in so much of the time that memory takes.
  constexpr double kNear = 0.4;
  LaunchEstimate result;
  const std::int64_t blocks = std::max<std::int64_t>(1, launch.grid.evaluate(params));
  result.blocks = static_cast<double>(blocks);
  double copied = 0, turns = 0;
  // Adds what a block does, which stands for such a share of all blocks.
  const auto add = [&](std::int64_t block, double share) {
    const std::set<std::int64_t> warps = {0, launch.warps / 2, launch.warps - 1};
    for (const std::int64_t warp : warps) {
      const Tally tally = Walk(program, target.rates, params, block, warp).through(launch.body);
      // The warp in the middle stands for all others.
      const bool ends = warp == 0 || warp == launch.warps - 1;
      const double count = ends ? 1 : launch.warps - (static_cast<double>(warps.size()) - 1);
      result.slots += share * count * tally.slots;
      turns += share * count * tally.turns;
      result.bytes_ahead += share * count * tally.ahead;
      copied = std::max(copied, tally.copied);
    }
  };
  const std::int64_t lasting = std::min(blocks, launch.lasting);
  const double share = static_cast<double>(lasting) / static_cast<double>(blocks);
  if (lasting > 0) add(lasting / 2, share);
  // A block in the middle stands for the others, but of a cluster's the last may have nothing to
  // do.
  if (lasting < blocks) add(launch.cluster > 1 ? 0 : (lasting + blocks) / 2, 1 - share);
  for (const CopyRing& ring : launch.rings) result.bytes_ahead += ring.slots * copied;
  result.registers = std::min(kMostRegisters, kOwnRegisters + peak_registers(program, launch.body));
  result.resident = resident_blocks(launch, result.registers, target);
  const TargetRates& rates = target.rates;
  const double processors = target.processors;
  const double at_once = std::min(result.resident, result.blocks / processors);
  const double busy = std::min(1.0, result.blocks / processors);
  const double warps_at_once =
      std::max(1.0, std::min(result.resident, result.blocks)) * launch.warps;
  const double a_processor = result.blocks / (processors * busy);
  result.issue_cycles =
      a_processor * std::max(result.slots / rates.issue,
                             turns / std::min<double>(rates.issue, kOneWarp * warps_at_once));
  // A launch whose loads the walk did not come by: how many are under way it cannot know either.
  const double wait = rates.bytes_ahead > 0 && result.bytes_ahead > 0
                          ? rates.bytes_ahead / (at_once * result.bytes_ahead)
                          : 1;
  const double reading =
      traffic.read * std::max(1.0, wait) + traffic.states * std::max(1.0, kNear * wait);
  result.memory_cycles = (reading + traffic.written) / (processors * rates.bytes_per_cycle);
  if (rates.bytes_ahead == 0) result.memory_cycles /= busy;
  return result;
}

}  // namespace

PlanEstimate estimate(const Compiled& compiled, const Graph& graph, const Target& target,
                      std::int64_t elements) {
  const auto& [plan, program] = compiled;
  const std::vector<std::uint64_t> params = params_of(program, plan, graph, elements);
  const std::vector<double> sizes = sizes_of(compiled, graph, elements, params);
  PlanEstimate total;
  for (const Launch& launch : program.launches) {
    if (launch.grid.evaluate(params) == 0) {  // nothing is left for it to merge
      total.launches.emplace_back();
      continue;
    }
    const LaunchEstimate estimated =
        estimate_launch(program, launch, target, params, traffic_of(program, launch, sizes));
    total.cycles +=
        std::max(estimated.memory_cycles, estimated.issue_cycles) + target.rates.launch_cycles;
    total.launches.push_back(estimated);
  }
  return total;
}

}  // namespace chainfold::codegen
