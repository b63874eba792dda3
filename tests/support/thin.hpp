// How many shapes a test goes through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace chainfold::test {

/// 1, or 5 under a sanitizer, where a test takes ten times as long: loops over shapes then take
/// every fifth, which cycles of two, three or four shapes have no divisor in common with. Results
/// are held against references by the builds without one; what a sanitizer looks for lies on paths
/// that a fifth of the shapes, spread over all of them, takes as well.
#if defined(CHAINFOLD_TEST_SANITIZED)
inline constexpr std::size_t kThin = 5;
#else
inline constexpr std::size_t kThin = 1;
#endif

/// Whether a loop's turn is one of those that are taken.
constexpr bool is_taken(std::int64_t turn) { return turn % static_cast<std::int64_t>(kThin) == 0; }

/// Of so many shapes drawn at random.
constexpr int thinned(int runs) { return runs / static_cast<int>(kThin); }

/// Of a test's parameters.
template <typename T>
std::vector<T> thinned(std::initializer_list<T> all) {
  std::vector<T> taken;
  for (std::size_t i = 0; i < all.size(); i += kThin) taken.push_back(all.begin()[i]);
  return taken;
}

}  // namespace chainfold::test
