#include <chainfold/chainfold.hpp>
#include <cstdio>
#include <vector>

namespace cf = chainfold;

int main() {
  std::vector<cf::f16> samples;
  for (int i = 0; i < 4 * 64; ++i) samples.emplace_back(i % 2 == 0 ? 3.0f : -1.0f);
  auto x = cf::input<cf::f16>("x");
  auto frames = cf::over(cf::segments(64), cf::mean(x), cf::sqrt(cf::mean(x * x)));
  cf::Kernel kernel = cf::compile(frames);
  auto [mean, rms] = kernel.run<float, float>({{"x", samples}});
  for (std::size_t i = 0; i < mean.size(); ++i)
    std::printf("mean %.3f rms %.3f\n", mean[i], rms[i]);
}
