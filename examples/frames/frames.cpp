// Mean and root mean square of every frame of an audio or sensor signal, in one pass over it.
#include "chainfold/chainfold.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "signal.hpp"

namespace cf = chainfold;

namespace {

struct Levels {
  std::vector<double> mean, rms;
  std::string device, plan;
};

/// What Chainfold computes for samples of type T, whatever T is: only the squares of wide integers,
/// which would overflow, are taken in floating point.
template <class T>
Levels levels_of(const std::vector<T>& samples, std::int64_t frame, const cf::Options& options,
                 bool explain) {
  using Real = std::conditional_t<(sizeof(T) <= 2) || std::is_same_v<T, float>, float, double>;
  auto x = cf::input<T>("x");
  auto y = [&] {
    if constexpr (std::is_integral_v<T>) {
      return cf::cast<Real>(x);
    } else {
      return x;
    }
  }();
  auto frames =
      cf::over(cf::segments(frame, cf::Tail::partial), cf::mean(x), cf::sqrt(cf::mean(y * y)));
  const auto kernel = cf::compile(frames, options);
  if (explain) fmt::print("{}\n", kernel.explain());
  const auto [mean, rms] = kernel.run({{"x", samples}});
  return {.mean = {mean.begin(), mean.end()},
          .rms = {rms.begin(), rms.end()},
          .device = kernel.device_name(),
          .plan = kernel.plan_summary()};
}

/// The loudness over time in eight steps, from -60 dB to the loudest frame.
std::string sparkline(const std::vector<double>& rms, std::size_t columns) {
  constexpr const char* kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr double kRange = 60;  // dB
  columns = std::min(columns, rms.size());
  const double top = rms.empty() ? 0 : *std::max_element(rms.begin(), rms.end());
  std::string line;
  for (std::size_t c = 0; c < columns; ++c) {
    const auto begin = rms.begin() + static_cast<std::ptrdiff_t>(c * rms.size() / columns);
    const auto end = rms.begin() + static_cast<std::ptrdiff_t>((c + 1) * rms.size() / columns);
    const double loudest = *std::max_element(begin, end);
    const double below = loudest > 0 ? 20 * std::log10(loudest / top) : -kRange;  // dB, 0 or less
    const double height = std::clamp(1 + below / kRange, 0.0, 1.0);
    line += kBars[static_cast<int>(std::lround(8 * height))];
  }
  return line;
}

void print_table(const Levels& levels, const Signal& signal, std::int64_t frame, std::size_t rows) {
  const std::size_t frames = levels.mean.size();
  fmt::print("{:>8} {:>10} {:>14} {:>14} {:>9}\n", "frame", signal.rate > 0 ? "seconds" : "sample",
             "mean", "RMS", "dBFS");
  for (std::size_t i = 0; i < std::min(rows, frames); ++i) {
    const double at = static_cast<double>(i) * static_cast<double>(frame);
    const double level = levels.rms[i] / signal.full_scale;
    fmt::print(
        "{:>8} {:>10} {:>14.6g} {:>14.6g} {:>9}\n", i,
        signal.rate > 0 ? fmt::format("{:.3f}", at / signal.rate) : fmt::format("{:.0f}", at),
        levels.mean[i], levels.rms[i],
        level > 0 ? fmt::format("{:.1f}", 20 * std::log10(level)) : "-inf");
  }
  if (frames > rows) fmt::print("{:>8}\n", fmt::format("+ {} more", frames - rows));
}

void write_csv(const std::string& path, const Levels& levels) {
  std::ofstream stream(path);
  stream << "frame,mean,rms\n";
  for (std::size_t i = 0; i < levels.mean.size(); ++i)
    stream << fmt::format("{},{:.17g},{:.17g}\n", i, levels.mean[i], levels.rms[i]);
  stream.flush();
  if (!stream) throw std::runtime_error(path + " could not be written");
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<std::string> file, csv;
  std::string device = "auto";
  std::int64_t frame = 64;
  std::size_t rows = 12;
  int channel = 0;
  bool explain = false;
  CLI::App app(
      "Mean and RMS of every frame of a signal: a WAV file, a .npy array or a generated one.");
  app.add_option("file", file, "a .wav (16-bit PCM or 32-bit float) or .npy (one dimension)");
  app.add_option("--frame", frame, "samples a frame; the last one may be shorter")
      ->capture_default_str();
  app.add_option("--channel", channel, "channel of a WAV file, from 0")->capture_default_str();
  app.add_option("--device", device, "auto (the GPU if there is one), gpu, gpu:N or cpu")
      ->capture_default_str();
  app.add_option("--rows", rows, "rows of the table to print")->capture_default_str();
  app.add_option("--csv", csv, "write every frame to this file");
  app.add_flag("--explain", explain, "also print expression, graph, plan and kernel source");
  CLI11_PARSE(app, argc, argv);
  try {
    Signal signal;
    if (!file) {
      signal = default_signal();
    } else if (file->ends_with(".npy")) {
      signal = read_npy(*file);
    } else if (file->ends_with(".wav") || file->ends_with(".WAV")) {
      signal = read_wav(*file, channel);
    } else {
      throw std::runtime_error(*file + ": the name must end in .wav or .npy");
    }
    cf::Options options;
    if (device != "auto") options.target = cf::target(device);
    const Levels levels =
        std::visit([&](const auto& samples) { return levels_of(samples, frame, options, explain); },
                   signal.samples);
    const std::size_t samples = std::visit([](const auto& s) { return s.size(); }, signal.samples);
    fmt::print("{}\n{} samples, {} frames of {}\n{}\n\n", signal.origin, samples,
               levels.mean.size(), frame, levels.device);
    print_table(levels, signal, frame, rows);
    if (!levels.rms.empty()) fmt::print("\n|{}| RMS over time, 60 dB\n", sparkline(levels.rms, 72));
    if (csv) write_csv(*csv, levels);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "frames: error: {}\n", error.what());
    return 1;
  }
}
