// expect: chainfold: a binding of a temporary array
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  const auto samples = [] { return std::vector<float>(8); };
  const std::vector<float> kept = samples();
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  cf::Bindings bindings{{"x", samples()}};
  (void)bindings;
#else
  cf::Bindings bindings{{"x", kept}};
  (void)bindings;
  (void)cf::CallBindings{{"x", samples()}};
#endif
}
