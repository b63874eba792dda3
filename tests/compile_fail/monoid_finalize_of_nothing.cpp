// expect: chainfold: a monoid's finalize must return one expression
#include "chainfold/dsl/input.hpp"
#include "chainfold/dsl/monoid.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto x = cf::input<float>("x");
  auto lift = [](auto v) { return cf::fields(v); };
  auto add = [](auto a, auto b) { return cf::fields(cf::get<0>(a) + cf::get<0>(b)); };
  auto end = [](auto s) { return cf::get<0>(s); };
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::monoid("m", cf::state<float>(0), lift, add, [](auto) {});
#else
  (void)cf::monoid("m", cf::state<float>(0), lift, add, end);
#endif
}
