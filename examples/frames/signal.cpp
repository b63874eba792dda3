#include "signal.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <string_view>

static_assert(std::endian::native == std::endian::little, "the files hold little-endian numbers");

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw std::runtime_error(path.string() + ": " + why);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail(path, "could not be opened");
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <class T>
T number_at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// Every `step`-th value of type T.
template <class T>
std::vector<T> values(std::string_view bytes, std::size_t first = 0, std::size_t step = 1) {
  std::vector<T> result;
  const std::size_t count = bytes.size() / sizeof(T);
  result.reserve(count / step);
  for (std::size_t i = first; i < count; i += step)
    result.push_back(number_at<T>(bytes, i * sizeof(T)));
  return result;
}

}  // namespace

Signal read_wav(const std::filesystem::path& path, int channel) {
  constexpr std::size_t kFormatBytes = 16;  // what every "fmt " chunk has at least
  constexpr int kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;
  const std::string file = read_file(path);
  const std::string_view bytes = file;
  if (bytes.size() < 12 || bytes.substr(0, 4) != "RIFF" || bytes.substr(8, 4) != "WAVE") {
    fail(path, "not a WAV file: it does not begin with RIFF and WAVE");
  }
  std::string_view format, data;
  bool found = false;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const std::string_view name = bytes.substr(at, 4);
    const std::size_t size = number_at<std::uint32_t>(bytes, at + 4);
    const std::size_t left = bytes.size() - at - 8;
    if (size > left) {
      fail(path, fmt::format("the chunk '{}' has {} bytes, {} are left: the file is cut off", name,
                             size, left));
    }
    if (name == "fmt ") format = bytes.substr(at + 8, size);
    if (name == "data") {
      data = bytes.substr(at + 8, size);
      found = true;
    }
    at += 8 + size + size % 2;  // chunks begin at even offsets
  }
  if (format.size() < kFormatBytes) fail(path, "there is no complete 'fmt ' chunk");
  if (!found) fail(path, "there is no 'data' chunk");
  int kind = number_at<std::uint16_t>(format, 0);
  const int channels = number_at<std::uint16_t>(format, 2);
  const int bits = number_at<std::uint16_t>(format, 14);
  if (kind == kExtensible && format.size() >= 26) kind = number_at<std::uint16_t>(format, 24);
  const bool pcm16 = kind == kPcm && bits == 16;
  if (!pcm16 && !(kind == kFloat && bits == 32)) {
    fail(path, fmt::format("samples of format {} with {} bits; 16-bit PCM (format 1) and 32-bit "
                           "float (format 3) are supported: convert the file, e.g. with sox -b 16",
                           kind, bits));
  }
  if (channels < 1) fail(path, "the header says that there are no channels");
  if (channel < 0 || channel >= channels) {
    fail(path, fmt::format("channel {} of {}; they count from 0", channel, channels));
  }
  const std::size_t frame_bytes = static_cast<std::size_t>(channels) * (pcm16 ? 2 : 4);
  data = data.substr(0, data.size() / frame_bytes * frame_bytes);
  const auto first = static_cast<std::size_t>(channel), step = static_cast<std::size_t>(channels);
  Signal signal;
  signal.rate = number_at<std::uint32_t>(format, 4);
  signal.origin = fmt::format("{}, {}, channel {} of {}", path.string(), pcm16 ? "i16" : "f32",
                              channel, channels);
  if (pcm16) {
    signal.samples = values<std::int16_t>(data, first, step);
    signal.full_scale = 32768;
  } else {
    signal.samples = values<float>(data, first, step);
  }
  return signal;
}

Signal read_npy(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  const std::string_view bytes = file;
  if (bytes.size() < 12 || bytes.substr(0, 6) != "\x93NUMPY") {
    fail(path, "not a .npy file: the magic string is missing");
  }
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) fail(path, fmt::format("unknown .npy version {}", version));
  const std::size_t begin = version == 1 ? 10 : 12;
  const std::size_t length =
      version == 1 ? number_at<std::uint16_t>(bytes, 8) : number_at<std::uint32_t>(bytes, 8);
  if (length > bytes.size() - begin) fail(path, "the file ends within its header");
  const std::string header(bytes.substr(begin, length));

  std::smatch match;
  if (!std::regex_search(header, match, std::regex("'descr': *'([^']*)'"))) {
    fail(path, "an array of records; arrays of one number type are supported");
  }
  const std::string type = match[1];
  if (!std::regex_search(header, match, std::regex("'shape': *\\(([^)]*)\\)"))) {
    fail(path, "the header gives no shape");
  }
  const std::string shape = match[1];
  if (!std::regex_match(shape, match, std::regex(" *([0-9]+) *, *"))) {
    fail(path, fmt::format("an array of shape ({}); one dimension is supported: save x.ravel() or "
                           "one row",
                           shape));
  }
  const std::string count_text = match[1];
  const std::size_t count = std::stoull(count_text);
  const std::string_view data = bytes.substr(begin + length);

  Signal signal;
  signal.origin = fmt::format("{}, {}", path.string(), type);
  const auto take = [&]<class T>(T) {
    if (data.size() / sizeof(T) < count) {
      fail(path, fmt::format("{} elements of {} bytes are promised, {} bytes are there: the file "
                             "is cut off",
                             count, sizeof(T), data.size()));
    }
    signal.samples = values<T>(data.substr(0, count * sizeof(T)));
    if constexpr (std::is_integral_v<T>) signal.full_scale = std::ldexp(1.0, 8 * sizeof(T) - 1);
  };
  if (type == "<f2") {
    take(chainfold::f16{});
  } else if (type == "<f4") {
    take(float{});
  } else if (type == "<f8") {
    take(double{});
  } else if (type == "|i1" || type == "<i1") {
    take(std::int8_t{});
  } else if (type == "<i2") {
    take(std::int16_t{});
  } else if (type == "<i4") {
    take(std::int32_t{});
  } else {
    fail(path, fmt::format("elements of type '{}'; little-endian f2, f4, f8, i1, i2 and i4 are "
                           "supported: save x.astype('<f4')",
                           type));
  }
  return signal;
}

Signal default_signal() {
  constexpr int kRate = 8000;
  constexpr double kPi = 3.14159265358979323846;
  std::vector<chainfold::f16> samples;
  std::uint32_t noise = 1;
  for (int i = 0; i < kRate; ++i) {
    const double t = static_cast<double>(i) / kRate;
    noise = noise * 1664525u + 1013904223u;
    double value = 0;
    if (t < 0.5) {
      value = 1.6 * t * std::sin(2 * kPi * (200 + 400 * t) * t);
    } else if (t >= 0.6) {
      value = (1 - t) * (static_cast<double>(noise >> 8) / (1 << 23) - 1) + 0.05;
    }
    samples.emplace_back(static_cast<float>(value));
  }
  return {.samples = std::move(samples),
          .origin = "a generated signal, f16: a tone that swells, silence, noise that fades",
          .rate = kRate};
}
