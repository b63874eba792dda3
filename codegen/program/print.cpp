#include "chainfold/codegen/program/print.hpp"

#include <iterator>

#include <fmt/format.h>

namespace chainfold::codegen {
namespace {

std::string_view name_of(Operand operand) {
  switch (operand) {
    case Operand::a: return "a";
    case Operand::b: return "b";
    case Operand::c: return "c";
  }
  return "?";
}

std::string_view name_of(Builtin which) {
  switch (which) {
    case Builtin::block: return "block";
    case Builtin::warp: return "warp";
    case Builtin::lane: return "lane";
    case Builtin::streams: return "streams";
  }
  return "?";
}

// Names an index of a list, also where it is out of range: broken programs are printed too.
template <class List>
std::string named(const List& list, int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= list.size())
    return fmt::format("<no {}>", index);
  return list[static_cast<std::size_t>(index)].name;
}

std::string value(ValueId id) { return id == kNoValue ? "%none" : fmt::format("%{}", id); }

std::string join(const std::vector<ValueId>& ids) {
  std::string text;
  for (ValueId id : ids) text += (text.empty() ? "" : ", ") + value(id);
  return text;
}

class Printer {
 public:
  Printer(const Program& program, const Launch& launch) : program_(program), launch_(launch) {}

  // One instruction without indentation; regions only as "{ ... }".
  std::string line(const Instr& instr) const {
    std::string text = instr.results.empty() ? "" : join(instr.results) + " = ";
    text += std::visit([&](const auto& op) { return operation(op, instr); }, instr.op);
    if (instr.results.empty()) return text;
    text += " : ";
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      text += (i == 0 ? "" : ", ") + type_text(instr.results[i]);
    }
    return text;
  }

  void region(const Region& region, int depth, std::string& out) const {
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    for (const Instr& instr : region.body) {
      out += indent + line(instr);
      if (const auto* loop = std::get_if<For>(&instr.op)) {
        nested(loop->body, depth, out);
      } else if (const auto* branch = std::get_if<If>(&instr.op)) {
        nested(branch->then_body, depth, out);
        if (!branch->else_body.body.empty() || !branch->else_body.yields.empty()) {
          out.pop_back();  // "} else {" on one line
          out += " else";
          nested(branch->else_body, depth, out);
        }
      } else {
        out += '\n';
      }
    }
    if (!region.yields.empty()) out += indent + "yield " + join(region.yields) + "\n";
  }

 private:
  void nested(const Region& inner, int depth, std::string& out) const {
    out += " {\n";
    region(inner, depth + 1, out);
    out += std::string(static_cast<std::size_t>(2 * depth), ' ') + "}\n";
  }

  std::string type_text(ValueId id) const {
    return id < program_.values.size() ? print(program_.type(id)) : "<no type>";
  }

  static std::string place(const Address& at, ValueId mask) {
    std::string text = fmt::format("[{}", value(at.base));
    if (at.offset != kNoValue) text += " + " + value(at.offset);
    if (at.group != kWarpWidth) {
      text += fmt::format(" + lane/{} * {}", at.group,
                          at.step != kNoValue ? value(at.step) : std::to_string(at.stride));
    }
    text += "]";
    if (mask != kNoValue) text += " where " + value(mask);
    return text;
  }

