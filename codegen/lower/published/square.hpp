// Squares: what the lowerings of the published strategies share. A square is 16 columns of 16
// elements. A lane holds four elements of columns 0 to 7 and four of columns 8 to 15. The columns'
// sums are two C fragments whose rows are all alike.
#pragma once

#include <functional>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"

namespace chainfold::codegen {

/// A square's elements: two vectors of four a lane.
struct SquareData {
  ValueId left, right;
};
/// V = P * A + C: two accumulators.
struct SquareSums {
  ValueId left, right;
};

class SquareLowering {
 public:
  static constexpr int kRun = 16, kSquare = 256;

  /// Must be made outside of loops and branches.
  SquareLowering(Builder& builder, const Graph& graph, const Plan& plan);

  [[nodiscard]] TileLowering& tile() { return tile_; }

  /// The 256 elements from `first` on, `width` (1 to 8) a load; nothing where `mask` (a uniform
  /// boolean) is false. Which element lies in which column is free, so loads are contiguous.
  SquareData load_run(int buffer, ValueId first, int width, ValueId mask = kNoValue);
  /// Those of them that lie before `limit`, zeros for the others.
  SquareData load_ragged(int buffer, ValueId first, ValueId limit);
  /// Column c is the 16 elements from first + c * stride on; `width` is 1 to 4. Masks are of lanes;
  /// lane l holds elements of columns l / 4 and 8 + l / 4.
  SquareData load_columns(int buffer, ValueId first, std::int64_t stride, int width,
                          const SquareData& masks);

  SquareSums none();
  /// P * data + c.
  SquareSums multiply(const SquareData& data, const SquareSums& c);
  /// The products of a chain: all of `data`, one accumulator.
  SquareSums chain(const std::vector<SquareData>& data, std::size_t first, std::size_t links);
  /// V * P^T + c as a C fragment that holds the sum of V's columns everywhere. V is rounded.
  ValueId second_product(const SquareSums& v, ValueId c);
  ValueId zero_fragment();

  /// The square's sum, not yet added up across the four lanes of a quad where lanes do that.
  Partials total(const SquareSums& v);
  /// Every lane receives the sum over the quad's lanes.
  Partials across_quads(Partials partials);
  /// Lane p receives column p's sum of squares[p / 16].
  Partials columns(const std::vector<SquareSums>& squares);

  using Load = std::function<SquareData(ValueId index, ValueId mask)>;
  using Flush = std::function<Partials(const SquareSums&)>;
  /// The squares lo, lo + stride, ... below hi, in chains as the plan says; each chain's sums go
  /// through `flush`. Indices from hi on are masked (`masked`: there may be such).
  Partials add_up(ValueId lo, ValueId hi, std::int64_t stride, bool masked, const Load& load,
                  const Flush& flush);

  /// The loop beneath: `body(at, count, carried)` takes the indices at, at + stride, ... .
  using Body = std::function<Builder::Values(ValueId, int, const Builder::Values&)>;
  Builder::Values rounds(ValueId lo, ValueId hi, std::int64_t stride, const Builder::Values& init,
                         const Body& body);

 private:
  Builder& b_;
  const Plan& plan_;
  TileLowering tile_;
  int row_index_;
  const MmaRow& row_;
  ValueId ones_;  // elements of a B fragment of ones
};

/// A program with a launch, its grid and the parameter that the strategy needs.
Program start_program(const Graph& graph, const Plan& plan, const Target& target, ParamRole role,
                      int& param);
/// The name of a strategy's kernel: "fold_single_pass".
std::string kernel_name(const Plan& plan);
/// The number of a warp among the `warps` of each block that begin at `first`.
ValueId warp_of_grid(Builder& b, int warps, int first = 0);
/// Stores the outputs of finished partials, lane l's at element first + l of each.
void store_outputs(Builder& b, const Graph& graph, TileLowering& tile, const Partials& partials,
                   ValueId first, ValueId extent, ValueId mask);

}  // namespace chainfold::codegen
