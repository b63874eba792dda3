// expect: chainfold: this is no element type; element types are
#include <cstdint>
#include <string>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input<std::string>("x");
#else
  (void)cf::input<std::uint8_t>("x");
#endif
}