  std::string operation(const Const& op, const Instr& instr) const {
    const ValueId id = instr.results.empty() ? kNoValue : instr.results[0];
    const DType type = id < program_.values.size() ? program_.type(id).elem : DType::u64;
    return "const " + text_of_bits(type, op.bits);
  }
  std::string operation(const Special& op, const Instr&) const {
    return std::string(name_of(op.which));
  }
  std::string operation(const ParamRef& op, const Instr&) const {
    return "param " + named(program_.params, op.index);
  }
  std::string operation(const Load& op, const Instr&) const {
    return fmt::format("load {}{}{}{}", named(program_.buffers, op.buffer), place(op.at, op.mask),
                       op.ahead == kNoValue ? "" : ", then + " + value(op.ahead),
                       op.evict_first ? ", once" : "");
  }
  std::string operation(const Store& op, const Instr&) const {
    return fmt::format("{} {}{}, {}", op.streams ? "stream" : "store",
                       named(program_.buffers, op.buffer), place(op.at, op.mask), value(op.value));
  }
  std::string operation(const AtomicAdd& op, const Instr&) const {
    return fmt::format("atomic_add{} {}{}, {}",
                       op.order == AtomicOrder::relaxed ? "" : " acquire_release",
                       named(program_.buffers, op.buffer), place(op.at, op.mask), value(op.value));
  }
  std::string operation(const SharedLoad& op, const Instr&) const {
    return fmt::format("shared_load {}{}", named(launch_.shared, op.array), place(op.at, op.mask));
  }
  std::string operation(const SharedStore& op, const Instr&) const {
    return fmt::format("shared_store {}{}, {}", named(launch_.shared, op.array),
                       place(op.at, op.mask), value(op.value));
  }
  std::string operation(const Compute& op, const Instr&) const {
    return fmt::format("{} {}", codegen::name_of(op.op), join(op.operands));
  }
  std::string operation(const Splat& op, const Instr&) const { return "splat " + value(op.value); }
  std::string operation(const Extract& op, const Instr&) const {
    return fmt::format("extract {}, {}", value(op.value), op.first);
  }
  std::string operation(const Concat& op, const Instr&) const { return "concat " + join(op.parts); }
  std::string operation(const Shuffle& op, const Instr&) const {
    if (op.kind == ShuffleKind::xor_mask) {
      return fmt::format("shuffle {}, lane ^ {}", value(op.value), op.mask);
    }
    if (op.kind == ShuffleKind::up || op.kind == ShuffleKind::down) {
      const char sign = op.kind == ShuffleKind::up ? '-' : '+';
      return fmt::format("shuffle {}, lane {} {}", value(op.value), sign, op.mask);
    }
    if (op.kind == ShuffleKind::first) return "first lane of " + value(op.value);
    return fmt::format("shuffle {}, from {}", value(op.value), value(op.source));
  }
  std::string operation(const Permute& op, const Instr&) const {
    std::string lanes;
    for (std::uint8_t lane : op.source) lanes += (lanes.empty() ? "" : " ") + std::to_string(lane);
    if (op.other == kNoValue) return fmt::format("permute {}, [{}]", value(op.value), lanes);
    return fmt::format("permute {}, {}, [{}]", value(op.value), value(op.other), lanes);
  }
  std::string operation(const Funnel& op, const Instr&) const {
    return fmt::format("funnel {}, {}, from {}", value(op.low), value(op.high), value(op.from));
  }
  std::string operation(const Vote& op, const Instr&) const {
    return fmt::format("{} {}",
                       op.kind == VoteKind::any   ? "any"
                       : op.kind == VoteKind::all ? "all"
                                                  : "count",
                       value(op.value));
  }
  std::string operation(const ConstFragment& op, const Instr&) const {
    return "const_fragment " + print(op.matrix);
  }
  std::string operation(const Pack& op, const Instr&) const {
    std::string pieces;
    for (const auto& [id, count] : op.pieces) {
      pieces += pieces.empty() ? "" : ", ";
      pieces += id == kNoValue ? fmt::format("{} zeros", count) : value(id);
    }
    return "pack " + pieces;
  }
  std::string operation(const Mma& op, const Instr& instr) const {
    std::string_view row = "<no row>";
    if (!instr.results.empty() && instr.results[0] < program_.values.size()) {
      const int index = program_.type(instr.results[0]).mma_row;
      if (index >= 0 && static_cast<std::size_t>(index) < mma_table().size()) {
        row = mma_table()[static_cast<std::size_t>(index)].name;
      }
    }
    return fmt::format("mma {} {}, {}, {}", row, value(op.a), value(op.b), value(op.c));
  }
  std::string operation(const Barrier&, const Instr&) const { return "barrier"; }
  std::string operation(const WaitForLaunch&, const Instr&) const { return "wait_for_launch"; }
  std::string operation(const LetNextStart&, const Instr&) const { return "let_next_start"; }
  std::string operation(const Misalignment& op, const Instr&) const {
    return fmt::format("misalignment {}[{}] of {} bytes", named(program_.buffers, op.buffer),
                       value(op.first), op.unit);
  }
  std::string operation(const CopyAsync& op, const Instr&) const {
    return fmt::format(
        "copy_async {}[{}] <- {}[{}] from {} bytes on, {} elements, {}limit {}{}, {}[{}]",
        named(launch_.shared, op.array), value(op.to), named(program_.buffers, op.buffer),
        value(op.first), op.unit, op.elements,
        op.begin == kNoValue ? "" : fmt::format("begin {}, ", value(op.begin)), value(op.limit),
        std::string(op.whole ? " (whole)" : "") + (op.behind_loads ? " behind loads" : ""),
        named(launch_.rings, op.ring), value(op.slot));
  }
  std::string operation(const CopyWait& op, const Instr&) const {
    return fmt::format("copy_wait {}[{}], round {}", named(launch_.rings, op.ring), value(op.slot),
                       value(op.round));
  }
  std::string operation(const CopyOut& op, const Instr&) const {
    return fmt::format("copy_out {}[{}] <- {}[{}], {} elements", named(program_.buffers, op.buffer),
                       value(op.first), named(launch_.shared, op.array), value(op.from),
                       op.elements);
  }
  std::string operation(const CopyOutWait&, const Instr&) const { return "copy_out_wait"; }
  std::string operation(const Ticket& op, const Instr&) const {
    return "ticket " + named(program_.buffers, op.counter);
  }
  std::string operation(const Publish& op, const Instr&) const {
    std::string text = fmt::format("publish {}[{}], ticket {}", named(program_.buffers, op.flags),
                                   value(op.slot), value(op.ticket));
    for (const ValueId id : op.values) text += ", " + value(id);
    return text + (op.helps ? ", helps" : "");
  }
  std::string operation(const Overdue& op, const Instr&) const {
    return fmt::format("overdue {}[{}], count {}, ticket {}, publishers {} step {}, looks {}",
                       named(program_.buffers, op.flags), value(op.first), value(op.count),
                       value(op.ticket), value(op.publisher), value(op.stride), op.looks);
  }
  std::string operation(const Await& op, const Instr&) const {
    return fmt::format("await {}[{}], count {}, ticket {}, publishers {} step {}",
                       named(program_.buffers, op.flags), value(op.first), value(op.count),
                       value(op.ticket), value(op.publisher), value(op.stride));
  }
  std::string operation(const Gather& op, const Instr&) const {
    std::string text = "gather";
    for (const ValueId id : op.values) text += (id == op.values.front() ? " " : ", ") + value(id);
    return text;
  }
  std::string operation(const For& op, const Instr&) const {
    std::string text = fmt::format("for {}{} = {} to {} step {}", op.few ? "few " : "",
                                   value(op.index), value(op.lo), value(op.hi), value(op.step));
    for (std::size_t i = 0; i < op.carried.size(); ++i) {
      text += fmt::format("{} {} = {}", i == 0 ? " carry" : ",", value(op.carried[i]),
                          value(i < op.init.size() ? op.init[i] : kNoValue));
    }
    return text;
  }
  std::string operation(const If& op, const Instr&) const { return "if " + value(op.condition); }

