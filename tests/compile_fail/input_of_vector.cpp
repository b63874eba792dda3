// expect: chainfold: a range of data is no element type
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input<std::vector<float>>("x");
#else
  (void)cf::input<float>("x");
#endif
}
