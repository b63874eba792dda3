// Loads and stores: contiguous runs of memory, one a group of lanes. Where lanes have offsets of
// their own they are gathers and scatters.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "chainfold/codegen/emit/llvm/body.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen::llvm {
namespace {

std::vector<int> range(int first, int count) {
  std::vector<int> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

/// Vectors of `count` elements each, end to end.
std::string joined(FunctionWriter& out, std::string_view element, std::vector<std::string> pieces,
                   int count) {
  while (pieces.size() > 1) {
    std::vector<std::string> next;
    const std::vector<int> indices = range(0, 2 * count);
    for (std::size_t i = 0; i + 1 < pieces.size(); i += 2)
      next.push_back(out.shuffle(element, count, pieces[i], pieces[i + 1], indices));
    pieces = std::move(next);
    count *= 2;
  }
  return pieces[0];
}

/// Whether what a lane takes at once is loaded as one word. Processors that have no masks for
/// elements of two bytes have them for words. What is taken out of a word, wherever the word came
/// from, is known to be a part of it.
bool is_word(const Type& type) {
  const int bytes = type.width * size_of(type.elem);
  return type.shape == Shape::lane && type.width > 1 && (bytes == 4 || bytes == 8) &&
         type.elem != DType::boolean;
}

}  // namespace

int run_lanes(const Address& at, const Type& type) {
  if (type.shape != Shape::lane) return 1;
  if (at.step != kNoValue) return at.group;
  return at.stride == static_cast<std::int64_t>(at.group) * type.width ? kWarpWidth : at.group;
}

std::string BodyEmitter::memory_name(int memory) const {
  return memory >= 0 ? buffer_name(memory) : arrays_[static_cast<std::size_t>(-1 - memory)];
}

DType BodyEmitter::memory_elem(int memory) const {
  return memory >= 0 ? program_.buffers[static_cast<std::size_t>(memory)].type
                     : launch_.shared[static_cast<std::size_t>(-1 - memory)].type;
}

std::string BodyEmitter::pointer_to(int memory, const Address& at, int group) {
  return element_pointer(memory, index_of(at, group));
}

std::string BodyEmitter::index_of(const Address& at, int group) {
  std::string index = name(at.base);
  if (at.step != kNoValue && group > 0) {
    const std::string offset = out_.let(fmt::format("mul i64 {}, {}", name(at.step), group));
    index = out_.let(fmt::format("add i64 {}, {}", index, offset));
  } else if (const std::int64_t offset = group * at.stride; offset != 0) {
    index = out_.let(fmt::format("add i64 {}, {}", index, offset));
  }
  return index;
}

std::string BodyEmitter::element_pointer(int memory, const std::string& index) {
  return out_.let(fmt::format("getelementptr {}, ptr {}, i64 {}", memory_type(memory_elem(memory)),
                              memory_name(memory), index));
}

std::string BodyEmitter::lane_mask(ValueId mask) {
  return mask == kNoValue ? std::string() : element(mask, 0, kWarpWidth);
}

std::string BodyEmitter::run_mask(const std::string& lanes, int first, int count, int width) {
  if (lanes.empty() || (count == kWarpWidth && width == 1)) return lanes;
  std::vector<int> indices;
  for (int i = 0; i < count; ++i) indices.push_back(first + i / width);
  return out_.shuffle("i1", kWarpWidth, lanes, {}, indices);
}

std::string BodyEmitter::load_run(const std::string& pointer, int count, const std::string& element,
                                  int align, const std::string& mask) {
  const std::string vector = vector_of(element, count);
  if (mask.empty())
    return out_.let(fmt::format("load {}, ptr {}, align {}", vector, pointer, align));
  return out_.intrinsic(
      "masked.load", vector, std::array<std::string, 2>{vector, "ptr"},
      std::array{Argument{"ptr", pointer}, Argument{"i32", std::to_string(align)},
                 Argument{vector_of("i1", count), mask}, Argument{vector, "zeroinitializer"}});
}

/// A mask of elements as bytes, all first elements of lanes in front: processors have no
/// instructions that move single bits of masks.
std::string BodyEmitter::bytes_of(ValueId mask) {
  std::vector<std::string> elements;
  for (int e = 0; e < type(mask).width; ++e)
    elements.push_back(
        out_.let(fmt::format("sext {} {} to {}", vector_of("i1", kWarpWidth),
                             element(mask, e, kWarpWidth), vector_of("i8", kWarpWidth))));
  return joined(out_, "i8", std::move(elements), kWarpWidth);
}

/// Load::mask of a run of lanes, a bit for each element; of a mask of elements these are `bytes`.
std::string BodyEmitter::load_mask(const Load& op, const Type& t, const std::string& bytes,
                                   int first, int lanes) {
  if (op.mask == kNoValue) return {};
  if (t.shape != Shape::lane) return out_.splat("i1", name(op.mask), t.width);
  const int width = t.width, count = lanes * width;
  if (bytes.empty()) return run_mask(lane_mask(op.mask), first, count, width);
  std::vector<int> indices;
  for (int i = 0; i < count; ++i) indices.push_back(i % width * kWarpWidth + first + i / width);
  const std::string run = out_.shuffle("i8", kWarpWidth * width, bytes, {}, indices);
  return out_.let(fmt::format("icmp slt {} {}, zeroinitializer", vector_of("i8", count), run));
}

std::int64_t BodyEmitter::read_ahead(const std::string& pointer, std::int64_t from,
                                     std::int64_t to) {
  for (; from < to; from += kLineBytes) {
    const std::string line =
        out_.let(fmt::format("getelementptr i8, ptr {}, i64 {}", pointer, from));
    out_.intrinsic("prefetch", "void", std::array<std::string, 1>{"ptr"},
                   std::array{Argument{"ptr", line}, Argument{"i32", "0"}, Argument{"i32", "2"},
                              Argument{"i32", "1"}});
  }
  return from;
}

void BodyEmitter::emit_op(const Instr& instr, const SharedLoad& op) {
  emit_op(instr, Load{.buffer = memory_of_array(op.array), .at = op.at, .mask = op.mask});
}

void BodyEmitter::emit_op(const Instr& instr, const SharedStore& op) {
  emit_op(
      instr,
      Store{.buffer = memory_of_array(op.array), .at = op.at, .mask = op.mask, .value = op.value});
}

/// Single elements from wherever the lanes want them, zeros where the mask is false.
std::string BodyEmitter::gather(const Load& op, std::string_view elem) {
  const std::string vector = vector_of(elem, kWarpWidth), pointers = vector_of("ptr", kWarpWidth);
  const std::string mask =
      op.mask == kNoValue ? constant("i1", "true", kWarpWidth) : lane_mask(op.mask);
  return out_.intrinsic(
      "masked.gather", vector, std::array<std::string, 2>{vector, pointers},
      std::array{Argument{pointers, own_pointers(op.buffer, op.at)},
                 Argument{"i32", std::to_string(size_of(memory_elem(op.buffer)))},
                 Argument{vector_of("i1", kWarpWidth), mask}, Argument{vector, "zeroinitializer"}});
}

void BodyEmitter::emit_op(const Instr& instr, const Load& op) {
  if (op.buffer >= 0 && program_.buffers[static_cast<std::size_t>(op.buffer)].packed)
    return emit_packed(instr, op);
  const ValueId id = instr.results[0];
  const Type& t = type(id);
  const std::string elem(memory_type(t.elem));
  if (op.at.offset != kNoValue) {
    std::string all = gather(op, elem);
    if (t.elem == DType::boolean)
      all =
          out_.let(fmt::format("icmp ne {} {}, zeroinitializer", vector_of(elem, kWarpWidth), all));
    values_[id] = {std::move(all)};
    return;
  }
  const int lanes = t.shape == Shape::lane ? kWarpWidth : 1;
  const int per_run = run_lanes(op.at, t), count = per_run * t.width, total = lanes * t.width;
  const bool words = is_word(t);
  const bool masks_elements = op.mask != kNoValue && type(op.mask).width > 1;
  const bool by_elements = !words || masks_elements;
  const std::string bytes = masks_elements ? bytes_of(op.mask) : std::string();
  std::vector<std::string> runs;
  std::int64_t asked = 0;  // bytes behind the first run's up to which lines were asked for
  for (int lane = 0; lane < lanes; lane += per_run) {
    const std::string pointer = pointer_to(op.buffer, op.at, lane / per_run);
    if (by_elements) {
      const std::string run =
          load_run(pointer, count, elem, size_of(t.elem), load_mask(op, t, bytes, lane, per_run));
      runs.push_back(!words ? run
                            : out_.let(fmt::format("bitcast {} {} to {}", vector_of(elem, count),
                                                   run, vector_of(word_type(t), per_run))));
    } else {
      const std::string mask =
          op.mask == kNoValue ? std::string() : run_mask(lane_mask(op.mask), lane, per_run, 1);
      runs.push_back(load_run(pointer, per_run, word_type(t), size_of(t.elem), mask));
    }
    if (op.ahead == kNoValue) continue;
    // Runs that lie near each other share lines.
    const std::string wanted =
        out_.let(fmt::format("getelementptr {}, ptr {}, i64 {}", elem, pointer, name(op.ahead)));
    const std::int64_t hop =
        op.at.step == kNoValue ? lane / per_run * op.at.stride * size_of(t.elem) : 0;
    const std::int64_t from = hop > 0 ? std::max<std::int64_t>(0, asked - hop) : 0;
    asked = hop + read_ahead(wanted, from, std::int64_t{count} * size_of(t.elem));
  }
  // LLVM would shuffle the loads of a long body, each in halves. A processor's prefetchers follow
  // many load instructions only in the order of addresses (docs/tuned-values.md#memory-of-a-cpu).
  // This fence keeps the program's order and is no instruction.
  if (lanes > 1) out_.line("fence syncscope(\"singlethread\") seq_cst");
  if (words) return take_apart(id, joined(out_, word_type(t), std::move(runs), per_run));
  std::string all = joined(out_, elem, std::move(runs), count);
  std::string_view registers = elem;
  if (t.elem == DType::boolean) {
    all = out_.let(fmt::format("icmp ne {} {}, zeroinitializer", vector_of(elem, total), all));
    registers = "i1";
  }
  for (int e = 0; e < t.width; ++e) {
    if (lanes == 1) {
      values_[id].push_back(out_.let(
          fmt::format("extractelement {} {}, i32 {}", vector_of(registers, total), all, e)));
    } else {
      values_[id].push_back(t.width == 1 ? all : every(all, registers, e, t.width));
    }
  }
}

/// Element e of each lane's `width`.
std::string BodyEmitter::every(const std::string& all, std::string_view elem, int e, int width) {
  std::vector<int> indices;
  for (int l = 0; l < kWarpWidth; ++l) indices.push_back(l * width + e);
  return out_.shuffle(elem, kWarpWidth * width, all, {}, indices);
}

std::string BodyEmitter::own_pointers(int memory, const Address& at) {
  const std::string indices = vector_of("i64", kWarpWidth);
  std::string lanes;
  for (int l = 0; l < kWarpWidth; ++l) {
    const std::int64_t place = l / at.group * at.stride + l % at.group;
    lanes += fmt::format("{}i64 {}", l == 0 ? "" : ", ", place);
  }
  std::string own = name(at.offset);
  if (type(at.offset).elem == DType::i32)
    own = out_.let(fmt::format("sext {} {} to {}", vector_of("i32", kWarpWidth), own, indices));
  const std::string base = out_.splat("i64", name(at.base), kWarpWidth);
  const std::string from_base = out_.let(fmt::format("add {} {}, {}", indices, base, own));
  const std::string index = out_.let(fmt::format("add {} {}, <{}>", indices, from_base, lanes));
  return out_.let(fmt::format("getelementptr {}, ptr {}, {} {}", memory_type(memory_elem(memory)),
                              memory_name(memory), indices, index));
}

/// Single elements wherever the lanes want them.
void BodyEmitter::scatter(const Store& op, const std::string& values, const std::string& mask) {
  const std::string_view elem = memory_type(type(op.value).elem);
  const std::string pointers = vector_of("ptr", kWarpWidth);
  const std::string vector = vector_of(elem, kWarpWidth);
  const std::string pointer = own_pointers(op.buffer, op.at);
  out_.intrinsic("masked.scatter", "void", std::array<std::string, 2>{vector, pointers},
                 std::array{Argument{vector, values}, Argument{pointers, pointer},
                            Argument{"i32", std::to_string(size_of(type(op.value).elem))},
                            Argument{vector_of("i1", kWarpWidth), mask}});
}

/// The one run of a uniform value.
void BodyEmitter::store_uniform(const Store& op) {
  const Type& t = type(op.value);
  const std::string_view elem = memory_type(t.elem);
  std::string run = "poison";
  const std::string vector = vector_of(elem, t.width);
  const std::vector<std::string> elements = names(op.value);
  for (int e = 0; e < t.width; ++e) {
    std::string own = elements[static_cast<std::size_t>(e)];
    if (t.elem == DType::boolean) own = out_.let(fmt::format("zext i1 {} to i8", own));
    run = out_.let(fmt::format("insertelement {} {}, {} {}, i32 {}", vector, run, elem, own, e));
  }
  const std::string pointer = pointer_to(op.buffer, op.at, 0);
  const int align = size_of(t.elem);
  if (op.mask == kNoValue)
    return out_.line(fmt::format("store {} {}, ptr {}, align {}", vector, run, pointer, align));
  out_.intrinsic(
      "masked.store", "void", std::array<std::string, 2>{vector, "ptr"},
      std::array{Argument{vector, run}, Argument{"ptr", pointer},
                 Argument{"i32", std::to_string(align)},
                 Argument{vector_of("i1", t.width), out_.splat("i1", name(op.mask), t.width)}});
}

void BodyEmitter::emit_op(const Instr&, const Store& op) {
  const Type& t = type(op.value);
  if (t.shape == Shape::uniform) return store_uniform(op);
  const std::string_view elem = memory_type(t.elem);
  const int per_run = run_lanes(op.at, t), count = per_run * t.width, total = kWarpWidth * t.width;
  const int align = size_of(t.elem);
  std::vector<std::string> elements = names(op.value);
  if (t.elem == DType::boolean) {
    for (std::string& e : elements)
      e = out_.let(fmt::format("zext {} {} to {}", vector_of("i1", kWarpWidth), e,
                               vector_of("i8", kWarpWidth)));
  }
  const bool pairs = t.width == 2 && size_of(t.elem) == 2;
  const auto known = pairs_.find(op.value);
  std::string all = known != pairs_.end() ? known->second
                    : pairs               ? put_together(elements)
                                          : joined(out_, elem, std::move(elements), kWarpWidth);
  if (t.width > 1 && !pairs) {
    std::vector<int> indices;
    for (int i = 0; i < total; ++i) indices.push_back(i % t.width * kWarpWidth + i / t.width);
    all = out_.shuffle(elem, total, all, {}, indices);
  }
  const std::string mask = lane_mask(op.mask), vector = vector_of(elem, count);
  if (op.at.offset != kNoValue) {
    scatter(op, all, mask.empty() ? constant("i1", "true", kWarpWidth) : mask);
    return;
  }
  for (int lane = 0; lane < kWarpWidth; lane += per_run) {
    const std::string pointer = pointer_to(op.buffer, op.at, lane / per_run);
    const std::string part = per_run == kWarpWidth
                                 ? all
                                 : out_.shuffle(elem, total, all, {}, range(lane * t.width, count));
    if (mask.empty() && streams_ && op.streams) {
      const int whole = std::min(kLineBytes, count * size_of(t.elem));
      out_.line(fmt::format("store {} {}, ptr {}, align {}, !nontemporal !0", vector, part, pointer,
                            whole));
      continue;
    }
    if (mask.empty()) {
      out_.line(fmt::format("store {} {}, ptr {}, align {}", vector, part, pointer, align));
      continue;
    }
    out_.intrinsic(
        "masked.store", "void", std::array<std::string, 2>{vector, "ptr"},
        std::array{Argument{vector, part}, Argument{"ptr", pointer},
                   Argument{"i32", std::to_string(align)},
                   Argument{vector_of("i1", count), run_mask(mask, lane, count, t.width)}});
  }
}

void BodyEmitter::emit_op(const Instr& instr, const Misalignment& op) {
  const DType elem = program_.buffers[static_cast<std::size_t>(op.buffer)].type;
  const std::string address =
      out_.let(fmt::format("ptrtoint ptr {} to i64", element_pointer(op.buffer, name(op.first))));
  const std::string bytes = out_.let(fmt::format("and i64 {}, {}", address, op.unit - 1));
  values_[instr.results[0]] = {out_.let(fmt::format("udiv i64 {}, {}", bytes, size_of(elem)))};
}

}  // namespace chainfold::codegen::llvm
