// expect: chainfold: cf::logsumexp needs a floating-point expression
#include "chainfold/dsl/input.hpp"
#include "chainfold/dsl/monoid.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::logsumexp(cf::cast<std::int32_t>(x));
#else
  (void)cf::logsumexp(x);
#endif
}
