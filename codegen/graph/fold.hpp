// Fold: the contract that every aggregate, built in or a user's own, is an instance of.
//
// Semantics. A fold turns a sequence of elements into one value:
//
//   state = init
//   for each element in order: state = merge(state, lift(element))
//   value = finalize(state).
//
// The merge is associative up to rounding and init is its identity, so the sequence may be cut
// anywhere. Chunks, lanes, warps, blocks, launches and engines merge partial states and use nothing
// else. Code of a fold is written once, as Lambdas.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/lambda.hpp"

namespace chainfold::codegen {

struct QuickFold;
struct Fold {
  std::string name;             ///< "sum.f32"; equal names are equal folds
  std::vector<DType> operands;  ///< of one element
  /// Of the values, one a launch, that finalize takes behind the state.
  std::vector<DType> given{};
  std::vector<DType> state;
  std::vector<Bits> init;  ///< the identity of merge, a value a state field
  /// The state is (count, mean, sum of squared deviations from the mean), in f64. Of i64 and f64
  /// the mean is two fields, a base and what is to be added to it. That of f64 has a field more,
  /// for squares of large deviations.
  bool moments = false;
  /// Whether the first field counts elements: the same for all of a lane's where none is filtered.
  bool counts = false;
  /// Moments: the merge of those that are taken relative to one value, in the elements' type (of
  /// integers f64).
  Lambda merge_near{};
  Lambda lift;   ///< operands -> state
  Lambda merge;  ///< state a (earlier), state b (later) -> state
  /// state, given -> values: the fold's own, and others that take more bits to tell (Node::part).
  Lambda finalize;
  /// State, operand of lift -> state: what merge with lift(operand) gives up to rounding, at less
  /// cost.
  std::optional<Lambda> accumulate{};
  /// The operation for which lift(x) merged with lift(y) is lift(x op y) up to rounding. Elements
  /// of a tile may be combined by this one operation first. `tile_identity` is its neutral element.
  std::optional<Op> tile;
  Bits tile_identity = 0;
  /// Of states (value, index) out of operands (value, index): Op::min or Op::max, which the value
  /// is of all values. The index is the least of those elements that have this value, NaN being one
  /// value. So merges of a state with itself change nothing, nor do elements whose values are not
  /// better than the state's and whose indices are larger. The index of nothing is that of `init`:
  /// above all, or where elements are merged in order (in_order) -1.
  std::optional<Op> place;
  /// Of states (top, sum): what several elements are at once, up to rounding. `top` combines their
  /// operands, and the sum is that of term(operand, base(top)).
  struct Relative {
    Op top;
    Lambda base, term;
  };
  std::optional<Relative> relative{};
  bool linear = false;  ///< a sum: may go through a matrix instruction
  /// What `tile`, `accumulate` and moments give holds as long as a number is below a limit in
  /// absolute terms (NaN is not). That number is the value, or this field of the state. Where it is
  /// not below, elements are to be lifted and merged one by one (by_elements), which holds always.
  struct Guard {
    int field = 0;
    double limit = 0;
  };
  std::optional<Guard> guard{};
  bool commutative = true;
  /// One that costs less and holds for ordinary elements.
  std::shared_ptr<const QuickFold> quick{};

  [[nodiscard]] DType result(int part = 0) const {
    return finalize.type(finalize.results[static_cast<std::size_t>(part)]);
  }
};
/// Folds of the same operands whose states are of other forms, for elements that they serve.
struct QuickFold {
  /// operands -> boolean: whether the fold serves such an element. `serves` is for totals that are
  /// asked whether they hold (`holds`), `serves_alone` for others.
  Lambda serves, serves_alone;
  /// For scans: from what comes before, below the limit, each result is the same up to rounding.
  /// What elements leave behind them may not be.
  Fold scans;
  /// state, given -> a state of `scans`, of what comes before elements. It contains what is given,
  /// so that nothing more is given to it. Its `field` has to be below `limit`.
  Lambda narrow;
  int field = 0;
  double limit = 0;
  /// What the state of all elements has besides that of `scans`: commutative, without results.
  Fold rest;
  /// States of `scans` and of `rest` -> whether they hold (boolean), and the state they are then.
  Lambda holds, widen;
};
/// A fold of the same states that takes its elements by lift and merge alone.
Fold by_elements(Fold fold);
/// The fold for elements that are merged in order, which takes less where it is one with a place.
Fold in_order(const Fold& fold);
/// Smallest or largest; of nothing: +inf or -inf, or the type's largest or smallest value. NaN
/// wins.
Fold make_min(DType type);
Fold make_max(DType type);
/// Whether any or all elements are true; of nothing: false, true.
Fold make_any();
Fold make_all();
/// The product in `type` (a sum_type); 1 of nothing. Integers wrap.
Fold make_product(DType type);
/// All elements combined by bit_and, bit_or or bit_xor (integers); all ones, 0 and 0 of nothing.
Fold make_bits(Op op, DType type);
/// The index of the smallest or largest element out of (element, index); of equal ones, and of
/// several NaN, the smallest index. NaN wins, -0 equals +0. Of nothing: -1.
Fold make_argmin(DType type);
Fold make_argmax(DType type);
/// log(sum(exp(x))) in `type` (f32 or f64): states (largest, sum of exp(x - largest)), so nothing
/// overflows. Of nothing: -inf.
Fold make_logsumexp(DType type);
/// A fold of the user's own. Its full name is `name` and a hash of all the rest. Throws UserError
/// for a name that is no word and for an `init` that is not even itself when it is
/// merged with itself.
struct MonoidParts {
  std::string name;
  std::vector<DType> operands, state;
  std::vector<Bits> init;
  Lambda lift, merge, finalize;
  bool commutative = false;
};
Fold make_monoid(MonoidParts parts);

}  // namespace chainfold::codegen
