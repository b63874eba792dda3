// PathBounds: where the segments of a merge path come from, offsets that a launch is given or heads
// that it finds. Either way an array of offsets is there before the first launch that folds. Head
// tiles do without, and have PathRows alone.
#pragma once

#include <memory>

#include "chainfold/codegen/base/size_expr.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/segment_bounds.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// The buffer of LaunchStatus, and the parameter of whether it is asked for.
struct StatusParams {
  int status = 0, has_status = 0;
};
StatusParams declare_status(Program& program);

/// How many segments there are, and for how many of their values outputs have room.
class PathRows {
 public:
  PathRows() = default;
  PathRows(const PathRows&) = delete;
  PathRows& operator=(const PathRows&) = delete;
  virtual ~PathRows() = default;

  /// How many segments there are, uniform i64. Read by launches behind those that find it out.
  virtual ValueId segments(Builder& b) = 0;
  /// Values that output `o` has room for, uniform i64; kNoValue: as many as there are segments.
  virtual ValueId room(Builder& b, std::size_t o) = 0;
  /// Writes LaunchStatus where it is asked for, by the first of block 0's `warps` warps.
  void tell(Builder& b, const StatusParams& status, int warps);

 protected:
  virtual void write_status(Builder& b, int status) = 0;
};

class PathBounds : public PathRows {
 public:
  [[nodiscard]] virtual BoundBuffers buffers() const = 0;
  /// Segments, at most: what is known before the launch.
  [[nodiscard]] virtual SizeExpr most_segments() const = 0;
  /// Appends the launches that come before those that fold.
  virtual void lower() = 0;
  /// Whether bounds are as they have to be, uniform boolean.
  virtual ValueId are_right(Builder& b) = 0;
};

/// Declares buffers, parameters and scratch behind the program's others. `elements` is a parameter.
std::unique_ptr<PathBounds> declare_path_bounds(Program& program, const Graph& graph,
                                                const Plan& plan, int elements);
std::unique_ptr<PathBounds> declare_offsets(Program& program, const Graph& graph, const Plan& plan,
                                            int elements);
std::unique_ptr<PathBounds> declare_heads(Program& program, const Graph& graph, int elements);

}  // namespace chainfold::codegen
