// Choices of the published strategies for tests: each with several decisions, on sizes that fill no
// square, warp or block.
#pragma once

#include <cstdint>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace chainfold::test {

struct PublishedCase {
  const char* plan;
  std::int64_t segment;              ///< 0: the whole
  std::vector<std::int64_t> counts;  ///< segments, or elements of the whole
  bool loose = false;                ///< needs Accuracy::as_published
  bool offsets = false;              ///< offsets tell the segments; counts are of elements

  [[nodiscard]] dsl::Partition partition() const;
};
const std::vector<PublishedCase>& published_cases();

}  // namespace chainfold::test
