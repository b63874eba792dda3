// expect: chainfold: std::vector<bool> holds bits, kernels read bytes
#include <array>
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<bool> bits(8);
  std::array<bool, 8> bytes{};
  [[maybe_unused]] cf::Kernel* kernel = nullptr;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)kernel->run<bool>({{"x", bits}});
#else
  (void)sizeof(kernel->run<bool>({{"x", bytes}}));
#endif
}
