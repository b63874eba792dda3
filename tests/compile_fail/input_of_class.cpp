// expect: chainfold: this is no element type; element types are
#include <utility>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::input<std::pair<float, float>>("x");
#else
  (void)cf::input<float>("x");
#endif
}
