// Additions by all units that can add.
#pragma once

namespace llvm {
class BinaryOperator;
class Function;
class Value;
}  // namespace llvm

namespace chainfold::runtime::cpu {

class Hidden;

/// Replaces the sum x + y by x * 1 + y, or a difference by x * 1 - y, in whole registers of f32 or
/// f64. Both are rounded once, so the value is the same; of two NaNs it may be the other one.
llvm::Value* sum_by_product(Hidden& hidden, llvm::BinaryOperator& sum);

/// AMD's processors add in other units than those that multiply and add. There the latter take a
/// share of a basic block's additions and subtractions of floats. On other processors nothing
/// changes. The units that add also shift and convert (docs/tuned-values.md).
///
/// Before: a function for the host, optimised.
///
/// After: where a block had more additions, shifts and conversions than products, both kinds of
/// units have about as many. Only additions of whole registers are replaced. Which of them,
/// spread over the block, is the same each time. A sum by product takes a cycle longer, so chains
/// of additions that wait for each other get a little longer.
void spread_additions(llvm::Function& function, Hidden& hidden);

}  // namespace chainfold::runtime::cpu
