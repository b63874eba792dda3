#include "chainfold/runtime/cache/hash128.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL  // no library to carry along
#include <xxhash.h>

namespace chainfold::runtime {

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 hash128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

FieldHash& FieldHash::add(std::string_view field) {
  add(static_cast<std::int64_t>(field.size()));
  bytes_ += field;
  return *this;
}

FieldHash& FieldHash::add(std::int64_t field) {
  const auto bits = static_cast<std::uint64_t>(field);
  for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte) & 0xff);
  return *this;
}

}  // namespace chainfold::runtime
