// expect: chainfold: cf::compile takes what cf::over returns
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::compile(cf::sum(x));
#else
  (void)cf::compile(cf::over(cf::whole(), cf::sum(x)));
#endif
}
