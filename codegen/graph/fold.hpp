// Fold: the contract that every aggregate, built in or a user's own, is an instance of.
//
// Semantics. A fold turns a sequence of elements into one value: state = init; for each element in
// order state = merge(state, lift(element)); the value is finalize(state). merge is associative up
// to rounding and init is its identity, so the sequence may be cut anywhere: chunks, lanes, warps,
// blocks, launches and engines merge partial states and use nothing else. Code of a fold is written
// once, as Lambdas.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/types.hpp"

namespace chainfold::codegen {

/// A pure function of scalars: parameters, then steps in SSA order. Value i < params.size() is a
/// parameter, others the result of step i - params.size().
struct Lambda {
  struct Step {
    Op op = Op::add;
    DType type = DType::i64;    ///< of the result
    std::vector<int> operands;  ///< empty: a constant
    Bits bits = 0;              ///< of the constant
  };
  std::vector<DType> params;
  std::vector<Step> steps;
  std::vector<int> results;

  [[nodiscard]] DType type(int value) const;
  // Writing one:
  int constant(DType type, Bits bits);
  int apply(Op op, std::vector<int> operands);  ///< result type from the operands
  int convert(int value, DType type);
};

struct QuickFold;

struct Fold {
  std::string name;             ///< "sum.f32"; equal names are equal folds
  std::vector<DType> operands;  ///< of one element
  /// Of the values, one a launch, that finalize takes behind the state.
  std::vector<DType> given{};
  std::vector<DType> state;
  std::vector<Bits> init;  ///< the identity of merge, a value a state field
  /// The state is (count, mean, sum of squared deviations from the mean), in f64; of i64 the mean
  /// is two fields, a base and what is to be added to it.
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
  /// Where lift(x) merged with lift(y) is lift(x op y) up to rounding: elements of a tile may be
  /// combined by this one operation first. `identity` is its neutral element.
  std::optional<Op> tile;
  Bits tile_identity = 0;
  bool linear = false;  ///< a sum: may go through a matrix instruction
  /// What `tile`, `accumulate` and moments give holds as long as it is below a limit: the value, or
  /// this field of the state, in absolute terms (NaN is not). Where it is not, elements are to be
  /// lifted and merged one by one (by_elements), which holds always.
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
  /// operands -> boolean: whether they serve such an element, where a total is asked whether it
  /// holds, and where none is.
  Lambda serves, serves_alone;
  /// For scans: from what comes before, below the limit, each result is the same up to rounding.
  /// What elements leave behind them may not be.
  Fold scans;
  /// state, given -> a state of `scans`, of what comes before elements, so that nothing is given to
  /// it any more; its field that tells what is below the limit.
  Lambda narrow;
  int field = 0;
  double limit = 0;
  /// What the state of all elements has besides that of `scans`: commutative, without results.
  Fold rest;
  /// States of `scans` and of `rest` -> whether they hold (boolean), and the state they are then.
  Lambda holds, widen;
};

/// Sum in `type` (a sum_type, or i32 for the low bits of one). Integers wrap. Sums of f32 have
/// states of one f64, and a second result, the same before it is rounded to f32. Those of f64 are
/// pairs (high, low) by TwoSum (Knuth), so merging n of them costs a rounding error that does not
/// grow with n (to first order): one of elements up to 2^900, and one of those above, scaled, so
/// that no sum of a part leaves the range. A value by itself is added to low first, as Kahan (1965)
/// does: one rounding of the value, and then high takes it by TwoSum, whatever the two's
/// magnitudes.
Fold make_sum(DType type);
/// The same for scans: of f64 without what sums need whose parts leave its range.
Fold make_running_sum(DType type);
/// The mean of f64: states (count, high, low) whose high + low is the exact sum to twice an f64's
/// digits, element by element (Knuth's TwoSum), so that the mean is rounded once but for an error
/// of n * 2^-106 of the elements' absolute mean. NaN of nothing.
Fold make_mean();
/// A fold of the same states that takes its elements by lift and merge alone.
Fold by_elements(Fold fold);
/// Smallest or largest; of nothing: +inf or -inf, or the type's largest or smallest value. NaN
/// wins.
Fold make_min(DType type);
Fold make_max(DType type);
/// Whether any or all elements are true; of nothing: false, true.
Fold make_any();
Fold make_all();
/// The sum of squared deviations from the mean over the count (population variance) in `type` (f32
/// or f64), or in f64 of i64: states (count, mean, M2) merged by Chan, Golub and LeVeque's formula
/// (1979) in f64, where the mean of i64 and f64 is one of them and a difference from it. Of
/// nothing: NaN. That of f32 has a second result, the same in f64.
Fold make_variance(DType type);
/// The root of the variance of f64, whatever the variance: deviations are counted in units.
Fold make_deviation();
/// Two variables in one type (f32, f64 or i64): their covariance over the count and their
/// correlation, within [-1, 1], in f64. NaN of nothing, and the correlation where one variable has
/// one value alone. States (count, means, sums of products of deviations) are merged pairwise
/// (Chan, Golub and LeVeque, 1979), in f64; f64 and i64 from the first element on, deviations of
/// f64 in units, so that a correlation does not leave the range on its way.
Fold make_comoments(DType type);
/// The skewness and the excess kurtosis of a population in f64: sums of powers of deviations up to
/// the fourth, merged pairwise (Pebay, "Formulas for robust, one-pass parallel computation of
/// covariances and arbitrary-order statistical moments", 2008, section 2.1), as above. NaN where
/// all values are the same.
Fold make_shape(DType type);

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

/// How a recurrence runs: from the last element to the first, from a given value before all.
struct RecurrenceForm {
  bool reverse = false, initial = false;
};
/// The recurrence y = a y + x of the operands (a, x) in `type` (f32 or f64), from 0 or the given
/// value on; of nothing that value. A state is the product of its elements' a and the y that they
/// come to from 0 (Blelloch, "Prefix sums and their applications", 1990, section 1.4), f64 in f32,
/// and pairs of f64 in f64. Both have an exponent of their own, so that no product overflows, nor
/// is an infinity multiplied by 0: of n elements whose exact y is below the type's largest number
/// it is within 2 u of the sum over j of |a_n ... a_(j+1) x_j|, and half the smallest number, as
/// long as that sum is below an f64's largest one.
Fold make_recurrence(DType type, const RecurrenceForm& form);

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

/// Evaluates a Lambda on scalars with base/ops.hpp's definition.
std::vector<Bits> evaluate(const Lambda& lambda, std::span<const Bits> arguments);
std::string print(const Fold& fold);

}  // namespace chainfold::codegen
