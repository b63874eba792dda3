// What the lanes of a warp do together: shuffles, votes, constant fragments and matrix
// instructions.
#include "chainfold/codegen/emit/cuda/warp.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/emit/cuda/body.hpp"

namespace chainfold::codegen::cuda {
namespace {

// Where bit b of the source is a bit of the lane or constant, the table is a few shifts and masks.
// Gives an empty text where it is not.
std::string bit_permutation(const std::vector<std::uint8_t>& source) {
  const int flipped = source[0];
  std::map<int, unsigned> moved;  // distance to the left -> lane bits that move so far
  for (int bit = 0; bit < 5; ++bit) {
    const int image = source[1u << bit] ^ flipped;
    for (int to = 0; to < 5; ++to)
      if (image >> to & 1) moved[to - bit] |= 1u << bit;
  }
  for (int lane = 0; lane < kWarpWidth; ++lane) {
    unsigned expected = static_cast<unsigned>(flipped);
    for (const auto& [distance, mask] : moved) {
      const unsigned part = static_cast<unsigned>(lane) & mask;
      expected ^= distance >= 0 ? part << distance : part >> -distance;
    }
    if (expected != source[lane]) return {};
  }
  if (moved.size() > 3) return {};
  std::string text;
  for (const auto& [distance, mask] : moved) {
    std::string part = mask == 31 ? "lane" : fmt::format("(lane & {})", mask);
    if (distance > 0) part = fmt::format("({} << {})", part, distance);
    if (distance < 0) part = fmt::format("({} >> {})", part, -distance);
    text += (text.empty() ? "" : " ^ ") + part;
  }
  if (text.empty()) return fmt::format("{}", flipped);
  return flipped == 0 ? text : fmt::format("{} ^ {}", text, flipped);
}

// One 1 in each of the elements that share a word.
std::uint32_t one_bits(DType type) { return static_cast<std::uint32_t>(bits_of_int(type, 1)); }

std::string lanes_word(std::uint32_t lanes, std::uint32_t bits) {
  if (lanes == 0) return {};
  if (lanes == ~0u) return fmt::format("0x{:08x}u", bits);
  return fmt::format("cf_lanes(0x{:08x}u, lane, 0x{:08x}u)", lanes, bits);
}

}  // namespace

std::string permutation(const std::vector<std::uint8_t>& source) {
  if (std::string text = bit_permutation(source); !text.empty()) return text;
  const auto rotated = [&](int by) {
    for (int lane = 0; lane < kWarpWidth; ++lane)
      if (source[lane] != (lane + by) % kWarpWidth) return false;
    return true;
  };
  if (rotated(source[0])) return fmt::format("(lane + {}) & 31", source[0]);
  std::array<std::uint32_t, 5> planes{};
  for (int lane = 0; lane < kWarpWidth; ++lane)
    for (int bit = 0; bit < 5; ++bit)
      planes[bit] |= static_cast<std::uint32_t>(source[lane] >> bit & 1) << lane;
  return fmt::format("cf_table(lane, 0x{:08x}u, 0x{:08x}u, 0x{:08x}u, 0x{:08x}u, 0x{:08x}u)",
                     planes[0], planes[1], planes[2], planes[3], planes[4]);
}

// The built-in shuffles take 4 and 8 bytes; smaller elements travel in an int.
std::vector<std::string> BodyEmitter::shuffled(ValueId value, std::string_view function,
                                               const std::string& source) {
  const Type& t = type(value);
  std::vector<std::string> values;
  for (const std::string& v : words_of(value)) {
    const bool narrow = !is_packed(t) && size_of(t.elem) < 4;
    const std::string call =
        fmt::format("{}(0xffffffffu, {}{}, {})", function, narrow ? "(int)" : "", v, source);
    if (!narrow) {
      values.push_back(call);
    } else {
      values.push_back(t.elem == DType::boolean ? call + " != 0"
                                                : fmt::format("({}){}", type_name(t.elem), call));
    }
  }
  return values;
}

void BodyEmitter::emit_shuffle(ValueId result, ValueId value, std::string_view function,
                               const std::string& source) {
  declare(result, shuffled(value, function, source));
}

void BodyEmitter::emit_op(const Instr& instr, const Shuffle& op) {
  if (op.kind == ShuffleKind::xor_mask)
    return emit_shuffle(instr.results[0], op.value, "__shfl_xor_sync", fmt::format("{}", op.mask));
  if (op.kind == ShuffleKind::up)
    return emit_shuffle(instr.results[0], op.value, "__shfl_up_sync", fmt::format("{}", op.mask));
  if (op.kind == ShuffleKind::down)
    return emit_shuffle(instr.results[0], op.value, "__shfl_down_sync", fmt::format("{}", op.mask));
  emit_shuffle(instr.results[0], op.value, "__shfl_sync",
               op.kind == ShuffleKind::first ? "0" : name(op.source));
}

void BodyEmitter::emit_op(const Instr& instr, const Funnel& op) {
  const int bits = 8 * size_of(type(op.low).elem);
  declare(instr.results[0],
          {fmt::format("__funnelshift_r({}, {}, (unsigned)({} * {}))", word_of(op.low, 0),
                       word_of(op.high, 0), name(op.from), bits)});
}

void BodyEmitter::emit_op(const Instr& instr, const Permute& op) {
  if (static_cast<int>(op.source.size()) != kWarpWidth)
    throw InternalError(fmt::format("permute v{} has a table of {} lanes, not {}", instr.results[0],
                                    op.source.size(), kWarpWidth));
  if (op.other != kNoValue) {
    std::vector<std::uint8_t> within;
    std::uint32_t others = 0;
    for (int lane = 0; lane < kWarpWidth; ++lane) {
      within.push_back(op.source[lane] % kWarpWidth);
      others |= static_cast<std::uint32_t>(op.source[lane] / kWarpWidth) << lane;
    }
    const std::string source = permutation(within);
    std::vector<std::string> values = shuffled(op.value, "__shfl_sync", source);
    const std::vector<std::string> other = shuffled(op.other, "__shfl_sync", source);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = fmt::format("cf_either(0x{:08x}u, lane, {}, {})", others, other[i], values[i]);
    return declare(instr.results[0], values);
  }
  const int first = op.source[0];
  bool is_xor = true;
  for (int lane = 0; lane < kWarpWidth; ++lane)
    is_xor = is_xor && op.source[lane] == (lane ^ first);
  if (is_xor && first == 0) return declare(instr.results[0], words_of(op.value));
  if (is_xor)
    return emit_shuffle(instr.results[0], op.value, "__shfl_xor_sync", fmt::format("{}", first));
  emit_shuffle(instr.results[0], op.value, "__shfl_sync", permutation(op.source));
}

void BodyEmitter::emit_op(const Instr& instr, const Vote& op) {
  if (op.kind == VoteKind::count) {
    declare(instr.results[0],
            {fmt::format("__popc(__ballot_sync(0xffffffffu, {}))", name(op.value))});
    return;
  }
  declare(instr.results[0],
          {fmt::format("{}(0xffffffffu, {}) != 0",
                       op.kind == VoteKind::any ? "__any_sync" : "__all_sync", name(op.value))});
}

void BodyEmitter::emit_op(const Instr& instr, const ConstFragment& op) {
  const ValueId id = instr.results[0];
  const Type& t = type(id);
  const auto masks = lane_masks(mma_table()[t.mma_row], t.operand, op.matrix);
  const int per_word = elements_per_word(t);
  std::vector<std::string> values;
  for (int first = 0; first < t.width; first += per_word) {
    if (per_word == 1) {
      const std::string one = literal(t.elem, bits_of_int(t.elem, 1)), zero = literal(t.elem, 0);
      const std::uint32_t lanes = masks[first];
      values.push_back(lanes == 0 ? zero
                       : lanes == ~0u
                           ? one
                           : fmt::format("(0x{:08x}u >> lane & 1u) ? {} : {}", lanes, one, zero));
      continue;
    }
    // Elements of a word that are 1 in the same lanes share a term.
    std::map<std::uint32_t, std::uint32_t> bits_of_lanes;
    for (int j = 0; j < per_word; ++j)
      bits_of_lanes[masks[first + j]] |= one_bits(t.elem) << (j * (32 / per_word));
    std::string word;
    for (const auto& [lanes, bits] : bits_of_lanes) {
      const std::string term = lanes_word(lanes, bits);
      if (!term.empty()) word += (word.empty() ? "" : " | ") + term;
    }
    values.push_back(word.empty() ? "0u" : word);
  }
  declare(id, values);
}

void BodyEmitter::emit_op(const Instr& instr, const Pack& op) {
  std::vector<Source> elements;
  for (const auto& [value, count] : op.pieces)
    for (int i = 0; i < count; ++i) elements.emplace_back(value, i);
  define_from(instr.results[0], elements);
}

void BodyEmitter::emit_op(const Instr& instr, const Mma& op) {
  const ValueId id = instr.results[0];
  const Type& t = type(id);
  std::vector<std::string> args = variables(id, t);
  line(fmt::format("{} {};", variable_type(t), fmt::join(args, ", ")));
  for (const ValueId operand : {op.a, op.b, op.c})
    for (std::string& v : words_of(operand)) args.push_back(std::move(v));
  line(fmt::format("{}({});", mma_name(mma_table()[t.mma_row]), fmt::join(args, ", ")));
}

}  // namespace chainfold::codegen::cuda
