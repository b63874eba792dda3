// expect: chainfold: an output is written into an array of constants
#include <cstdint>
#include <type_traits>
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<float> samples(8);
  [[maybe_unused]] cf::TypedKernel<float, std::int64_t>* kernel = nullptr;
  std::vector<float> means(8);
  std::vector<double> wrong(8);
  std::vector<std::int64_t> counts(8);
  const std::vector<float>& fixed = means;
  (void)fixed;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  kernel->run_into({{"x", samples}}, fixed, counts);
#else
  using Into = decltype(kernel->run_into({{"x", samples}}, means, counts));
  static_assert(std::is_same_v<Into, std::int64_t>);
#endif
}
