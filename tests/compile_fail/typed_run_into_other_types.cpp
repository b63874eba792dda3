// expect: chainfold: the call names other output types than the expression has
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
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  kernel->run_into({{"x", samples}}, wrong, counts);
#else
  using Into = decltype(kernel->run_into({{"x", samples}}, means, counts));
  static_assert(std::is_same_v<Into, std::int64_t>);
#endif
}
