// Additions by all units that can add.
#pragma once

namespace llvm {
class BinaryOperator;
class Function;
class Value;
}  // namespace llvm

namespace chainfold::runtime::cpu {

class Hidden;

/// Puts x * 1 + y in the place of the sum x + y, or x * 1 - y of a difference, of whole registers
/// of f32 or f64: rounded once, so the same value; of two NaNs it may be the other one.
llvm::Value* sum_by_product(Hidden& hidden, llvm::BinaryOperator& sum);

/// On processors whose units for additions are others than those for products and their sums
/// (AMD's), lets the latter take a share of a block's additions and subtractions of floats.
/// Elsewhere nothing. The units that add also shift and convert (Zen 4, by measurement: two shifts
/// and two additions of 512 bits take four cycles, two shifts and two sums by product take two).
///
/// Before: a function for the host, optimised. After: where a basic block has more additions,
/// shifts and conversions than products, about as many for either kind of units, as far as there
/// are additions of whole registers; which of them, spread over the block, is the same each time. A
/// sum by product takes a cycle longer, so chains of additions that wait for each other get a
/// little longer.
void spread_additions(llvm::Function& function, Hidden& hidden);

}  // namespace chainfold::runtime::cpu
