// Additions by all units that can add.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// On processors whose units for additions are others than those for products and their sums
/// (AMD's), lets the latter take a share of a block's additions and subtractions of floats, as
/// x * 1 + y and x * 1 - y: rounded once, so the same values. Elsewhere nothing.
///
/// Before: a module for the host, optimised. After: where a basic block has more additions of whole
/// registers than products, about as many of either; which of them, spread over the block, is the
/// same each time. A sum by product takes a cycle longer, so chains of additions that wait for each
/// other get a little longer.
void spread_additions(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
