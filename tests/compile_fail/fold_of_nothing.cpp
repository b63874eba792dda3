// expect: chainfold: cf::fold of a monoid alone
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto total = cf::monoid(
      "total", cf::state<float>(0), [](auto v) { return cf::fields(v); },
      [](auto a, auto b) { return cf::fields(cf::get<0>(a) + cf::get<0>(b)); },
      [](auto s) { return cf::get<0>(s); });
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::fold(total);
#else
  (void)cf::fold(total, x);
#endif
}
