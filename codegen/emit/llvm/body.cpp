// Values, exchanges between lanes and control.
#include "chainfold/codegen/emit/llvm/body.hpp"

#include <array>
#include <numeric>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/program/print.hpp"

namespace chainfold::codegen::llvm {

std::string buffer_name(int buffer) { return fmt::format("%buffer{}", buffer); }
std::string param_name(int param) { return fmt::format("%param{}", param); }
std::string word_type(const Type& type) {
  return fmt::format("i{}", 8 * type.width * size_of(type.elem));
}

BodyEmitter::BodyEmitter(const Program& program, const Launch& launch, FunctionWriter& out,
                         bool streams)
    : program_(program),
      launch_(launch),
      out_(out),
      values_(program.values.size()),
      streams_(streams) {
  if (launch.shared.empty()) return;
  // Memory of the thread's own: its stack may be short.
  out.declare("declare noalias ptr @chainfold_arrays()\n");
  const std::string all = out.at_beginning("call ptr @chainfold_arrays()");
  for (const std::int64_t offset : shared_layout(launch).arrays)
    arrays_.push_back(
        out.at_beginning(fmt::format("getelementptr i8, ptr {}, i64 {}", all, offset)));
}

void BodyEmitter::emit(const Region& region) {
  for (const Instr& instr : region.body)
    std::visit([&](const auto& op) { emit_op(instr, op); }, instr.op);
}

template <class Unsupported>
void BodyEmitter::emit_op(const Instr& instr, const Unsupported&) {
  throw InternalError("the CPU has no copies beside its own work and no matrix instructions: " +
                          print(program_, launch_, instr),
                      print(program_));
}

std::string BodyEmitter::element(ValueId id, int i, int lanes) {
  const Names& all = names(id);
  const std::string& one = all.size() == 1 ? all[0] : all[static_cast<std::size_t>(i)];
  if (lanes == 0 || lanes_of(type(id)) != 0) return one;
  return out_.splat(register_type(type(id).elem), one, lanes);
}

// --- values

void BodyEmitter::emit_op(const Instr& instr, const Const& op) {
  const ValueId id = instr.results[0];
  values_[id] = {literal(type(id).elem, op.bits)};
}

void BodyEmitter::emit_op(const Instr& instr, const Special& op) {
  std::string& value = values_[instr.results[0]].emplace_back();
  switch (op.which) {
    case Builtin::block: value = kBlockName; return;
    case Builtin::warp: value = "0"; return;
    case Builtin::lane:
      value = "<";
      for (int l = 0; l < kWarpWidth; ++l) value += fmt::format("{}i32 {}", l == 0 ? "" : ", ", l);
      value += ">";
      return;
    case Builtin::streams: value = streams_ ? "true" : "false"; return;
  }
}

void BodyEmitter::emit_op(const Instr& instr, const ParamRef& op) {
  values_[instr.results[0]] = {param_name(op.index)};
}

void BodyEmitter::emit_op(const Instr& instr, const Compute& op) {
  const ValueId id = instr.results[0];
  const Type& t = type(id);
  const int lanes = lanes_of(t);
  if (op.op == Op::convert && t.width == 2 && lanes > 0 && convert_pairs(id, op)) return;
  OpWriter ops(out_, lanes, t.width == 2);
  for (int i = 0; i < t.width; ++i) {
    if (op.op == Op::select) {
      // A uniform condition chooses whole vectors.
      const ValueId condition = op.operands[0];
      const std::string text = vector_of(register_type(t.elem), lanes);
      const std::string a = element(op.operands[1], i, lanes),
                        b = element(op.operands[2], i, lanes);
      values_[id].push_back(
          out_.let(fmt::format("select {0} {1}, {2} {3}, {2} {4}", text_type(condition),
                               element(condition, i, lanes_of(type(condition))), text, a, b)));
      continue;
    }
    std::vector<std::string> args;
    for (const ValueId operand : op.operands) args.push_back(element(operand, i, lanes));
    values_[id].push_back(ops.compute(op.op, type(op.operands[0]).elem, t.elem, args));
  }
}

void BodyEmitter::emit_op(const Instr& instr, const Splat& op) {
  for (int i = 0; i < type(op.value).width; ++i)
    values_[instr.results[0]].push_back(element(op.value, i, kWarpWidth));
}

void BodyEmitter::emit_op(const Instr& instr, const Extract& op) {
  const ValueId id = instr.results[0];
  for (int i = 0; i < type(id).width; ++i)
    values_[id].push_back(names(op.value)[static_cast<std::size_t>(op.first + i)]);
}

void BodyEmitter::emit_op(const Instr& instr, const Concat& op) {
  const ValueId id = instr.results[0];
  for (const ValueId part : op.parts)
    for (int i = 0; i < type(part).width; ++i)
      values_[id].push_back(element(part, i, lanes_of(type(id))));
}

// --- exchanges between lanes

void BodyEmitter::permute(ValueId result, ValueId value, ValueId other,
                          const std::vector<int>& source) {
  for (std::size_t i = 0; i < names(value).size(); ++i) {
    const std::string& from = names(value)[i];
    const std::string second = other == kNoValue ? std::string() : names(other)[i];
    values_[result].push_back(
        out_.shuffle(register_type(type(value).elem), kWarpWidth, from, second, source));
  }
}

void BodyEmitter::emit_op(const Instr& instr, const Shuffle& op) {
  const ValueId id = instr.results[0];
  if (op.kind == ShuffleKind::first) {
    const std::string lanes = vector_of(register_type(type(op.value).elem), kWarpWidth);
    for (const std::string& value : names(op.value))
      values_[id].push_back(out_.let(fmt::format("extractelement {} {}, i32 0", lanes, value)));
    return;
  }
  if (op.kind != ShuffleKind::from_lane) {
    const int distance = op.kind == ShuffleKind::up ? -op.mask : op.mask;
    std::vector<int> source;
    for (int l = 0; l < kWarpWidth; ++l) {
      const int neighbour = op.kind == ShuffleKind::xor_mask ? l ^ op.mask : l + distance;
      source.push_back(neighbour >= 0 && neighbour < kWarpWidth ? neighbour : l);
    }
    return permute(id, op.value, kNoValue, source);
  }
  const std::string_view elem = register_type(type(op.value).elem);
  const std::string vector = vector_of(elem, kWarpWidth);
  const int source_lanes = lanes_of(type(op.source));
  const std::string which =
      OpWriter(out_, source_lanes)
          .compute(Op::bit_and, DType::i32, DType::i32,
                   std::array{name(op.source), constant("i32", "31", source_lanes)});
  for (const std::string& value : names(op.value)) {
    const auto fetch = [&](const std::string& from) {
      return out_.let(fmt::format("extractelement {} {}, i32 {}", vector, value, from));
    };
    if (source_lanes == 0) {
      values_[id].push_back(out_.splat(elem, fetch(which), kWarpWidth));
      continue;
    }
    std::string all = "poison";
    for (int l = 0; l < kWarpWidth; ++l) {
      const std::string from =
          out_.let(fmt::format("extractelement <32 x i32> {}, i32 {}", which, l));
      all = out_.let(
          fmt::format("insertelement {} {}, {} {}, i32 {}", vector, all, elem, fetch(from), l));
    }
    values_[id].push_back(all);
  }
}

void BodyEmitter::emit_op(const Instr& instr, const Permute& op) {
  permute(instr.results[0], op.value, op.other, {op.source.begin(), op.source.end()});
}

void BodyEmitter::emit_op(const Instr& instr, const Vote& op) {
  const std::string vector = vector_of("i1", kWarpWidth);
  if (op.kind == VoteKind::count) {
    static_assert(kWarpWidth == 32);
    const std::string mask = out_.let(fmt::format("bitcast {} {} to i32", vector, name(op.value)));
    values_[instr.results[0]] = {out_.intrinsic("ctpop", "i32", std::array<std::string, 1>{"i32"},
                                                std::array{Argument{"i32", mask}})};
    return;
  }
  values_[instr.results[0]] = {
      out_.intrinsic(op.kind == VoteKind::any ? "vector.reduce.or" : "vector.reduce.and", "i1",
                     std::array{vector}, std::array{Argument{vector, name(op.value)}})};
}

// --- waits between blocks

void BodyEmitter::emit_op(const Instr& instr, const Ticket& op) {
  values_[instr.results[0]] = {
      out_.let(fmt::format("atomicrmw add ptr {}, i64 1 monotonic", buffer_name(op.counter)))};
}

// The mark of a record's first word orders what else is in it. A warp that helps may store the same
// once more, hence all of it is atomic, by instructions that are no others.
void BodyEmitter::emit_op(const Instr&, const Publish& op) {
  if (op.values.empty()) {
    out_.line(fmt::format("store atomic i32 1, ptr {} release, align 4",
                          element_pointer(op.flags, name(op.slot))));
    return;
  }
  const RecordLayout layout = record_layout(program_, op.values);
  const std::string record = record_pointer(op.flags, name(op.slot), layout);
  for (std::size_t i = 0; i < op.values.size(); ++i) {
    const Type& t = type(op.values[i]);
    std::string value = name(op.values[i]);
    const std::string_view elem = register_type(t.elem);
    if (lanes_of(t) != 0) {
      value =
          out_.let(fmt::format("extractelement {} {}, i32 0", vector_of(elem, lanes_of(t)), value));
    }
    if (t.elem == DType::boolean) value = out_.let(fmt::format("zext i1 {} to i8", value));
    out_.line(fmt::format("store atomic {} {}, ptr {} unordered, align {}",
                          t.elem == DType::boolean ? "i8" : elem, value,
                          field_pointer(record, layout.fields[i]), size_of(t.elem)));
  }
  constexpr int kWordBytes = 16, kMark = 8;
  for (int w = layout.words; w-- > 0;) {
    const std::string mark =
        out_.let(fmt::format("getelementptr i8, ptr {}, i64 {}", record, w * kWordBytes + kMark));
    out_.line(w > 0 ? fmt::format("store atomic i64 1, ptr {} unordered, align 8", mark)
                    : fmt::format("store atomic i64 1, ptr {} release, align 8", mark));
  }
}

std::string BodyEmitter::record_pointer(int buffer, const std::string& slot,
                                        const RecordLayout& layout) {
  return element_pointer(buffer, out_.let(fmt::format("mul i64 {}, {}", slot, layout.elements())));
}

std::string BodyEmitter::field_pointer(const std::string& record,
                                       const RecordLayout::Field& field) {
  constexpr int kWordBytes = 16, kByteBits = 8;
  return out_.let(fmt::format("getelementptr i8, ptr {}, i64 {}", record,
                              field.word * kWordBytes + field.shift / kByteBits));
}

template <class Look>
BodyEmitter::Polling BodyEmitter::poll_slots(const Look& op, const RecordLayout& layout,
                                             std::string_view published_to) {
  constexpr bool patient = std::is_same_v<Look, Await>;
  out_.declare("declare void @chainfold_yield(i32)\n");
  const std::string label = fmt::format("{}{}", patient ? "await" : "overdue", out_.fresh());
  const std::string before = out_.current_label();
  const std::string slot = fmt::format("%{}.slot", label), next = fmt::format("%{}.next", label);
  out_.line(fmt::format("br label %{}.head", label));
  out_.label(label + ".passed");
  out_.line(fmt::format("{} = add i64 {}, 1", next, slot));
  out_.line(fmt::format("br label %{}.head", label));
  out_.label(label + ".head");
  out_.line(fmt::format("{} = phi i64 [ 0, %{} ], [ {}, %{}.passed ]", slot, before, next, label));
  const std::string more = out_.let(fmt::format("icmp slt i64 {}, {}", slot, name(op.count)));
  out_.line(fmt::format("br i1 {0}, label %{1}.one, label %{1}.done", more, label));

  out_.label(label + ".one");
  const std::string steps = out_.let(fmt::format("mul i64 {}, {}", slot, name(op.stride)));
  const std::string publisher = out_.let(fmt::format("add i64 {}, {}", steps, name(op.publisher)));
  const std::string index = out_.let(fmt::format("add i64 {}, {}", slot, name(op.first)));
  const bool carries = layout.words > 0;
  const std::string record = carries ? record_pointer(op.flags, index, layout) : std::string();
  const std::string pointer = carries
                                  ? out_.let(fmt::format("getelementptr i8, ptr {}, i64 8", record))
                                  : element_pointer(op.flags, index);
  const std::string wanted =
      out_.let(fmt::format("icmp slt i64 {}, {}", publisher, name(op.ticket)));
  out_.line(fmt::format("br i1 {0}, label %{1}.poll, label %{1}.passed", wanted, label));

  out_.label(label + ".poll");
  const std::string polls = fmt::format("%{}.polls", label),
                    again = fmt::format("%{}.again", label);
  out_.line(fmt::format("{0} = phi i32 [ 0, %{1}.one ], [ {2}, %{1}.{3} ]", polls, label, again,
                        patient ? "late" : "wait"));
  out_.line(fmt::format("{} = add i32 {}, 1", again, polls));
  const std::string_view mark = carries ? "i64" : "i32";
  const std::string flag = out_.let(
      fmt::format("load atomic {}, ptr {} acquire, align {}", mark, pointer, carries ? 8 : 4));
  const std::string published = out_.let(fmt::format("icmp ne {} {}, 0", mark, flag));
  out_.line(
      fmt::format("br i1 {0}, label %{1}.{2}, label %{1}.late", published, label, published_to));
  return {label, slot, record, polls};
}

// Slots one after the other; a block's thread rarely waits, and then for one that is running. What
// they carry goes from the record to lane l of the results by way of the stack.
void BodyEmitter::emit_op(const Instr& instr, const Await& op) {
  const RecordLayout layout = record_layout(program_, instr.results);
  std::vector<std::string> lanes;  // of each result
  for (const ValueId result : instr.results) {
    const std::string vector = vector_of(memory_type(type(result).elem), kWarpWidth);
    lanes.push_back(out_.slot(vector));
    out_.line(fmt::format("store {} zeroinitializer, ptr {}", vector, lanes.back()));
  }
  const bool carries = !instr.results.empty();
  const auto [label, slot, record, polls] = poll_slots(op, layout, carries ? "found" : "passed");
  if (carries) {
    out_.label(label + ".found");
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      const std::string_view elem = memory_type(type(instr.results[i]).elem);
      const std::string value = out_.let(fmt::format("load atomic {}, ptr {} unordered, align {}",
                                                     elem, field_pointer(record, layout.fields[i]),
                                                     size_of(type(instr.results[i]).elem)));
      const std::string lane =
          out_.let(fmt::format("getelementptr {}, ptr {}, i64 {}", elem, lanes[i], slot));
      out_.line(fmt::format("store {} {}, ptr {}", elem, value, lane));
    }
    out_.line(fmt::format("br label %{}.passed", label));
  }
  out_.label(label + ".late");
  out_.line(fmt::format("call void @chainfold_yield(i32 {})", polls));
  out_.line(fmt::format("br label %{}.poll", label));
  out_.label(label + ".done");
  for (std::size_t i = 0; i < instr.results.size(); ++i) {
    const DType elem = type(instr.results[i]).elem;
    std::string value = out_.let(
        fmt::format("load {}, ptr {}", vector_of(memory_type(elem), kWarpWidth), lanes[i]));
    if (elem == DType::boolean) {
      value = out_.let(fmt::format("icmp ne {} {}, zeroinitializer",
                                   vector_of(memory_type(elem), kWarpWidth), value));
    }
    values_[instr.results[i]] = {value};
  }
}

