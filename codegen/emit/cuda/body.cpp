// Values, element-wise operations and control.
#include "chainfold/codegen/emit/cuda/body.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/emit/cuda/ops.hpp"

namespace chainfold::codegen::cuda {

std::string buffer_name(const Program& program, int buffer) {
  return fmt::format("b{}_{}", buffer, identifier(program.buffers.at(buffer).name));
}
std::string param_name(const Program& program, int param) {
  return fmt::format("p{}_{}", param, identifier(program.params.at(param).name));
}
std::string shared_name(const Launch& launch, int array) {
  return fmt::format("s{}_{}", array, identifier(launch.shared.at(array).name));
}
std::string ring_name(const Launch& launch, int ring) {
  return fmt::format("r{}_{}", ring, identifier(launch.rings.at(ring).name));
}

std::string BodyEmitter::emit(const Region& region) {
  text_.clear();
  depth_ = 1;
  emit_region(region);
  return std::move(text_);
}

void BodyEmitter::line(const std::string& text) {
  text_.append(2 * static_cast<std::size_t>(depth_), ' ').append(text).push_back('\n');
}

std::string BodyEmitter::word_of(ValueId id, int i) const {
  const auto named = named_.find(id);
  if (named == named_.end()) return variable(id, type(id), i);
  const std::vector<std::string>& names = named->second;
  return names.size() == 1 ? names[0] : names.at(static_cast<std::size_t>(i));
}
std::vector<std::string> BodyEmitter::words_of(ValueId id) const {
  const auto named = named_.find(id);
  return named != named_.end() ? named->second : variables(id, type(id));
}
std::string BodyEmitter::element_of(ValueId id, int i) const {
  const Type& t = type(id);
  return element(word_of(id, i / elements_per_word(t)), t, i);
}

void BodyEmitter::declare(ValueId id, const std::vector<std::string>& values) {
  const Type& t = type(id);
  std::vector<std::string> parts;
  for (int i = 0; i < static_cast<int>(values.size()); ++i)
    parts.push_back(fmt::format("{} = {}", variable(id, t, i), values[i]));
  const std::string start = fmt::format("const {} ", variable_type(t));
  const std::string text = fmt::format("{}{};", start, fmt::join(parts, ", "));
  constexpr std::size_t kLineWidth = 100;
  if (text.size() <= kLineWidth) return line(text);
  const std::string indent(2 * static_cast<std::size_t>(depth_) + start.size(), ' ');
  line(fmt::format("{}{};", start, fmt::join(parts, ",\n" + indent)));
}

void BodyEmitter::define(ValueId id, const std::vector<std::string>& elements) {
  const Type& t = type(id);
  if (!is_packed(t)) return declare(id, elements);
  const int per_word = elements_per_word(t);
  std::vector<std::string> words;
  for (std::size_t first = 0; first < elements.size(); first += per_word) {
    const auto count = std::min<std::size_t>(per_word, elements.size() - first);
    words.push_back(packed_word(std::span(elements).subspan(first, count), per_word));
  }
  declare(id, words);
}

// Words that come over whole keep their variables, so that rearranging elements mostly costs
// nothing. Where all of them do, the value has no variables of its own.
void BodyEmitter::define_from(ValueId id, const std::vector<Source>& elements) {
  const Type& t = type(id);
  const int per_word = elements_per_word(t);
  std::vector<std::string> values;
  bool known = true;
  for (std::size_t first = 0; first < elements.size(); first += per_word) {
    const auto count = std::min<std::size_t>(per_word, elements.size() - first);
    const auto [source, at] = elements[first];
    bool whole = true, zero = true;
    std::vector<std::string> parts;
    for (std::size_t j = 0; j < count; ++j) {
      const auto [value, i] = elements[first + j];
      zero = zero && value == kNoValue;
      whole = whole && value == source && i == at + static_cast<int>(j);
      parts.push_back(value == kNoValue ? literal(t.elem, 0) : element_of(value, i));
    }
    if (per_word == 1) {
      values.push_back(parts[0]);
      known = known && (source == kNoValue || elements_per_word(type(source)) == 1);
    } else if (zero) {
      values.push_back("0u");
    } else if (whole && source != kNoValue && is_packed(type(source)) && at % per_word == 0) {
      values.push_back(word_of(source, at / per_word));
    } else {
      values.push_back(packed_word(parts, per_word));
      known = false;
    }
  }
  if (known) {
    named_[id] = std::move(values);
  } else {
    declare(id, values);
  }
}

void BodyEmitter::emit_region(const Region& region) {
  for (const Instr& instr : region.body)
    std::visit([&](const auto& op) { emit_op(instr, op); }, instr.op);
}

void BodyEmitter::emit_yields(const std::vector<ValueId>& results, const Region& region) {
  for (std::size_t r = 0; r < results.size(); ++r) {
    const Type& t = type(results[r]);
    for (int i = 0; i < variable_count(t); ++i) {
      line(fmt::format("{} = {};", variable(results[r], t, i), word_of(region.yields.at(r), i)));
    }
  }
}

void BodyEmitter::emit_op(const Instr& instr, const Const& op) {
  named_[instr.results[0]] = {literal(type(instr.results[0]).elem, op.bits)};
}

void BodyEmitter::emit_op(const Instr& instr, const Special& op) {
  switch (op.which) {
    case Builtin::block: return declare(instr.results[0], {"(long long)blockIdx.x"});
    case Builtin::warp:
      named_[instr.results[0]] = {launch_.warps == 1 ? "0" : "warp"};
      uses_warp_ = launch_.warps > 1;
      return;
    case Builtin::lane: named_[instr.results[0]] = {"lane"}; return;
    case Builtin::streams: named_[instr.results[0]] = {"false"}; return;
  }
}

void BodyEmitter::emit_op(const Instr& instr, const ParamRef& op) {
  named_[instr.results[0]] = {param_name(program_, op.index)};
}

void BodyEmitter::emit_op(const Instr& instr, const Compute& op) {
  const ValueId id = instr.results[0];
  const Type& t = type(id);
  const ValueId first = op.operands[op.op == Op::select ? 1 : 0];
  const DType operand_type = type(first).elem;
  std::vector<std::string> args(op.operands.size());

  // Bits and choices need no unpacking.
  const bool same_layout = [&] {
    for (std::size_t i = op.op == Op::select ? 1 : 0; i < op.operands.size(); ++i)
      if (variable_count(type(op.operands[i])) != variable_count(t) ||
          !is_packed(type(op.operands[i])))
        return false;
    return is_packed(t);
  }();
  const bool bits = op.op == Op::bit_and || op.op == Op::bit_or || op.op == Op::bit_xor ||
                    op.op == Op::bit_not || op.op == Op::reinterpret ||
                    (op.op == Op::convert && operand_type == t.elem) ||
                    (op.op == Op::select && type(op.operands[0]).width == 1);
  if (same_layout && bits) {
    std::vector<std::string> words;
    for (int w = 0; w < variable_count(t); ++w) {
      for (std::size_t i = 0; i < args.size(); ++i)
        args[i] = word_of(op.operands[i], is_packed(type(op.operands[i])) ? w : 0);
      const DType as = op.op == Op::select || op.op == Op::convert ? operand_type : DType::u32;
      words.push_back(expression(op.op, as, as, args));
    }
    return declare(id, words);
  }

  // Words have few instructions, or one, for all of their elements; half of one is not worth them.
  const bool whole_words = same_layout && t.width % elements_per_word(t) == 0;
  if (whole_words && (op.op == Op::min || op.op == Op::max) && is_integer(t.elem)) {
    std::vector<std::string> words;
    for (int w = 0; w < variable_count(t); ++w)
      words.push_back(fmt::format("cf_{}_{}x{}({}, {})", name_of(op.op), name_of(t.elem),
                                  elements_per_word(t), word_of(op.operands[0], w),
                                  word_of(op.operands[1], w)));
    return declare(id, words);
  }

  // Two conversions to 16 bits are one instruction.
  if (op.op == Op::convert && operand_type == DType::f32 && is_packed(t) && is_float(t.elem)) {
    std::vector<std::string> words;
    for (int i = 0; i < t.width; i += 2) {
      const std::string second = i + 1 < t.width ? element_of(first, i + 1) : "0.0f";
      words.push_back(
          fmt::format("cf_{}x2_of_f32({}, {})", name_of(t.elem), element_of(first, i), second));
    }
    return declare(id, words);
  }

  if (op.op == Op::convert && t.elem == DType::f32 && operand_type == DType::f16 &&
      is_packed(type(first)))
    return widen_halves(id, first);
  if (op.op == Op::convert && t.elem == DType::f32 && is_integer(operand_type) &&
      is_packed(type(first)))
    return widen_integers(id, first);

  std::vector<std::string> elements;
  for (int i = 0; i < t.width; ++i) {
    for (std::size_t a = 0; a < args.size(); ++a) args[a] = element_of(op.operands[a], i);
    elements.push_back(expression(op.op, operand_type, t.elem, args));
  }
  define(id, elements);
}

void BodyEmitter::widen_integers(ValueId id, ValueId integers) {
  const Type& packed = type(integers);
  const int per_word = elements_per_word(packed);
  std::vector<std::string> elements;
  for (int i = 0; i < packed.width; ++i) {
    // Of the word's bytes and four of 2^23: the element's, zeros above it, and the upper one.
    const unsigned at = static_cast<unsigned>(i % per_word);
    const unsigned picked = per_word == 4 ? 0x7440U + at : 0x7410U + 0x22U * at;
    elements.push_back(fmt::format("cf_f32_of_{}({}, {:#x})", name_of(packed.elem),
                                   word_of(integers, i / per_word), picked));
  }
  define(id, elements);
}

// As many in a statement as there are at once: a compiler takes its time for each of them.
void BodyEmitter::widen_halves(ValueId id, ValueId halves) {
  constexpr int kMost = 8;
  const Type& t = type(id);
  line(fmt::format("float {};", fmt::join(variables(id, t), ", ")));
  for (int i = 0; i < t.width;) {
    const int count = t.width - i >= kMost ? kMost : std::min(2, t.width - i);
    if (count == 1) {
      line(fmt::format("{} = cf_f32_of_f16({});", variable(id, t, i), element_of(halves, i)));
    } else {
      std::vector<std::string> args;
      for (int w = i / 2; w < (i + count) / 2; ++w) args.push_back(word_of(halves, w));
      for (int j = i; j < i + count; ++j) args.push_back(variable(id, t, j));
      line(fmt::format("cf_f32x{}_of_f16({});", count, fmt::join(args, ", ")));
    }
    i += count;
  }
}

void BodyEmitter::emit_op(const Instr& instr, const Splat& op) {
  std::vector<Source> elements;
  for (int i = 0; i < type(instr.results[0]).width; ++i) elements.emplace_back(op.value, i);
  define_from(instr.results[0], elements);
}

void BodyEmitter::emit_op(const Instr& instr, const Extract& op) {
  std::vector<Source> elements;
  for (int i = 0; i < type(instr.results[0]).width; ++i)
    elements.emplace_back(op.value, op.first + i);
  define_from(instr.results[0], elements);
}

void BodyEmitter::emit_op(const Instr& instr, const Concat& op) {
  std::vector<Source> elements;
  for (const ValueId part : op.parts)
    for (int i = 0; i < type(part).width; ++i) elements.emplace_back(part, i);
  define_from(instr.results[0], elements);
}

void BodyEmitter::emit_op(const Instr&, const Barrier&) { line("__syncthreads();"); }
void BodyEmitter::emit_op(const Instr&, const WaitForLaunch&) { line("cf_wait_for_last();"); }
void BodyEmitter::emit_op(const Instr&, const LetNextStart&) { line("cf_let_next_start();"); }

void BodyEmitter::emit_op(const Instr& instr, const For& op) {
  for (std::size_t r = 0; r < instr.results.size(); ++r) {
    const Type& t = type(instr.results[r]);
    std::vector<std::string> parts;
    for (int i = 0; i < variable_count(t); ++i)
      parts.push_back(
          fmt::format("{} = {}", variable(instr.results[r], t, i), word_of(op.init[r], i)));
    line(fmt::format("{} {};", variable_type(t), fmt::join(parts, ", ")));
  }
  line("#pragma unroll 1");
  const std::string index = name(op.index);
  line(fmt::format("for ({4} {0} = {1}; {0} < {2}; {0} += {3}) {{", index, name(op.lo), name(op.hi),
                   name(op.step), type_name(type(op.index).elem)));
  ++depth_;
  // Copies, so that the assignments at the end of a trip see this trip's values.
  for (std::size_t r = 0; r < op.carried.size(); ++r)
    declare(op.carried[r], variables(instr.results[r], type(instr.results[r])));
  emit_region(op.body);
  emit_yields(instr.results, op.body);
  --depth_;
  line("}");
}

void BodyEmitter::emit_op(const Instr& instr, const If& op) {
  for (const ValueId result : instr.results) {
    const Type& t = type(result);
    line(fmt::format("{} {};", variable_type(t), fmt::join(variables(result, t), ", ")));
  }
  line(fmt::format("if ({}) {{", name(op.condition)));
  ++depth_;
  emit_region(op.then_body);
  emit_yields(instr.results, op.then_body);
  --depth_;
  if (!op.else_body.body.empty() || !instr.results.empty()) {
    line("} else {");
    ++depth_;
    emit_region(op.else_body);
    emit_yields(instr.results, op.else_body);
    --depth_;
  }
  line("}");
}

}  // namespace chainfold::codegen::cuda
