// expect: chainfold: arithmetic and order are not defined on bool
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto b = cf::input<bool>("b");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(b < b);
#else
  (void)(b != b);
#endif
}