  const Program& program_;
  const Launch& launch_;
};

std::string_view name_of(ParamRole role) {
  constexpr std::string_view kNames[] = {
      "segments",     "elements",      "origin", "part_begin", "part_end", "parts",
      "part_length",  "rows",          "stride", "first_bit",  "literal",  "user",
      "has_carry_in", "has_carry_out", "room",   "has_status", "size"};
  return kNames[static_cast<int>(role)];
}

std::string_view name_of(BufferRole role) {
  constexpr std::string_view kNames[] = {"input",    "output",    "scratch",
                                         "carry_in", "carry_out", "status"};
  return kNames[static_cast<int>(role)];
}

}  // namespace

std::string print(const Type& type) {
  const std::string_view elem = name_of(type.elem);
  if (type.shape == Shape::fragment) {
    const auto row = static_cast<std::size_t>(type.mma_row);
    const bool known = type.mma_row >= 0 && row < mma_table().size();
    return fmt::format("fragment<{}.{}>", known ? mma_table()[row].name : "?",
                       name_of(type.operand));
  }
  const std::string_view shape = type.shape == Shape::uniform ? "uniform" : "lane";
  if (type.width == 1) return fmt::format("{}<{}>", shape, elem);
  return fmt::format("{}<{} x {}>", shape, elem, type.width);
}

