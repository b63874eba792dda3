// Suites: what a run measures.
#pragma once

#include <cstdint>
#include <regex>
#include <string>
#include <string_view>

#include "chainfold/bench/report.hpp"
#include "chainfold/runtime/tuning/progress.hpp"

namespace chainfold::bench {

struct SuiteOptions {
  std::regex only;            ///< searched in a row's name, e.g. "sum f16->f16 S=64"
  std::int64_t elements = 0;  ///< of f16, other types get as many bytes; 0: the target's default
  double seconds = 0.3;       ///< of timed repeats a row
  bool tune = false;          ///< rows with tuned plans, not the default ones
  /// How a row's kernel is compiled.
  [[nodiscard]] Options compile_options(std::string_view target_name, std::int64_t elements) const {
    return {.target = target(target_name),
            .tuning = tune ? Tuning::measure : Tuning::off,
            .tuning_elements = elements,
            .on_tuning = progress_to_stderr};
  }
};

/// The suite `first`: segmented and whole folds of every kind, compile times and the cost of a
/// launch. They fill the report's head and rows, and tell what they do on stderr. Throw
/// std::runtime_error where a result is wrong, DeviceError where there is no device or compiler.
void run_first_gpu(const SuiteOptions& options, Report& report);
void run_first_cpu(const SuiteOptions& options, Report& report);

/// How often a row that takes `ms` is repeated.
std::size_t repeats_for(const SuiteOptions& options, double ms);
/// Compilations of a sum and of two folds of f16, the compiler being loaded, and their median times
/// as rows: within the compiler, of cf::compile as a whole, and of cf::compile where the machine
/// code comes from the disk.
void measure_compile(const Target& target, const std::string& compiler, Report& report);
/// One line on stderr.
void progress(const std::string& text);

}  // namespace chainfold::bench
