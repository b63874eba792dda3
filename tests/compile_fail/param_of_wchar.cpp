// expect: chainfold: a character is no element type
#include <cstdint>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::param<wchar_t>("k");
#else
  (void)cf::param<std::int32_t>("k");
#endif
}
