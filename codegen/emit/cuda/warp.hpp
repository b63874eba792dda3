// What warps exchange, as CUDA expressions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chainfold::codegen::cuda {

/// An expression over `lane` for the lane that a constant table names.
std::string permutation(const std::vector<std::uint8_t>& source);

}  // namespace chainfold::codegen::cuda
