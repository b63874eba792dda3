// The bytes of one file of the cache: a header, the payload, and a checksum over both.
//
// clang-format off
//   magic                                8 bytes             "CFcache" and a zero
//   format                               u32                 kCacheFormat
//   header size                          u32                 bytes before the payload
//   key                                  16 bytes            high and low word
//   created                              i64                 seconds since 1970
//   payload size                         u64                 bytes
//   kind, library version, description   u32, characters     each a length and its characters
//   payload
//   checksum                             16 bytes            XXH3-128 of all before it
// clang-format on
//
// Numbers are little-endian, as on every processor that kernels are made for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chainfold/runtime/cache/hash128.hpp"

namespace chainfold::runtime {

/// Part of every key and header: another value makes all older entries unknown.
inline constexpr std::uint32_t kCacheFormat = 2;

/// "0.1.0": the version of this library.
std::string_view library_version() noexcept;

struct CacheEntry {
  std::string kind;     ///< "kernel" or "tuning"
  std::string version;  ///< of the library that wrote it
  std::string description;
  Hash128 key;
  std::int64_t created = 0;  ///< seconds since 1970
  std::string payload;
};

/// The file of an entry.
std::string encode_entry(const CacheEntry& entry);

/// Reads a file into `entry` if it is whole: checksum, format and every length. Returns what is
/// wrong with it, or an empty string.
std::string decode_entry(std::string_view file, CacheEntry& entry);

}  // namespace chainfold::runtime
