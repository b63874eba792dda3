// What the outputs of a graph must be, by a way of its own: element by element with
// codegen::evaluate, float sums and variances in MPFR, everything else bit by bit in order.
// Lowerings, plans' strategies and executors have no part in it; a plan only tells its error
// bounds.
//
// A float that the library may round is an interval: a sum may lie within error_bound_u units of
// 2^-24 (f64: 2^-53) times the sum of absolute terms of the exact one, a variance within the
// first-order bound of pairwise updating (Chan, Golub and LeVeque 1979). What is computed from such
// values is evaluated at the intervals' corners with codegen::evaluate; all operations of the
// language round monotonically, so the result lies between the corners' results and no slack is
// added. A derived value without such a rule is an error of the test, not a pass.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/tests/support/data.hpp"

namespace chainfold::test {

/// What one value of one output must be.
struct Expected {
  DType type = DType::f32;
  bool any = false;            ///< nothing is promised: intermediate sums may overflow
  bool nan = false;            ///< a NaN of whatever payload
  bool interval = false;       ///< floats in [lo, hi]; else exactly `bits`
  bool positive_zero = false;  ///< a zero must be +0
  Bits bits = 0;
  double lo = 0, hi = 0;
  // Where the output is a float sum itself, its error can be measured:
  bool is_sum = false;
  double exact = 0, exact_low = 0;  ///< the sum is exact + exact_low
  double sum_abs = 0;
};

struct ReferenceRequest {
  std::int64_t segment = 0;    ///< elements a segment, or columns; 0: all are one segment
  std::vector<Bits> params{};  ///< one a parameter of the graph
  codegen::Plan plan{};        ///< of full segments: its error bounds
  codegen::Plan tail_plan{};   ///< of a shorter last segment
  /// Where offsets tell the segments: [begin, end) of each. They are all of one plan.
  std::vector<std::pair<std::int64_t, std::int64_t>> ragged{};
  int transcendental_ulp = 0;  ///< what exp, log and pow of the executor may deviate
};

/// A plan of `graph`, codegen::legalize of what was written, as one of that: the bounds of the
/// folds that both have. What is computed by others is exact.
codegen::Plan as_written(codegen::Plan plan, const codegen::Graph& graph,
                         const codegen::Graph& written);

/// Of a graph that the reference cannot judge: what a float that may be rounded another way
/// decides.
class NoRule : public std::logic_error {
  using std::logic_error::logic_error;
};

/// values[output][segment], or [element] where an output has one value an element, of inputs
/// without gaps, whose columns follow the graph's partition; the last segment may be shorter. A
/// plan's error bound of a scan holds for every element. Throws NoRule for a graph that it cannot
/// judge.
std::vector<std::vector<Expected>> reference(const codegen::Graph& graph,
                                             const std::vector<Column>& inputs,
                                             std::int64_t elements,
                                             const ReferenceRequest& request);

/// Empty if `actual` is as expected, else what is wrong with it.
std::string mismatch(const Expected& expected, Bits actual);

/// |s' - s| / sum|x| of a sum in units of 2^-24 (f64: 2^-53); 0 for an exact one.
double error_in_u(const Expected& expected, Bits actual);

/// Compares whole outputs: the first few mismatches in words, empty if there are none.
/// `unchecked` counts values of which nothing is promised.
struct Verdict {
  std::string problems;
  std::int64_t values = 0, unchecked = 0;
  double worst_u = 0;  ///< the largest error_in_u among sums
};
Verdict judge(const std::vector<std::vector<Expected>>& expected,
              const std::vector<Column>& actual);

}  // namespace chainfold::test
