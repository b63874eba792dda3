// chainfold_bench: what the library reaches beside the limits of the machine and its peers, all
// measured in one run.
#include <fmt/format.h>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>
#include <string>

#include "chainfold/bench/suite.hpp"

namespace {

/// OpenMP's threads spin for a while after a loop and take the cores from whoever is measured next.
/// They read how to wait before main(), so the program starts itself anew with that set.
void make_openmp_wait_passively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
  execv("/proc/self/exe", argv);  // returns only where /proc is missing: then the peers spin
}

/// The cache of this run alone: cold compiles are cold, and warm ones find what they left.
class TemporaryCache {
 public:
  TemporaryCache() {
    std::string name = (std::filesystem::temp_directory_path() / "chainfold_bench.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return;
    folder_ = name;
    setenv("CHAINFOLD_CACHE_DIR", name.c_str(), 1);
  }
  ~TemporaryCache() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryCache(const TemporaryCache&) = delete;
  TemporaryCache& operator=(const TemporaryCache&) = delete;

 private:
  std::filesystem::path folder_;
};

}  // namespace

int main(int argc, char** argv) {
  make_openmp_wait_passively(argv);
  const TemporaryCache cache;
  using namespace chainfold;
  std::string suite = "first", kind = "gpu", only;
  std::optional<std::string> out;
  bench::SuiteOptions options;
  CLI::App app(
      "Measures Chainfold's kernels, their peers and the ceilings of the machine in one run.\n\n"
      "Every result is checked against an exact reference on a sample of its segments before it is "
      "timed. Times are medians of interleaved repeats after a warm-up. The ratio is the least "
      "time "
      "that the bytes need (reads at the rate of a read-only kernel, writes at the rate left in a "
      "copy, both measured between the repeats) over the row's time. err (u) is the largest error "
      "in units of rounding of the output's type times the sum of absolute values.");
  app.add_option("--suite", suite, "what to measure: first (folds of every kind, compile, launch)")
      ->check(CLI::IsMember({"first"}))
      ->capture_default_str();
  app.add_option("--target", kind, "gpu (device 0) or cpu")
      ->check(CLI::IsMember({"gpu", "cpu"}))
      ->capture_default_str();
  app.add_option("--out", out, "write head and rows as JSON to this file");
  app.add_option("--only", only,
                 "regular expression: only rows whose name it is found in, such as "
                 "'sum f16->f16 S=64 gpu', 'q6 i64->i64 whole cpu', 'compile gpu'");
  app.add_option(
         "--elements", options.elements,
         "f16 elements; other types get as many bytes (default: 2^30 on a GPU, 2^28 on a CPU)")
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 36));
  app.add_option("--seconds", options.seconds,
                 "time spent on the repeats of a row; at least 9 are made")
      ->check(CLI::Range(0.001, 600.0))
      ->capture_default_str();
  app.add_flag("--tune", options.tune, "measure with tuned plans instead of the default ones");
  CLI11_PARSE(app, argc, argv);
  try {
    options.only = std::regex(only);
    bench::Report report;
    report.suite = suite;
    report.target = kind;
    bench::describe_build(report);
    if (kind == "gpu") {
      bench::run_first_gpu(options, report);
    } else {
      bench::run_first_cpu(options, report);
    }
    if (out) bench::write_json(report, *out);
    fmt::print("{}", bench::table(report));
    return 0;
  } catch (const std::regex_error& error) {
    fmt::print(stderr, "chainfold_bench: error: --only '{}': {}\n", only, error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "chainfold_bench: error: {}\n", error.what());
  }
  return 1;
}
