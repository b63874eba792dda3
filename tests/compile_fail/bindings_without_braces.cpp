// expect: chainfold: bindings are a list, each in braces of its own
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<float> samples(8);
  [[maybe_unused]] cf::Kernel* kernel = nullptr;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)kernel->run<float>({"x", samples});
#else
  (void)sizeof(kernel->run<float>({{"x", samples}}));
#endif
}
