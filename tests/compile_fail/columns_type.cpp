// expect: chainfold: the number of columns must be a cf::param<std::int64_t> or <std::int32_t>
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::columns(cf::param<float>("C"));
#else
  (void)cf::columns(cf::param<std::int64_t>("C"));
#endif
}
