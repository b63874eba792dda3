// Signals from files: WAV and .npy, or a generated one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "chainfold/codegen/base/types.hpp"

/// Samples in the type that the file holds.
using Samples =
    std::variant<std::vector<chainfold::f16>, std::vector<float>, std::vector<double>,
                 std::vector<std::int8_t>, std::vector<std::int16_t>, std::vector<std::int32_t>>;

struct Signal {
  Samples samples;
  std::string origin;     ///< for people: the file, its type and channel
  double rate = 0;        ///< samples a second; 0 if the file does not say
  double full_scale = 1;  ///< the value of the loudest possible sample
};

/// One channel of a WAV file (16-bit PCM or 32-bit float). Throws std::runtime_error that says what
/// is unsupported or broken.
Signal read_wav(const std::filesystem::path& path, int channel);

/// A one-dimensional .npy array of f2, f4, f8, i1, i2 or i4. Throws as read_wav does.
Signal read_npy(const std::filesystem::path& path);

/// One second of f16 samples at 8 kHz: a rising tone, silence, then noise that fades.
Signal default_signal();
