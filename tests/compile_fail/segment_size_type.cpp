// expect: chainfold: the segment size must be a cf::param<std::int64_t> or <std::int32_t>
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/over.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::segments(cf::param<float>("S"));
#else
  (void)cf::segments(cf::param<std::int64_t>("S"));
#endif
}
