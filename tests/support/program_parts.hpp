// What the lists of test programs share.
#pragma once

#include <vector>

#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {

using P = dsl::Partition;
using Programs = std::vector<TestProgram>;

inline const std::vector<Fill> kFloatFills{Fill::uniform,     Fill::normal,    Fill::whole,
                                           Fill::adversarial, Fill::subnormal, Fill::nonfinite};
inline const std::vector<Fill> kIntegerFills{Fill::uniform, Fill::extremes};

template <class T>
constexpr bool kFloat = is_float(kDType<T>);

/// What inputs of one type make sense to be filled with.
template <class T>
const std::vector<Fill>& fills() {
  return kFloat<T> ? kFloatFills : kIntegerFills;
}

}  // namespace chainfold::test
