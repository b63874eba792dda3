// expect: chainfold: std::complex is no element type; use two inputs
#include <complex>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input<std::complex<float>>("x");
#else
  (void)cf::input<float>("re");
  (void)cf::input<float>("im");
#endif
}
