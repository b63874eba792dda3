#include "chainfold/runtime/cache/entry.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>

namespace chainfold::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::string_view kMagic("CFcache\0", 8);
constexpr std::size_t kFixed = 8 + 4 + 4 + 16 + 8 + 8;
constexpr std::size_t kChecksum = 16;

template <class T>
void put(std::string& file, T value) {
  static_assert(std::is_integral_v<T>);
  file.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void put_text(std::string& file, std::string_view text) {
  put(file, static_cast<std::uint32_t>(text.size()));
  file += text;
}

void put_hash(std::string& file, const Hash128& hash) {
  put(file, hash.high);
  put(file, hash.low);
}

/// Takes values off the front of a file; past its end all of them are zero and `whole` is false.
struct Reader {
  std::string_view rest;
  bool whole = true;

  std::string_view take(std::uint64_t count) {
    if (count > rest.size()) {
      whole = false;
      rest = {};
      return {};
    }
    const std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }
  template <class T>
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof(T));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }
  Hash128 hash() {
    const auto high = number<std::uint64_t>();
    return {.high = high, .low = number<std::uint64_t>()};
  }
};

}  // namespace

std::string_view library_version() noexcept { return CHAINFOLD_VERSION; }

std::string encode_entry(const CacheEntry& entry) {
  const std::size_t header =
      kFixed + 3 * 4 + entry.kind.size() + entry.version.size() + entry.description.size();
  std::string file;
  file.reserve(header + entry.payload.size() + kChecksum);
  file += kMagic;
  put(file, kCacheFormat);
  put(file, static_cast<std::uint32_t>(header));
  put_hash(file, entry.key);
  put(file, entry.created);
  put(file, static_cast<std::uint64_t>(entry.payload.size()));
  put_text(file, entry.kind);
  put_text(file, entry.version);
  put_text(file, entry.description);
  file += entry.payload;
  put_hash(file, hash128(file));
  return file;
}

std::string decode_entry(std::string_view file, CacheEntry& entry) {
  if (file.size() < kFixed + kChecksum) return fmt::format("only {} bytes long", file.size());
  Reader tail{file.substr(file.size() - kChecksum)};
  file.remove_suffix(kChecksum);
  if (tail.hash() != hash128(file)) return "its checksum is wrong";

  Reader reader{file};
  if (reader.take(kMagic.size()) != kMagic) return "not an entry of Chainfold's cache";
  if (const auto format = reader.number<std::uint32_t>(); format != kCacheFormat) {
    return fmt::format("format {}, not {}", format, kCacheFormat);
  }
  const auto header = reader.number<std::uint32_t>();
  entry.key = reader.hash();
  entry.created = reader.number<std::int64_t>();
  const auto payload = reader.number<std::uint64_t>();
  entry.kind = reader.text();
  entry.version = reader.text();
  entry.description = reader.text();
  if (!reader.whole || file.size() - reader.rest.size() != header ||
      reader.rest.size() != payload) {
    return "its lengths contradict each other";
  }
  entry.payload = std::string(reader.rest);
  return {};
}

}  // namespace chainfold::runtime
