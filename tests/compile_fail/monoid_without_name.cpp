// expect: chainfold: cf::monoid takes a name, the initial state, lift, merge and finalize
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto lift = [](auto v) { return cf::fields(v); };
  auto add = [](auto a, auto b) { return cf::fields(cf::get<0>(a) + cf::get<0>(b)); };
  auto end = [](auto s) { return cf::get<0>(s); };
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::monoid(cf::state<float>(0), lift, add, end);
#else
  (void)cf::monoid("m", cf::state<float>(0), lift, add, end);
#endif
}
