// expect: chainfold: an element type is missing; name it
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::param("k");
#else
  (void)cf::param<float>("k");
#endif
}
