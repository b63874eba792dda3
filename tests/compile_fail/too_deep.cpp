// expect: chainfold: more than 256 operations of this expression lie inside one another
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

template <int N, class E>
auto longer(const E& e) {
  if constexpr (N == 0) {
    return e;
  } else {
    return longer<N - 1>(-e);
  }
}

int main() {
  auto x = cf::input<float>("x");
  auto deep = longer<255>(x);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)-deep;
#else
  (void)-cf::let(deep);
#endif
}
