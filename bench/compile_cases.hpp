// What first results are timed of: every fold alone, types, sizes, pairs, many at once, scans and
// folds of a user's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace chainfold::bench {

struct CompileCase {
  std::string name;
  Computation computation;
  std::int64_t segment = 0;  ///< 0: everything, or columns
  std::int64_t columns = 0;  ///< 0: none
};

/// Of every kind, mostly of f32.
std::vector<CompileCase> compile_cases();
/// Thirteen folds and scans of five types in segments of five sizes and of the whole input.
std::vector<CompileCase> compile_grid();

}  // namespace chainfold::bench
