// expect: chainfold: this function is of floating-point expressions; cast the
// integer first
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto i = cf::input<std::int32_t>("i");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::sqrt(i);
#else
  (void)cf::sqrt(cf::cast<float>(i));
#endif
}
