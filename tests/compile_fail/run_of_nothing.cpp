// expect: chainfold: data is bound by the name of its input
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<float> samples(8);
  [[maybe_unused]] cf::Kernel* kernel = nullptr;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)kernel->run<float>();
#else
  (void)sizeof(kernel->run<float>({{"x", samples}}));
#endif
}
