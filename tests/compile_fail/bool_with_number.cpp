// expect: chainfold: a bool and a number have no common type; compare the number
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto b = cf::input<bool>("b");
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(b == x);
#else
  (void)(b == (x > 0));
#endif
}
