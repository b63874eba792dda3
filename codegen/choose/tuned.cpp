#include "chainfold/codegen/choose/tuned.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace chainfold::codegen {

namespace {

/// What differs from the base row on targets of a name, as Target::name tells it.
struct DeviceRow {
  std::string_view name;
  void (*change)(Tuned& tuned);
};

constexpr std::array kDevices{
    DeviceRow{"cpu",
              [](Tuned& tuned) {
                tuned.parts.from_bytes = 128 * 1024;
                tuned.parts.moments_from = 1;
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
    if (kDevices[i].name == target.name) return changed[i];
  return base;
}

}  // namespace chainfold::codegen
