#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

Type uniform(DType elem) { return {.elem = elem, .shape = Shape::uniform}; }
Type lane(DType elem, int width) {
  return {.elem = elem, .shape = Shape::lane, .width = static_cast<std::int16_t>(width)};
}
Type fragment(int mma_row, Operand operand) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(mma_row)];
  return {.elem = operand == Operand::c ? row.accumulator : row.input,
          .shape = Shape::fragment,
          .width = static_cast<std::int16_t>(row.elements(operand)),
          .mma_row = static_cast<std::int16_t>(mma_row),
          .operand = operand};
}

SharedLayout shared_layout(const Launch& launch) {
  constexpr std::int64_t kUnit = 16, kBarrierBytes = 8;
  SharedLayout layout;
  auto place = [&](std::int64_t bytes) {
    const std::int64_t at = layout.bytes;
    layout.bytes += (bytes + kUnit - 1) / kUnit * kUnit;
    return at;
  };
  for (const SharedArray& array : launch.shared) {
    layout.arrays.push_back(place(std::int64_t{array.elements} * size_of(array.type)));
  }
  for (const CopyRing& ring : launch.rings)
    layout.rings.push_back(place(kBarrierBytes * ring.slots));
  if (launch.warps > 1 && contains<Ticket>(launch.body)) layout.ticket = place(size_of(DType::i64));
  for (const Instr& instr : launch.body.body) {
    if (const auto* gather = std::get_if<Gather>(&instr.op))
      layout.gather = place(size_of(DType::i64) * static_cast<std::int64_t>(gather->values.size()));
  }
  return layout;
}

RecordLayout record_layout(const std::vector<DType>& types) {
  constexpr int kWordBits = 64;
  RecordLayout layout;
  int used = kWordBits;  // of the last word
  for (const DType type : types) {
    const int bits = size_of(type) == 8 ? kWordBits : kWordBits / 2;
    if (used + bits > kWordBits) {
      ++layout.words;
      used = 0;
    }
    layout.fields.push_back({layout.words - 1, used});
    used += bits;
  }
  return layout;
}

RecordLayout record_layout(const Program& program, const std::vector<ValueId>& values) {
  std::vector<DType> types;
  for (const ValueId id : values) types.push_back(program.type(id).elem);
  return record_layout(types);
}

}  // namespace chainfold::codegen
