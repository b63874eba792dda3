// expect: chainfold: long double is no element type; use double
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::vector<long double> wide(8);
  std::vector<double> samples(8);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::Bindings{{"x", wide}};
#else
  (void)cf::Bindings{{"x", samples}};
#endif
}
