// HeadChunks: how many segments begin in each chunk of elements, where a condition tells.
//
// A first launch counts the heads of each chunk, and a second one says how many come before each.
// Where asked for, they tell as well in which chunk the last of those is (`begun`), and where a
// chunk's first and last head is (`places`).
#pragma once

#include <vector>

#include "chainfold/codegen/base/size_expr.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/path_bounds.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

class HeadChunks final : public PathRows {
 public:
  /// Rows of elements that a warp has under way: of bytes, fewer leave memory idle.
  static constexpr int kRows = 16;

  /// Chunks of `length` elements, a parameter. `elements` and `chunks` are such, too. `begun`,
  /// `places`: what is told beside counts.
  HeadChunks(Program& program, const Graph& graph, int elements, int length, int chunks, bool begun,
             bool places);

  /// Appends the two launches.
  void lower();
  ValueId segments(Builder& b) override { return b.load_uniform(total_, b.i64(0)); }
  ValueId room(Builder& b, std::size_t o) override { return b.param(rooms_[o]); }
  void write_status(Builder& b, int status) override;

  struct Chunk {
    ValueId begin = kNoValue, end = kNoValue;  ///< of its elements that exist, uniform i64
  };
  /// That of a launch's block.
  Chunk chunk_of(Builder& b);
  /// Heads before a chunk (uniform i64), and those of it.
  ValueId heads_before(Builder& b, ValueId chunk) { return b.load_uniform(before_, chunk); }
  ValueId heads_of(Builder& b, ValueId chunk) { return b.load_uniform(counts_, chunk); }
  /// Where told, the last chunk before this one that has heads; -1: there is none.
  ValueId begun_in(Builder& b, ValueId chunk) { return b.load_uniform(begun_in_, chunk); }
  /// Where told, the place of a chunk's first head, and that of the last one before the chunk; -1:
  /// there is none.
  ValueId first_of(Builder& b, ValueId chunk) { return b.load_uniform(firsts_, chunk); }
  ValueId last_before(Builder& b, ValueId chunk);

 private:
  void lower_count();
  void lower_place();

  Program& program_;
  const Graph& graph_;
  std::vector<int> rooms_;
  int elements_, length_, chunks_;
  bool begun_, places_;
  int counts_ = 0, before_ = 0, total_ = 0, begun_in_ = 0, firsts_ = 0, lasts_ = 0;
};

}  // namespace chainfold::codegen
