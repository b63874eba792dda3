// Words of several elements a lane: from memory, to memory, and their conversions.
#include <fmt/format.h>

#include "chainfold/codegen/emit/llvm/body.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen::llvm {

namespace {

constexpr int kPairs = 2 * kWarpWidth, kOfLine = kLineBytes / 2;

/// Where elements of a warp's pairs stand if in each line of memory the first ones come before the
/// second ones.
int in_line(int lane, int e) {
  return lane / (kOfLine / 2) * kOfLine + e * kOfLine / 2 + lane % (kOfLine / 2);
}

}  // namespace

/// Halves of words are shifted out: of a word that two loads are joined for LLVM would shuffle the
/// upper one out of both. Those of f16 are shuffles, as what converts them starts from the words
/// (convert_pairs), and so are bytes, of which the plugin knows sums (bytes.hpp).
void BodyEmitter::take_apart(ValueId id, const std::string& words) {
  const Type& t = type(id);
  const std::string_view elem = memory_type(t.elem);
  const std::string type = vector_of(word_type(t), kWarpWidth);
  if (t.width == 2 && size_of(t.elem) == 2 && t.elem != DType::f16) {
    const int bits = 8 * size_of(t.elem);
    const std::string upper = out_.let(fmt::format(
        "lshr {} {}, {}", type, words, constant(word_type(t), std::to_string(bits), kWarpWidth)));
    for (const std::string& half : {words, upper})
      values_[id].push_back(
          out_.let(fmt::format("trunc {} {} to {}", type, half, vector_of(elem, kWarpWidth))));
    return;
  }
  const std::string all = out_.let(
      fmt::format("bitcast {} {} to {}", type, words, vector_of(elem, kWarpWidth * t.width)));
  if (t.width == 2 && size_of(t.elem) == 2) pairs_[id] = all;
  for (int e = 0; e < t.width; ++e) values_[id].push_back(every(all, elem, e, t.width));
}

/// The elements of memory of lanes that have two halves each: as words, of which LLVM sees what
/// these halves were made of.
std::string BodyEmitter::put_together(const std::vector<std::string>& halves) {
  const std::string half = vector_of("i16", kWarpWidth), word = vector_of("i32", kWarpWidth);
  std::string words[2];
  for (std::size_t i = 0; i < 2; ++i)
    words[i] = out_.let(fmt::format("zext {} {} to {}", half, halves[i], word));
  const std::string upper =
      out_.let(fmt::format("shl {} {}, {}", word, words[1], constant("i32", "16", kWarpWidth)));
  const std::string both = out_.let(fmt::format("or {} {}, {}", word, words[0], upper));
  return out_.let(fmt::format("bitcast {} {} to {}", word, both, vector_of("i16", 2 * kWarpWidth)));
}

/// Pairs from or to f16. An instruction that converts takes neighbours. These are all first or all
/// second elements if those of a line are put in that order. That takes one instruction, and
/// another that takes the line's halves apart.
bool BodyEmitter::convert_pairs(ValueId id, const Compute& op) {
  const ValueId x = op.operands[0];
  const DType from = type(x).elem, to = type(id).elem;
  if (from == to || (from != DType::f16 && to != DType::f16)) return false;
  const std::string_view elem = register_type(from), result = register_type(to);
  std::vector<int> by_lines(kPairs), back(kPairs);
  for (int lane = 0; lane < kWarpWidth; ++lane) {
    for (int e = 0; e < 2; ++e) {
      by_lines[static_cast<std::size_t>(in_line(lane, e))] = e * kWarpWidth + lane;
      back[static_cast<std::size_t>(2 * lane + e)] = in_line(lane, e);
    }
  }
  std::string lines;
  if (const auto loaded = pairs_.find(x); loaded != pairs_.end()) {
    for (int& place : by_lines) place = place % kWarpWidth * 2 + place / kWarpWidth;
    lines = out_.shuffle(elem, kPairs, loaded->second, {}, by_lines);
  } else {
    lines = out_.shuffle(elem, kWarpWidth, element(x, 0, kWarpWidth), element(x, 1, kWarpWidth),
                         by_lines);
  }
  const std::string all = OpWriter(out_, kPairs).convert(from, to, lines);
  for (int e = 0; e < 2; ++e) {
    std::vector<int> own;
    for (int lane = 0; lane < kWarpWidth; ++lane) own.push_back(in_line(lane, e));
    values_[id].push_back(out_.shuffle(result, kPairs, all, {}, own));
  }
  if (to == DType::f16) pairs_[id] = out_.shuffle(result, kPairs, all, {}, back);
  return true;
}

}  // namespace chainfold::codegen::llvm
