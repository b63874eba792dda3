// Moments of a stream that comes in chunks: each thread keeps a state, spills it to a file now and
// then and begins anew, and at the end all files are merged.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

namespace {

constexpr std::size_t kChunk = 2048;

std::vector<double> measurements(std::size_t count) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(20, 3);
  std::vector<double> all(count);
  for (double& value : all) value = normal(random);
  return all;
}

void write_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::byte> bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

/// Memory of one state, of nothing.
std::vector<std::uint64_t> state_of(const cf::States& states) {
  std::vector<std::uint64_t> words(static_cast<std::size_t>(states.bytes()) / 8);
  states.init(words.data());
  return words;
}

int run(std::size_t count, int threads, std::size_t chunks_a_file) {
  const std::vector<double> all = measurements(count);
  auto x = cf::input<double>("x");
  const auto moments =
      cf::over(cf::whole(), cf::count(), cf::mean(x), cf::stddev(x), cf::min(x), cf::max(x));
  const cf::States states(moments, {.target = cf::target("cpu")});
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("stream-{}", std::random_device{}());
  std::filesystem::create_directory(folder);

  std::vector<std::thread> workers;
  std::vector<std::string> errors(static_cast<std::size_t>(threads));
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      try {
        auto state = state_of(states);
        std::size_t taken = 0;
        int files = 0;
        const auto spill = [&] {
          write_file(folder / fmt::format("{}-{}.states", t, files++),
                     states.serialise(state.data()));
          states.init(state.data());
        };
        const std::size_t step = kChunk * static_cast<std::size_t>(threads);
        for (std::size_t at = kChunk * static_cast<std::size_t>(t); at < count; at += step) {
          const std::span<const double> chunk(all.data() + at, std::min(kChunk, count - at));
          states.update(state.data(), {{"x", chunk}});
          if (++taken % chunks_a_file == 0) spill();
        }
        spill();
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(t)] = error.what();
      }
    });
  for (std::thread& worker : workers) worker.join();
  for (const std::string& error : errors)
    if (!error.empty()) throw std::runtime_error(error);

  auto merged = state_of(states), read = state_of(states);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    states.deserialise(read_file(entry.path()), read.data(), 1);
    states.merge(merged.data(), read.data());
    ++files;
  }
  std::filesystem::remove_all(folder);
  const auto [n, mean, deviation, least, most] =
      states.finalize<std::int64_t, double, double, double, double>(merged.data());
  fmt::print("{} values in chunks of {}, by {} threads, from {} files of {} bytes\n", n[0], kChunk,
             threads, files, states.bytes() + 32);
  fmt::print("mean {:.6f}, standard deviation {:.6f}, from {:.6f} to {:.6f}\n", mean[0],
             deviation[0], least[0], most[0]);

  // The same at once.
  const auto [n1, mean1, deviation1, least1, most1] =
      cf::compile(moments, {.target = cf::target("cpu")}).run({{"x", all}});
  const auto near = [](double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-14 * std::abs(b);
  };
  const bool right = n[0] == n1[0] && near(mean[0], mean1[0]) &&
                     near(deviation[0], deviation1[0]) && least[0] == least1[0] &&
                     most[0] == most1[0];
  fmt::print("{}\n", right ? "equal to one run over all values" : "WRONG: one run gives another");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 1'000'000, chunks_a_file = 100;
  int threads = 2;
  CLI::App app("Moments of a stream in chunks, by threads that spill their states to files.");
  app.add_option("--values", count, "values of the stream")->capture_default_str();
  app.add_option("--threads", threads, "threads that take chunks")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--spill", chunks_a_file, "chunks after which a thread writes its state")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(count, threads, chunks_a_file);
  } catch (const std::exception& error) {
    fmt::print(stderr, "stream: error: {}\n", error.what());
    return 1;
  }
}
