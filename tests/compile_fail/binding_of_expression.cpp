// expect: chainfold: a binding is a name with a contiguous range
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  std::vector<float> samples(8);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::Bindings{{"x", x}};
#else
  (void)cf::Bindings{{"x", samples}};
#endif
}
