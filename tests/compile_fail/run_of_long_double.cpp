// expect: chainfold: long double is no element type; use double
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<double> x(8);
  [[maybe_unused]] cf::Kernel* kernel = nullptr;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)kernel->run<long double>({{"x", x}});
#else
  (void)sizeof(kernel->run<double>({{"x", x}}));
#endif
}
