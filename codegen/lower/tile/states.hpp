// StateArrays: where states of all folds lie in memory, an array a field. The arrays are buffers of
// the program or shared arrays of a launch, side by side in the order of the folds' fields.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

class StateArrays {
 public:
  enum class Memory : std::uint8_t { global, shared };
  StateArrays() = default;
  /// `first`: the number of the first field's array.
  StateArrays(Memory memory, int first) : memory_(memory), first_(first) {}
  /// Shared arrays of the program's last launch, `length` elements each.
  static StateArrays in_shared(Program& program, const Graph& graph, const std::string& name,
                               int length);

  void store(Builder& b, TileLowering& tile, const Address& at, const Partials& states,
             ValueId mask) const;
  /// The same by one lane, of states that are equal in all.
  void store_one(Builder& b, TileLowering& tile, ValueId at, const Partials& states) const;
  void store(Builder& b, TileLowering& tile, std::size_t fold, const Address& at,
             const Partial& state, ValueId mask) const;
  /// A state a lane, identities where `mask` is false.
  [[nodiscard]] Partial load(Builder& b, TileLowering& tile, std::size_t fold, const Address& at,
                             ValueId mask = kNoValue) const;
  [[nodiscard]] Partials load(Builder& b, TileLowering& tile, const Address& at,
                              ValueId mask = kNoValue) const;
  /// Every lane receives the states at `at`.
  [[nodiscard]] Partials load_one(Builder& b, TileLowering& tile, ValueId at,
                                  ValueId mask = kNoValue) const {
    return load(b, tile, {.base = at, .group = 1, .stride = 0}, mask);
  }
  /// The same as uniform values, from global memory; identities where `mask` (uniform) is false.
  [[nodiscard]] Partials load_uniform(Builder& b, TileLowering& tile, ValueId at,
                                      ValueId mask) const;

 private:
  /// The number of a fold's first array.
  [[nodiscard]] int array_of(const Graph& graph, std::size_t fold) const;

  Memory memory_ = Memory::global;
  int first_ = 0;
};

}  // namespace chainfold::codegen
