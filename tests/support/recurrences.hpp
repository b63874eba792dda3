// Linear recurrences whose products leave every range though their results do not, and such that
// are ordinary in most places: what they must be, and how to see it on any executor.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chainfold/tests/support/end_values.hpp"

namespace chainfold::test {

struct RecurrenceCase {
  std::string name;
  /// Of element i of so many: the factor and the value.
  struct Step {
    double factor = 0, value = 0;
  };
  std::function<Step(std::int64_t i)> step;
  double initial = 0;
  /// Every result is one of the type's, or an infinity.
  bool exact = false;
};

const std::vector<RecurrenceCase>& recurrence_cases();

/// `n` elements in f32 or f64, whole or in segments (0: none), forward or backward, by an
/// executor; the first results that are wrong, empty if none is. y is held against a loop in long
/// double: the same where the case is exact, else within 2 u of the absolute sum.
std::string check_recurrence(const RecurrenceCase& what, DType type, std::int64_t n,
                             std::int64_t segment, bool backward, const Executor& executor);

}  // namespace chainfold::test