void BodyEmitter::emit_op(const Instr& instr, const Overdue& op) {
  const auto [label, slot, record, polls] = poll_slots(op, record_layout(op.types), "passed");
  out_.label(label + ".late");
  const std::string patient = out_.let(fmt::format("icmp slt i32 {}, {}", polls, op.looks - 1));
  out_.line(fmt::format("br i1 {0}, label %{1}.wait, label %{1}.done", patient, label));
  out_.label(label + ".wait");
  out_.line("call void @chainfold_yield(i32 0)");
  out_.line(fmt::format("br label %{}.poll", label));
  out_.label(label + ".done");
  values_[instr.results[0]] = {slot};
}

// --- control

void BodyEmitter::emit_op(const Instr& instr, const For& op) {
  const std::string label = fmt::format("loop{}", out_.fresh());
  const std::string before = out_.current_label();
  // The values that come back to the loop's head are known only after its body.
  std::string text = out_.take_text();
  values_[op.index] = {fmt::format("%{}.index", label)};
  for (std::size_t r = 0; r < op.carried.size(); ++r) {
    for (int i = 0; i < type(op.carried[r]).width; ++i)
      values_[op.carried[r]].push_back(fmt::format("%{}.carried{}.{}", label, r, i));
  }
  out_.label(label + ".body");
  emit(op.body);
  const std::string back = out_.current_label();
  const std::string next = out_.let(
      fmt::format("add nsw {} {}, {}", text_type(op.index), name(op.index), name(op.step)));
  if (op.few) out_.declare(kRolled);
  out_.line(fmt::format("br label %{}.head{}", label, op.few ? ", !llvm.loop !1" : ""));
  const std::string body = out_.take_text();

  text += fmt::format("  br label %{0}.head\n{0}.head:\n", label);
  const auto phi = [&](const std::string& result, const std::string& phi_type,
                       const std::string& first, const std::string& later) {
    text += fmt::format("  {} = phi {} [ {}, %{} ], [ {}, %{} ]\n", result, phi_type, first, before,
                        later, back);
  };
  phi(name(op.index), text_type(op.index), name(op.lo), next);
  for (std::size_t r = 0; r < op.carried.size(); ++r) {
    for (std::size_t i = 0; i < names(op.carried[r]).size(); ++i) {
      phi(names(op.carried[r])[i], text_type(op.carried[r]), names(op.init[r])[i],
          names(op.body.yields[r])[i]);
    }
  }
  text += fmt::format(
      "  %{0}.more = icmp slt {3} {1}, {2}\n  br i1 %{0}.more, label %{0}.body, label %{0}.done\n",
      label, name(op.index), name(op.hi), text_type(op.index));
  out_.append(text + body);
  out_.label(label + ".done");
  for (std::size_t r = 0; r < instr.results.size(); ++r)
    values_[instr.results[r]] = names(op.carried[r]);
}

