// expect: chainfold: run names the types of the outputs
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<float> samples(8);
  [[maybe_unused]] cf::Kernel* kernel = nullptr;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)kernel->run({{"x", samples}});
#else
  (void)sizeof(kernel->run<float>({{"x", samples}}));
#endif
}
