// Suites: what a run measures.
#pragma once

#include <cstdint>
#include <regex>
#include <string>

#include "chainfold/bench/report.hpp"

namespace chainfold::bench {

struct SuiteOptions {
  std::regex only;            ///< searched in a row's name, e.g. "sum f16->f16 S=64"
  std::int64_t elements = 0;  ///< of f16, other types get as many bytes; 0: the target's default
  double seconds = 0.3;       ///< of timed repeats a row
};

/// The suite `first`: segmented and whole folds of every kind, compile times and the cost of a
/// launch. They fill the report's head and rows, and tell what they do on stderr. Throw
/// std::runtime_error where a result is wrong, DeviceError where there is no device or compiler.
void run_first_gpu(const SuiteOptions& options, Report& report);
void run_first_cpu(const SuiteOptions& options, Report& report);

/// How often a row that takes `ms` is repeated.
std::size_t repeats_for(const SuiteOptions& options, double ms);
/// Cold compilations, the compiler being loaded, and their median times as rows: within the
/// compiler, and of cf::compile as a whole.
void measure_compile(const Target& target, const std::string& compiler, Report& report);
/// One line on stderr.
void progress(const std::string& text);

}  // namespace chainfold::bench
