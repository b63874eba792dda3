// expect: chainfold: the number of columns is an expression
#include <cstdint>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  auto columns = cf::input<std::int32_t>("columns");
  (void)columns;
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::columns(columns);
#else
  (void)cf::columns(cf::param<std::int64_t>("C"));
#endif
}
