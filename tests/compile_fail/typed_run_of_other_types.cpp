// expect: chainfold: the call names other output types than the expression has
#include <cstdint>
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<float> samples(8);
  [[maybe_unused]] cf::TypedKernel<float, std::int64_t>* kernel = nullptr;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)kernel->run<double, std::int64_t>({{"x", samples}});
#else
  (void)sizeof(kernel->run<float, std::int64_t>({{"x", samples}}));
  (void)sizeof(kernel->run({{"x", samples}}));
#endif
}