void BodyEmitter::emit_op(const Instr& instr, const If& op) {
  if (const std::string& known = name(op.condition); known == "true" || known == "false") {
    const Region& taken = known == "true" ? op.then_body : op.else_body;
    emit(taken);
    for (std::size_t r = 0; r < instr.results.size(); ++r)
      values_[instr.results[r]] = names(taken.yields[r]);
    return;
  }
  const std::string label = fmt::format("if{}", out_.fresh());
  out_.line(fmt::format("br i1 {0}, label %{1}.then, label %{1}.else", name(op.condition), label));
  const auto side = [&](const Region& region, std::string_view which) {
    out_.label(fmt::format("{}.{}", label, which));
    emit(region);
    const std::string last = out_.current_label();
    out_.line(fmt::format("br label %{}.done", label));
    return last;
  };
  const std::string then_last = side(op.then_body, "then");
  const std::string else_last = side(op.else_body, "else");
  out_.label(label + ".done");
  for (std::size_t r = 0; r < instr.results.size(); ++r) {
    const ValueId a = op.then_body.yields[r], b = op.else_body.yields[r];
    for (int i = 0; i < type(a).width; ++i) {
      values_[instr.results[r]].push_back(out_.let(fmt::format(
          "phi {} [ {}, %{} ], [ {}, %{} ]", text_type(a), names(a)[static_cast<std::size_t>(i)],
          then_last, names(b)[static_cast<std::size_t>(i)], else_last)));
    }
  }
}

}  // namespace chainfold::codegen::llvm
