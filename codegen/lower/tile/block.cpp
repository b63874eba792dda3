#include "chainfold/codegen/lower/tile/block.hpp"

#include <algorithm>
#include <bit>

namespace chainfold::codegen {

Partials reduce_block(Builder& b, Program& program, TileLowering& tile, Partials partials) {
  Launch& launch = program.launches.back();
  if (launch.warps == 1) return partials;
  auto& shared = launch.shared;
  const std::vector<ValueId> fields = tile.flatten(partials);
  if (shared.empty()) {
    for (std::size_t i = 0; i < fields.size(); ++i)
      shared.push_back({"state_" + std::to_string(i), b.type(fields[i]).elem, launch.warps});
  }
  const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
  const ValueId warp = b.convert(b.warp(), DType::i64);
  for (std::size_t i = 0; i < fields.size(); ++i)
    b.shared_store(static_cast<int>(i), {warp}, fields[i], first_lane);
  b.barrier();
  const auto lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(launch.warps)));
  const ValueId mask = b.compute(Op::lt, {b.lane(), b.i32(launch.warps)});
  std::size_t array = 0;
  for (std::size_t f = 0; f < partials.size(); ++f) {
    partials[f].complete = false;  // each lane now holds another warp's state
    for (std::size_t i = 0; i < partials[f].fields.size(); ++i, ++array) {
      const ValueId loaded = b.shared_load(static_cast<int>(array), {b.i64(0)}, 1, mask);
      partials[f].fields[i] = b.select(mask, loaded, tile.identity(f).fields[i]);
    }
  }
  return tile.reduce_lanes(std::move(partials), 1, lanes);
}

Partials reduce_gathered(Builder& b, TileLowering& tile, Builder::Values states, int blocks) {
  const auto lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(blocks)));
  const ValueId there = b.compute(Op::lt, {b.lane(), b.i32(blocks)});
  const Builder::Values identities = tile.flatten(tile.identities());
  for (std::size_t i = 0; i < states.size(); ++i)
    states[i] = b.select(there, states[i], identities[i]);
  return tile.reduce_lanes(tile.unflatten(states), 1, lanes);
}

int warps_for(std::int64_t items, std::int64_t each, int most) {
  const auto needed = static_cast<std::uint64_t>((items + each - 1) / each);
  return static_cast<int>(
      std::min<std::uint64_t>(std::bit_floor(static_cast<unsigned>(most)), std::bit_ceil(needed)));
}

}  // namespace chainfold::codegen
