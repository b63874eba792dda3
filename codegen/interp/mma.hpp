// What one matrix instruction computes, bit for bit, by its row's rounding model.
//
// f32 accumulators: products are exact; those of one group and C are aligned to the largest
// exponent among them (a product's is the sum of its factors'; zero has the least normal f32
// exponent), cut to F fraction bits, summed, and rounded once toward zero. Groups follow each
// other. NaN is canonical, a sum of zero is +0. f64: IEEE FMA in the order of k. Integers: exact
// modulo 2^32.
#pragma once

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

/// D = A * B + C of one warp. Fragments are lane-major: element i of lane l at [l * elements + i].
/// `d` may be `c`. tf32 inputs are f32 values, cut to 10 fraction bits.
void interpret_mma(const MmaRow& row, int arch, const Bits* a, const Bits* b, const Bits* c,
                   Bits* d);

}  // namespace chainfold::codegen
