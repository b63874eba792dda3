// expect: chainfold: this expression has more than 2000 nodes; write .auto part = cf::let
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

template <int N, class E>
auto doubled(const E& e) {
  if constexpr (N == 0) {
    return e;
  } else {
    return doubled<N - 1>(e + e);
  }
}

int main() {
  auto x = cf::input<float>("x");
  auto large = doubled<9>(x);  // 1023 nodes
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)(large + large);
#else
  auto part = cf::let(large);
  (void)(part + part);
#endif
}
