// expect: chainfold: cf::over needs at least one output
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::over(cf::whole());
#else
  (void)cf::over(cf::whole(), cf::count());
#endif
}
