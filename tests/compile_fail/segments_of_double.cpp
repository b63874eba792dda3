// expect: chainfold: the segment size is an integer
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::segments(64.0);
#else
  (void)cf::segments(64);
#endif
}
