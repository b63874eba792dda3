#include "chainfold/bench/peers_std.hpp"

#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <cstring>
#include <execution>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

namespace chainfold::bench::std_peer {
namespace {

#if defined(__FLT16_MAX__)
__extension__ using Half = _Float16;
#endif

/// The upper half of an f32, rounded to nearest even.
struct Bfloat {
  std::uint16_t bits;
  Bfloat() = default;
  explicit(false) Bfloat(float value) {
    std::uint32_t word;
    std::memcpy(&word, &value, sizeof(word));
    bits = static_cast<std::uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  explicit(false) operator float() const {
    const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }
};

template <class State, class In, class Out, class Policy>
void scan(Scan what, Policy&& policy, const In* in, Out* out, std::int64_t n) {
  const auto lift = [](const In& x) { return static_cast<State>(x); };
  const auto larger = [](State a, State b) { return std::max(a, b); };
  if (what == Scan::inclusive_sum) {
    std::transform_inclusive_scan(policy, in, in + n, out, std::plus<State>{}, lift, State{});
  } else if (what == Scan::exclusive_sum) {
    std::transform_exclusive_scan(policy, in, in + n, out, State{}, std::plus<State>{}, lift);
  } else {
    std::transform_inclusive_scan(policy, in, in + n, out, larger, lift, static_cast<State>(in[0]));
  }
}

template <class In, class State, class Out>
bool scan_all(Scan what, const void* in, void* out, std::int64_t segments, std::int64_t length,
              int threads) {
  const In* const x = static_cast<const In*>(in);
  Out* const y = static_cast<Out*>(out);
  if (segments < threads) {
    // GCC's parallel scan begins with State{}, which is no neutral element of the maximum.
    if (what == Scan::inclusive_max) return false;
    for (std::int64_t s = 0; s < segments; ++s)
      scan<State>(what, std::execution::par, x + s * length, y + s * length, length);
    return true;
  }
  static std::vector<std::int64_t> numbers;  // kept: making them takes as long as a scan
  if (static_cast<std::int64_t>(numbers.size()) < segments) {
    numbers.resize(static_cast<std::size_t>(segments));
    std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  }
  std::for_each(std::execution::par, numbers.begin(),
                numbers.begin() + static_cast<std::ptrdiff_t>(segments), [=](std::int64_t s) {
                  scan<State>(what, std::execution::seq, x + s * length, y + s * length, length);
                });
  return true;
}

}  // namespace
}  // namespace chainfold::bench::std_peer

extern "C" bool chainfold_bench_std_scan(chainfold::bench::std_peer::Scan what,
                                         chainfold::bench::openmp::Type type, const void* in,
                                         void* out, std::int64_t segments, std::int64_t length,
                                         int threads) {
  using namespace chainfold::bench;
  using namespace chainfold::bench::std_peer;
  using Control = oneapi::tbb::global_control;
  const Control control(Control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  switch (type) {
#if defined(__FLT16_MAX__)
    case openmp::Type::f16:
      return scan_all<Half, float, Half>(what, in, out, segments, length, threads);
#endif
    case openmp::Type::bf16:
      return scan_all<Bfloat, float, Bfloat>(what, in, out, segments, length, threads);
    case openmp::Type::f32:
      return scan_all<float, float, float>(what, in, out, segments, length, threads);
    case openmp::Type::f64:
      return scan_all<double, double, double>(what, in, out, segments, length, threads);
    case openmp::Type::i32:  // unsigned, so that sums may wrap
      if (what == Scan::inclusive_max) return false;
      return scan_all<std::uint32_t, std::uint32_t, std::uint32_t>(what, in, out, segments, length,
                                                                   threads);
    case openmp::Type::i8:
      return scan_all<std::int8_t, std::int32_t, std::int32_t>(what, in, out, segments, length,
                                                               threads);
    default: return false;
  }
}
