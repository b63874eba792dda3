// 128-bit hashes (XXH3): the keys of the caches and the checksums of their files. They are not
// cryptographic: hashes guard against accidents, owners and modes of files against people.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace chainfold::runtime {

/// A 128-bit hash.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
  /// 32 lower-case digits.
  [[nodiscard]] std::string hex() const;
};

/// The hash of `bytes`.
Hash128 hash128(std::string_view bytes);

/// The hash of a list of fields. A text counts with its length and a number as eight bytes, so no
/// two lists of fields of the same types look alike.
class FieldHash {
 public:
  FieldHash& add(std::string_view field);
  FieldHash& add(std::int64_t field);
  [[nodiscard]] Hash128 finish() const { return hash128(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace chainfold::runtime
