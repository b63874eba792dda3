// Loads and stores. A value moves between memory and registers as 1, 2 or 4 parts of one size.
// Elements of 4 or 8 bytes are parts themselves. Others move as 32-bit words, or as one 16-bit or
// 8-bit part.
#include <bit>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/emit/cuda/body.hpp"
#include "chainfold/codegen/program/print.hpp"

namespace chainfold::codegen::cuda {
namespace {

/// Bytes of a lane's load that can be kept.
constexpr int kKeptBytes = 16;

bool is_half_word(const Type& type) { return type.width * size_of(type.elem) == 2; }

// The type of the parts that memory is accessed in.
std::string_view part_type(const Type& type) {
  if (size_of(type.elem) >= 4) return type_name(type.elem);
  if (type.width == 1) return memory_type_name(type.elem);
  return is_half_word(type) ? "unsigned short" : "unsigned";
}

int part_count(const Type& type) {
  if (size_of(type.elem) >= 4) return type.width;
  const int bytes = type.width * size_of(type.elem);
  return bytes <= 4 ? 1 : bytes / 4;
}

// Whether the parts are the value's own variables.
bool parts_are_variables(const Type& type) {
  if (type.elem == DType::boolean) return false;
  return size_of(type.elem) >= 4 || type.width == 1 || !is_half_word(type);
}

}  // namespace

std::string BodyEmitter::address(const std::string& array, const Address& at, const Type& t) const {
  return fmt::format("{} + {}", array, index(at, t));
}

std::string BodyEmitter::index(const Address& at, const Type& t) const {
  std::string text = name(at.base);
  if (at.offset != kNoValue) text += " + " + name(at.offset);
  if (t.shape == Shape::uniform) return text;
  const int group_bits = std::countr_zero(static_cast<unsigned>(at.group));
  const std::string group = group_bits == 0 ? "lane" : fmt::format("(lane >> {})", group_bits);
  if (at.step != kNoValue) {
    text += fmt::format(" + {} * {}", group, name(at.step));
  } else if (at.group < kWarpWidth && at.stride != 0) {
    const std::int64_t groups = kWarpWidth / at.group;
    const bool fits = std::llabs(at.stride) <= std::numeric_limits<std::int32_t>::max() / groups;
    const DType offset_type = fits ? DType::i32 : DType::i64;
    text += fmt::format(" + {} * {}", group, literal(offset_type, static_cast<Bits>(at.stride)));
  }
  if (at.group == 1) return text;
  const std::string within =
      at.group == kWarpWidth ? "lane" : fmt::format("(lane & {})", at.group - 1);
  return text +
         (t.width == 1 ? fmt::format(" + {}", within) : fmt::format(" + {} * {}", within, t.width));
}

std::string BodyEmitter::mask_argument(ValueId mask) const {
  return mask == kNoValue ? std::string() : name(mask) + ", ";
}

void BodyEmitter::emit_load(ValueId result, std::string_view function, const std::string& pointer,
                            ValueId mask) {
  const Type& t = type(result);
  std::vector<std::string> parts;
  for (int i = 0; i < part_count(t); ++i)
    parts.push_back(parts_are_variables(t) ? variable(result, t, i)
                                           : fmt::format("v{}_r{}", result, i));
  line(fmt::format("{} {};", part_type(t), fmt::join(parts, ", ")));
  line(fmt::format("{}{}({}{}, {});", function, mask == kNoValue ? "" : "_if", mask_argument(mask),
                   pointer, fmt::join(parts, ", ")));
  if (parts_are_variables(t)) return;
  if (t.elem != DType::boolean) return declare(result, parts);  // 16 bits into a word
  std::vector<std::string> elements;
  for (int i = 0; i < t.width; ++i) {
    elements.push_back(t.width == 1
                           ? fmt::format("{} != 0", parts[0])
                           : fmt::format("({} >> {} & 0xff) != 0", parts[i / 4], i % 4 * 8));
  }
  define(result, elements);
}

void BodyEmitter::emit_store(ValueId value, std::string_view function, const std::string& pointer,
                             ValueId mask) {
  const Type& t = type(value);
  std::string on = mask_argument(mask);
  if (t.shape == Shape::uniform) {
    line("__syncwarp();");  // other lanes may be about to read what the first one writes
    on = mask == kNoValue ? "lane == 0, " : fmt::format("lane == 0 && {}, ", name(mask));
  }
  std::vector<std::string> parts;
  for (int i = 0; i < part_count(t); ++i) {
    std::string part;
    if (t.elem != DType::boolean || t.width == 1) {
      part = word_of(value, i);
    } else {
      std::vector<std::string> bytes;
      for (int j = i * 4; j < std::min<int>(t.width, i * 4 + 4); ++j)
        bytes.push_back(element_of(value, j));
      part = packed_word(bytes, 4);
    }
    parts.push_back(parts_are_variables(t) ? part : fmt::format("({}){}", part_type(t), part));
  }
  line(fmt::format("{}{}({}{}, {});", function, on.empty() ? "" : "_if", on, pointer,
                   fmt::join(parts, ", ")));
}

void BodyEmitter::emit_bits(ValueId result, std::string_view function, const Load& op) {
  const Type& t = type(result);
  const std::string bits = fmt::format("v{}_bits", result);
  line(fmt::format("const unsigned {} = {}_bits<{}>({}, {}, {});", bits, function, t.width,
                   op.mask == kNoValue ? "true" : name(op.mask), buffer_name(program_, op.buffer),
                   index(op.at, t)));
  std::vector<std::string> elements;
  for (int i = 0; i < t.width; ++i) elements.push_back(fmt::format("({} >> {} & 1) != 0", bits, i));
  define(result, elements);
}

void BodyEmitter::emit_op(const Instr& instr, const Load& op) {
  const Type& loaded = type(instr.results[0]);
  const bool input = program_.buffers.at(op.buffer).role == BufferRole::input;
  if (program_.buffers.at(op.buffer).packed) {
    return emit_bits(instr.results[0],
                     program_.in_place                     ? "cf_ld"
                     : cuda::inputs_are_constant(program_) ? "cf_ldg"
                                                           : "cf_ldi",
                     op);
  }
  const std::string place = address(buffer_name(program_, op.buffer), op.at, loaded);
  if (input && launch_.non_temporal.evict_last_from > 0 &&
      loaded.width * size_of(loaded.elem) == kKeptBytes && loaded.elem != DType::boolean) {
    return emit_load(instr.results[0], "cf_ld_kept", fmt::format("{}, {}", place, kKeepHint),
                     op.mask);
  }
  std::string function = "cf_ld";
  if (input && !program_.in_place) {
    function = cuda::inputs_are_constant(program_) ? "cf_ldg" : "cf_ldi";
    if (op.evict_first) function += "_once";
  }
  emit_load(instr.results[0], function, place, op.mask);
}

void BodyEmitter::emit_op(const Instr&, const Store& op) {
  emit_store(op.value, "cf_st", address(buffer_name(program_, op.buffer), op.at, type(op.value)),
             op.mask);
}

void BodyEmitter::emit_op(const Instr& instr, const AtomicAdd& op) {
  declare(instr.results[0],
          {fmt::format("{}({}, {}, {})",
                       op.order == AtomicOrder::relaxed ? "cf_atomic_add" : "cf_atomic_add_fenced",
                       op.mask == kNoValue ? "true" : name(op.mask),
                       address(buffer_name(program_, op.buffer), op.at, type(op.value)),
                       name(op.value))});
}

void BodyEmitter::emit_op(const Instr& instr, const SharedLoad& op) {
  emit_load(instr.results[0], "cf_lds",
            address(shared_name(launch_, op.array), op.at, type(instr.results[0])), op.mask);
}

void BodyEmitter::emit_op(const Instr&, const SharedStore& op) {
  emit_store(op.value, "cf_sts", address(shared_name(launch_, op.array), op.at, type(op.value)),
             op.mask);
}

void BodyEmitter::emit_op(const Instr& instr, const Misalignment& op) {
  declare(instr.results[0], {fmt::format("cf_misalignment<{}>({} + {})", op.unit,
                                         buffer_name(program_, op.buffer), name(op.first))});
}

void BodyEmitter::emit_op(const Instr&, const CopyAsync& op) {
  const std::string buffer = buffer_name(program_, op.buffer);
  const bool kept = launch_.bulk_copies && launch_.non_temporal.evict_last_from > 0;
  if (op.behind_loads && launch_.bulk_copies) line("cf_end_loads();");
  line(fmt::format("{}<{}, {}, {}>(lane, {} + {}, {} + {}, {}, {} + {}, {} + {}{});",
                   launch_.bulk_copies ? "cf_copy_bulk" : "cf_copy_lanes", op.unit, op.elements,
                   op.whole, shared_name(launch_, op.array), name(op.to), buffer, name(op.first),
                   op.begin == kNoValue ? buffer : fmt::format("{} + {}", buffer, name(op.begin)),
                   buffer, name(op.limit), ring_name(launch_, op.ring), name(op.slot),
                   kept ? fmt::format(", {}", kKeepHint) : ""));
}

void BodyEmitter::emit_op(const Instr&, const CopyWait& op) {
  line(fmt::format("cf_copy_wait({} + {}, (unsigned){} & 1u);", ring_name(launch_, op.ring),
                   name(op.slot), name(op.round)));
}

void BodyEmitter::emit_op(const Instr&, const CopyOut& op) {
  line(fmt::format("cf_copy_out<{}>(lane, {} + {}, {} + {});", op.elements,
                   buffer_name(program_, op.buffer), name(op.first), shared_name(launch_, op.array),
                   name(op.from)));
}

void BodyEmitter::emit_op(const Instr&, const CopyOutWait&) { line("cf_copy_out_wait(lane);"); }

void BodyEmitter::emit_op(const Instr& instr, const Ticket& op) {
  const std::string counter = buffer_name(program_, op.counter);
  declare(instr.results[0],
          {launch_.warps == 1 ? fmt::format("cf_ticket_of_warp(lane, {})", counter)
                              : fmt::format("cf_ticket({}, {})", counter, kTicketWord)});
}

void BodyEmitter::emit_op(const Instr&, const Publish& op) {
  const std::string buffer = buffer_name(program_, op.flags);
  if (op.values.empty())
    return line(fmt::format("cf_publish(lane, {} + {});", buffer, name(op.slot)));
  const RecordLayout layout = record_layout(program_, op.values);
  std::vector<std::string> payloads(static_cast<std::size_t>(layout.words));
  for (std::size_t i = 0; i < op.values.size(); ++i) {
    const auto [word, shift] = layout.fields[i];
    std::string& payload = payloads[static_cast<std::size_t>(word)];
    if (!payload.empty()) payload += " | ";
    payload += fmt::format("cf_payload({})", name(op.values[i]));
    if (shift > 0) payload += fmt::format(" << {}", shift);
  }
  for (std::size_t w = 0; w < payloads.size(); ++w) {
    line(fmt::format("cf_publish_word(lane, {} + {} * {} + {}, {});", buffer, name(op.slot),
                     layout.elements(), 2 * w, payloads[w]));
  }
}

void BodyEmitter::emit_op(const Instr& instr, const Await& op) {
  const std::string buffer = buffer_name(program_, op.flags);
  const std::string waits = fmt::format("{}, {}, {}, {}", name(op.count), name(op.ticket),
                                        name(op.publisher), name(op.stride));
  if (instr.results.empty())
    return line(fmt::format("cf_await(lane, {} + {}, {});", buffer, name(op.first), waits));
  const RecordLayout layout = record_layout(program_, instr.results);
  const std::string words = fmt::format("v{}_words", instr.results[0]);
  line(fmt::format("unsigned long long {}[{}];", words, layout.words));
  line(fmt::format("cf_await_words(lane, {} + {} * {}, {}, {});", buffer, name(op.first),
                   layout.elements(), waits, words));
  for (std::size_t i = 0; i < instr.results.size(); ++i) {
    const auto [word, shift] = layout.fields[i];
    const ValueId result = instr.results[i];
    std::string payload = fmt::format("{}[{}]", words, word);
    if (shift > 0) payload += fmt::format(" >> {}", shift);
    declare(result, {fmt::format("cf_of_payload<{}>({})", type_name(type(result).elem), payload)});
  }
}

void BodyEmitter::emit_op(const Instr& instr, const Overdue&) {
  throw InternalError("blocks that run on a GPU go on running, and none of them helps another: " +
                          print(program_, launch_, instr),
                      print(program_));
}

void BodyEmitter::emit_op(const Instr& instr, const Gather& op) {
  for (std::size_t i = 0; i < op.values.size(); ++i) {
    line(
        fmt::format("cf_hand_over({} + {}, cf_payload({}));", kGatherWords, i, name(op.values[i])));
  }
  line("cf_cluster_meets();");
  for (std::size_t i = 0; i < op.values.size(); ++i) {
    const ValueId result = instr.results[i];
    declare(result, {fmt::format("cf_of_payload<{}>(cf_heard_from(lane, {}, {} + {}))",
                                 type_name(type(result).elem), launch_.cluster, kGatherWords, i)});
  }
  line("cf_cluster_has_read();");
}

}  // namespace chainfold::codegen::cuda
