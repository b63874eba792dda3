#include "chainfold/codegen/program/streamed_buffers.hpp"

#include <variant>

#include "chainfold/codegen/program/visit.hpp"

namespace chainfold::codegen {

std::set<int> streamed_buffers(const Region& region) {
  std::set<int> buffers;
  for (const Instr& instr : region.body) {
    if (const auto* store = std::get_if<Store>(&instr.op); store != nullptr && store->streams)
      buffers.insert(store->buffer);
    for_each_region(instr.op, [&](const Region& inner) { buffers.merge(streamed_buffers(inner)); });
  }
  return buffers;
}

}  // namespace chainfold::codegen
