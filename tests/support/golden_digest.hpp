// A line that says of a long program and its kernels what a reader of a difference asks first.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::test {

/// Hashes and lines of both texts, the program's operations by kind, the loads that are issued
/// before the first use of one of them, at most, and the shared memory of its largest launch:
/// "program 0a1b (312 lines), kernels 2c3d (420 lines); load 4, mma 8; 4 loads in flight; 1024
/// bytes shared". `text` is the program's print, in whose order loads and uses are counted.
std::string digest(const codegen::Program& program, std::string_view text,
                   std::string_view kernels);

/// What a case shows: its strategy, the units of its folds and the operations of its program, as
/// "strategy staged", "unit mma_ones", "operation load". `head` has the plan's print.
std::set<std::string> features_of(std::string_view head, std::string_view text);

}  // namespace chainfold::test
