#include "chainfold/codegen/lower/fold/path_outputs.hpp"

#include <algorithm>
#include <utility>

namespace chainfold::codegen {

namespace {
constexpr int kStoreBytes = 16;  // that a lane stores at once
}  // namespace

ValueId PathOutputs::has_room(std::size_t o, ValueId segment) {
  const ValueId room = rows_.room(b_, o);
  return room == kNoValue ? kNoValue : b_.lt(segment, room);
}

ValueId PathOutputs::in_memory(ValueId segment) {
  return mirrored_ ? b_.sub(b_.sub(segments_, b_.i64(1)), segment) : segment;
}

void PathOutputs::put(ValueId first, const Partials& states, ValueId extent, ValueId mask) {
  const std::vector<ValueId> outputs = tile_.finish(states, extent);
  Address at{.base = in_memory(first)};
  if (mirrored_) at = {.base = at.base, .group = 1, .stride = -1};
  const ValueId row = in_memory(b_.add(first, b_.convert(b_.lane(), DType::i64)));
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (outputs[o] != kNoValue)
      b_.store(buffer_of(o), at, outputs[o], b_.both(mask, has_room(o, row)));
}

void PathOutputs::put_one(ValueId segment, const Partials& states, ValueId extent) {
  const std::vector<ValueId> outputs = tile_.finish(states, extent);
  const ValueId row = in_memory(segment);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (outputs[o] != kNoValue) b_.store_uniform(buffer_of(o), row, outputs[o], has_room(o, row));
}

void PathOutputs::put_elements(PathTile& path, const PathTile::Scanned& some) {
  const std::vector<ValueId> outputs =
      tile_.finish_elements(*some.load, {.running = some.values}, some.extent);
  const int width = some.load->width;
  ValueId whole = some.counts[0], any = some.counts[0];
  for (const ValueId counts : some.counts) {
    whole = b_.both(whole, counts);
    any = b_.compute(Op::bit_or, {any, counts});
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] == kNoValue) continue;
    const ValueId value = b_.splat(b_.widen(outputs[o], width));
    const int size = size_of(b_.type(value).elem);
    const int bytes = std::min(kStoreBytes, std::max(plan_.base_alignment, size));
    const int once = b_.program().accesses_anywhere ? width : std::min(width, bytes / size);
    const auto store = [&](int first, int count, ValueId mask) {
      b_.store(buffer_of(o), path.address_of(b_.add(some.at, b_.i64(first)), count, some.stride),
               path.in_memory_order(b_.extract(value, first, count)), mask);
    };
    for (int first = 0; first < width; first += once) store(first, once, whole);
    if (width == 1) continue;
    const ValueId some_only = b_.both(any, b_.compute(Op::bit_not, {whole}));
    b_.branch(
        b_.any(some_only),
        [&] {
          for (int j = 0; j < width; ++j)
            store(j, 1, b_.both(some_only, some.counts[static_cast<std::size_t>(j)]));
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  }
}

void PathOutputs::put_element(ValueId at, const Loaded& element, std::vector<ValueId> running,
                              ValueId extent) {
  const std::vector<ValueId> outputs =
      tile_.finish_elements(element, {.running = std::move(running)}, extent);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (outputs[o] != kNoValue) b_.store_uniform(buffer_of(o), at, outputs[o]);
}

}  // namespace chainfold::codegen
