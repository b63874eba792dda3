// expect: chainfold: the elements of this range do not lie side by side
#include <list>
#include <vector>
#include "chainfold/chainfold.hpp"

namespace cf = chainfold;

int main() {
  std::list<float> scattered(8);
  std::vector<float> samples(8);
#ifndef CHAINFOLD_COMPILE_FAIL_CONTROL
  (void)cf::Binding("x", scattered);
#else
  (void)cf::Binding("x", samples);
#endif
}