std::string print(const Program& program, const Launch& launch, const Instr& instr) {
  std::string text = Printer(program, launch).line(instr);
  for_each_region(instr.op, [&](const Region&) { text += " { ... }"; });
  return text;
}

std::string print(const Program& program) {
  std::string out =
      fmt::format("program {}{}{}\n", program.name, program.in_place ? ", in place" : "",
                  program.accesses_anywhere ? ", accesses anywhere" : "");
  for (const Buffer& buffer : program.buffers) {
    out += fmt::format("buffer {}: {} {} {}, align {}", buffer.name, name_of(buffer.role),
                       buffer.index, name_of(buffer.type), buffer.alignment);
    if (buffer.packed) out += ", packed";
    if (buffer.role == BufferRole::scratch) out += ", elements " + buffer.elements.print();
    out += '\n';
  }
  for (const Param& param : program.params) {
    out += fmt::format("param {}: {}", param.name, name_of(param.role));
    if (param.role == ParamRole::literal || param.role == ParamRole::user ||
        param.role == ParamRole::stride || param.role == ParamRole::first_bit) {
      out += fmt::format(" {}", param.index);
    }
    out += fmt::format(" {}", name_of(param.type));
    if (param.role == ParamRole::size) out += " = " + param.size.print();
    out += '\n';
  }
  for (const Launch& launch : program.launches) {
    out += fmt::format("\nlaunch {}: grid {}, warps {}", launch.name, launch.grid.print(),
                       launch.warps);
    if (launch.min_blocks > 0) out += fmt::format(", min_blocks {}", launch.min_blocks);
    if (launch.lasting > 0) out += fmt::format(", lasting {}", launch.lasting);
    if (launch.cluster > 1) out += fmt::format(", cluster {}", launch.cluster);
    if (launch.grain != 1) out += fmt::format(", grain {}", launch.grain);
    if (launch.overlaps) out += ", overlaps";
    if (launch.half_vectors) out += ", half vectors";
    if (launch.streams.count > 1)
      out += fmt::format(", in {} strands from {} blocks on", launch.streams.count,
                         launch.streams.least);
    if (launch.non_temporal.along >= 0)
      out += fmt::format(", lines along {}",
                         program.buffers[static_cast<std::size_t>(launch.non_temporal.along)].name);
    if (launch.non_temporal.evict_last_from > 0)
      out += fmt::format(", keeps loads from {} bytes on", launch.non_temporal.evict_last_from);
    out += " {\n";
    for (const SharedArray& array : launch.shared) {
      out += fmt::format("  shared {}: {}[{}]\n", array.name, name_of(array.type), array.elements);
    }
    for (const CopyRing& ring : launch.rings) {
      out += fmt::format("  ring {}: {} slots{}\n", ring.name, ring.slots,
                         launch.bulk_copies ? ", bulk" : "");
    }
    Printer(program, launch).region(launch.body, 1, out);
    out += "}\n";
  }
  return out;
}

}  // namespace chainfold::codegen
