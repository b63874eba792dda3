// Computations at random: what no list of programs thinks of.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::test {

/// Numbers that follow from a seed, alike everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  /// From 0 to below `count`.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(count));
  }
  std::int64_t from_to(std::int64_t least, std::int64_t most) {
    return least + below(most - least + 1);
  }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(std::size(values)))];
  }
  template <class Values>
  const auto& of(const Values& values) {
    return values[static_cast<std::size_t>(below(std::ssize(values)))];
  }

 private:
  std::mt19937_64 engine_;
};

/// A graph of up to three inputs (of any types; seldom none) and one to three outputs: folds of
/// every kind over expressions of every type, filtered or not, what is computed from them, and, if
/// `scans`, values an element in one or both directions beside them. `params`: one for each
/// parameter of the graph. Of heads the input "begins" tells. `plain`: sums, means and statistics
/// of the inputs alone.
struct RandomGraph {
  codegen::Graph graph;
  std::vector<codegen::Bits> params;
  /// Of plain ones: outputs that are the mean or the norm of all elements of an input.
  struct Plain {
    enum class Kind : std::uint8_t { mean, norm } kind = Kind::mean;
    std::size_t output = 0;
    std::string input;
  };
  std::vector<Plain> plain{};
};
RandomGraph make_random_graph(Dice& dice, bool scans, const codegen::Partition& partition,
                              bool plain = false);

}  // namespace chainfold::test
