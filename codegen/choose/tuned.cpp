#include "chainfold/codegen/choose/tuned.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace chainfold::codegen {

namespace {

/// What differs from the base row on the devices that `is` recognises, by what a target has.
struct DeviceRow {
  bool (*is)(const Target& target);
  void (*change)(Tuned& tuned);
};

constexpr std::array kDevices{
    DeviceRow{[](const Target& target) { return target.is_cpu(); },
              [](Tuned& tuned) {
                tuned.parts.from_bytes = 128 * 1024;
                tuned.parts.moments_from = 1;
              }},
    // Their code takes more registers, and spills where a multiprocessor is to hold more.
    DeviceRow{[](const Target& target) { return target.arch >= 100; },
              [](Tuned& tuned) {
                tuned.head_tiles.blocks = 16;
                tuned.merge_path.few_blocks = 12;
              }},
};

}  // namespace

const Tuned& tuned_for(const Target& target) {
  static const Tuned base{};
  static const std::array<Tuned, kDevices.size()> changed = [] {
    std::array<Tuned, kDevices.size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) kDevices[i].change(all[i]);
    return all;
  }();
  for (std::size_t i = 0; i < kDevices.size(); ++i)
    if (kDevices[i].is(target)) return changed[i];
  return base;
}

}  // namespace chainfold::codegen
