// expect: chainfold: std::uint64_t and a signed integer have no common type; cast one of them
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
  auto u = cf::input<std::uint64_t>("u");
  auto i = cf::input<std::int32_t>("i");
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(i < u);
#else
  (void)(i < cf::cast<std::int64_t>(u));
#endif
}
