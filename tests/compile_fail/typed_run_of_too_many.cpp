// expect: chainfold: the call names another number of outputs
#include <cstdint>
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<float> samples(8);
  [[maybe_unused]] cf::TypedKernel<float, std::int64_t>* kernel = nullptr;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)kernel->run<float>({{"x", samples}});
#else
  (void)sizeof(kernel->run<float, long>({{"x", samples}}));
#endif
}
