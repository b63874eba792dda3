// Loads of bits: words of them, which pass through bytes into masks of lanes.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/emit/llvm/body.hpp"

namespace chainfold::codegen::llvm {

/// Bits [first, first + count) of a packed buffer as an i32, `count` 32 at most. Those that `live`
/// (an i32, or empty: all) names are loaded, and the others zeros.
std::string BodyEmitter::load_bits(int buffer, const std::string& first, int count,
                                   const std::string& live) {
  const auto let = [&]<class... A>(fmt::format_string<A...> text, A&&... arguments) {
    return out_.let(fmt::format(text, std::forward<A>(arguments)...));
  };
  const auto pointer = [&](const std::string& at) {
    return let("getelementptr i8, ptr {}, i64 {}", buffer_name(buffer), at);
  };
  // Lanes that are masked may begin before the first bit of all.
  const std::string byte = let("ashr i64 {}, 3", first), shift = let("and i64 {}, 7", first);
  std::string word;
  if (live.empty()) {
    // The bytes that are there wherever the first bit lies, and one more. Where that has none of
    // the bits the last of the others is loaded again, and cut off.
    const int whole = (count + 7) / 8;
    const std::string low = let("load i{}, ptr {}, align 1", 8 * whole, pointer(byte));
    word = let("zext i{} {} to i64", 8 * whole, low);
    if (count > 1) {
      const std::string more = let("icmp ugt i64 {}, {}", shift, 8 * whole - count);
      const std::string further = let("select i1 {}, i64 {}, i64 {}", more, whole, whole - 1);
      const std::string high =
          let("load i8, ptr {}, align 1", pointer(let("add i64 {}, {}", byte, further)));
      const std::string placed = let("shl i64 {}, {}", let("zext i8 {} to i64", high), 8 * whole);
      word = let("or i64 {}, {}", word, placed);
    }
  } else {
    constexpr int kBytes = 8;
    const std::string bytes = vector_of("i8", kBytes);
    const std::string wanted = let("shl i64 {}, {}", let("zext i32 {} to i64", live), shift);
    const std::string mask =
        let("icmp ne {} {}, zeroinitializer", bytes, let("bitcast i64 {} to {}", wanted, bytes));
    const std::string loaded = load_run(pointer(byte), kBytes, "i8", 1, mask);
    word = let("and i64 {}, {}", let("bitcast {} {} to i64", bytes, loaded), wanted);
  }
  const std::string bits = let("trunc i64 {} to i32", let("lshr i64 {}, {}", word, shift));
  constexpr int kWord = 32;
  return count == kWord || !live.empty() ? bits : let("and i32 {}, {}", bits, (1 << count) - 1);
}

/// Load::mask as words of 32 bits, one for each element; none where there is no mask.
std::vector<std::string> BodyEmitter::mask_words(const Load& op, int width) {
  if (op.mask == kNoValue) return {};
  const bool by_elements = type(op.mask).width > 1;
  if (width == 1)
    return {out_.let(fmt::format("bitcast {} {} to i32", vector_of("i1", kWarpWidth),
                                 element(op.mask, 0, kWarpWidth)))};
  // A byte has the bits of eight elements, which are bytes elsewhere.
  constexpr int kBits = 8;
  const std::string all = bytes_of(op.mask);
  const int from = kWarpWidth * type(op.mask).width, count = kWarpWidth / kBits * width;
  std::string bytes;
  for (int bit = 0; bit < kBits; ++bit) {
    std::vector<int> sources;
    for (int b = 0; b < count; ++b) {
      const int at = b * kBits + bit, lane = at / width, e = at % width;
      sources.push_back(by_elements ? e * kWarpWidth + lane : lane);
    }
    const std::string own = out_.let(fmt::format(
        "and {} {}, {}", vector_of("i8", count), out_.shuffle("i8", from, all, {}, sources),
        constant("i8", std::to_string(static_cast<std::int8_t>(1 << bit)), count)));
    bytes = bytes.empty()
                ? own
                : out_.let(fmt::format("or {} {}, {}", vector_of("i8", count), bytes, own));
  }
  const std::string words = out_.let(
      fmt::format("bitcast {} {} to {}", vector_of("i8", count), bytes, vector_of("i32", width)));
  std::vector<std::string> live;
  for (int i = 0; i < width; ++i)
    live.push_back(
        out_.let(fmt::format("extractelement {} {}, i32 {}", vector_of("i32", width), words, i)));
  return live;
}

void BodyEmitter::load_uniform_bits(ValueId id, const Load& op) {
  const int width = type(id).width;
  std::string live;
  if (op.mask != kNoValue)
    live = out_.let(fmt::format("select i1 {}, i32 {}, i32 0", name(op.mask), (1 << width) - 1));
  const std::string word = load_bits(op.buffer, name(op.at.base), width, live);
  for (int e = 0; e < width; ++e) {
    const std::string bit = out_.let(fmt::format("lshr i32 {}, {}", word, e));
    values_[id].push_back(out_.let(fmt::format("trunc i32 {} to i1", bit)));
  }
}

/// Bits pass through words and bytes: processors have no instructions that move single bits of
/// masks. A cast of a word to a mask would be one, but LLVM 19 never ends with such masks that are
/// combined and widened (it turns two nodes into each other).
void BodyEmitter::emit_packed(const Instr& instr, const Load& op) {
  constexpr int kWord = 32, kBits = 8;
  const ValueId id = instr.results[0];
  const Type& t = type(id);
  if (t.shape == Shape::uniform) return load_uniform_bits(id, op);
  const int width = t.width, per_run = run_lanes(op.at, t), count = per_run * width;
  const int step = std::min(count, kWord);
  const std::vector<std::string> live = mask_words(op, width);
  std::vector<std::string> words(static_cast<std::size_t>(width));
  for (int at = 0; at < kWarpWidth * width; at += step) {
    std::string first = index_of(op.at, at / count);
    if (at % count != 0) first = out_.let(fmt::format("add i64 {}, {}", first, at % count));
    const int shift = at % kWord;
    std::string own = live.empty() ? std::string() : live[static_cast<std::size_t>(at / kWord)];
    if (!own.empty() && step < kWord) {
      own = out_.let(fmt::format("lshr i32 {}, {}", own, shift));
      own = out_.let(fmt::format("and i32 {}, {}", own, (1 << step) - 1));
    }
    std::string bits = load_bits(op.buffer, first, step, own);
    if (shift > 0) bits = out_.let(fmt::format("shl i32 {}, {}", bits, shift));
    std::string& word = words[static_cast<std::size_t>(at / kWord)];
    word = word.empty() ? bits : out_.let(fmt::format("or i32 {}, {}", word, bits));
  }
  std::string all = "poison";
  for (int i = 0; i < width; ++i)
    all = out_.let(fmt::format("insertelement {} {}, i32 {}, i32 {}", vector_of("i32", width), all,
                               words[static_cast<std::size_t>(i)], i));
  const int bytes = kWarpWidth / kBits * width;
  all = out_.let(
      fmt::format("bitcast {} {} to {}", vector_of("i32", width), all, vector_of("i8", bytes)));
  for (int e = 0; e < width; ++e) {
    std::vector<int> sources;
    std::string masks;
    for (int l = 0; l < kWarpWidth; ++l) {
      const int at = l * width + e;
      sources.push_back(at / kBits);
      masks += fmt::format("{}i8 {}", l == 0 ? "" : ", ",
                           static_cast<int>(static_cast<std::int8_t>(1 << at % kBits)));
    }
    const std::string lanes = vector_of("i8", kWarpWidth);
    const std::string own = out_.let(
        fmt::format("and {} {}, <{}>", lanes, out_.shuffle("i8", bytes, all, {}, sources), masks));
    values_[id].push_back(out_.let(fmt::format("icmp ne {} {}, zeroinitializer", lanes, own)));
  }
}

}  // namespace chainfold::codegen::llvm
