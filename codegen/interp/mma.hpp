// What one matrix instruction computes, bit for bit, by its row's rounding model.
//
// With f32 accumulators products are exact. Those of one group and C are aligned to the largest
// exponent among them, cut to F fraction bits, summed, and rounded once toward zero. The exponent
// of a product is the sum of its factors'; zero has the least normal f32 exponent. Groups follow
// each other. NaN is canonical, a sum of zero is +0. With f64 accumulators it is IEEE FMA in the
// order of k. Integers are exact modulo 2^32.
#pragma once

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

/// D = A * B + C of one warp. Fragments are lane-major: element i of lane l at [l * elements + i].
/// `d` may be `c`. tf32 inputs are f32 values, cut to 10 fraction bits.
void interpret_mma(const MmaRow& row, int arch, const Bits* a, const Bits* b, const Bits* c,
                   Bits* d);

}  // namespace chainfold::codegen
