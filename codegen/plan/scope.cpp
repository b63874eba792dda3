// What each strategy serves, in words. The rules themselves are in make_plan() and the place_*()
// functions that it calls; tests hold these sentences against them.
#include "chainfold/codegen/plan/scope.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"

namespace chainfold::codegen {

namespace {

struct Scope {
  Strategy strategy;
  std::string_view serves;
};

/// Our own; those of the papers are in the tables of choose_published*.cpp.
constexpr Scope kOwn[] = {
    {Strategy::rows,
     "folds over segments of one element and more, of any types, strides and alignment, on every "
     "target: rows are segments that a group of lanes takes at once, lanes share one (0: as many "
     "as one load of it has; fewer on CPUs alone, where the segment is one batch of loads and "
     "the fold needs no order), depth is loads of a segment under way; with mma, on GPUs, sums "
     "and sums of products of cf::f16, cf::bf16, double and 8-bit integers without a filter are "
     "added up by "
     "tensor cores where loads fill their operands"},
    {Strategy::elements,
     "folds over segments of one element that lie side by side, of any types and alignment, on "
     "GPUs: depth is loads of a lane, each of several segments"},
    {Strategy::parts,
     "folds over segments of any size and over the whole input, of any types, strides and "
     "alignment, on every target: parts is how many blocks' shares all segments are cut into, as "
     "far as their size allows, whose states a second launch merges; cluster, if it is not 0, is "
     "the same number, of blocks that merge those of each segment in one launch (sm_90 and "
     "later); mma as of rows, but not for double"},
    {Strategy::staged,
     "folds that read an input, over segments of 1 to 8192 elements without strides, of any "
     "types and alignment, on GPUs that copy to shared memory beside other work (sm_80 and "
     "later): lanes share a segment (at most 256 elements each; of folds in order one or 32, "
     "unless each lane has one element), rows are segments that a group of lanes takes at once, "
     "stages tiles of a warp in shared memory, burst tiles whose results are stored together (no "
     "fewer than stages), late rounds of a block that starts late (up to burst), blocks those "
     "that a processor holds; tiles have 256 bytes at least, and all of it has to fit into "
     "shared memory"},
    {Strategy::columns,
     "folds over columns of a matrix, any number of them, of any types, strides and alignment, "
     "on every target, and is the only one that does: runs are loads side by side of a warp, "
     "depth rows under way (64 loads in all), parts those that rows are cut into, whose states a "
     "second launch merges; phases are of GPUs, of one input and folds without order, strip is "
     "of CPUs; states that warps exchange have to fit into shared memory"},
    {Strategy::scan_tile,
     "scans in any direction over segments that fit into the rows of a warp, of any types, without "
     "strides, on every target: depth is rows of a load of every lane, which hold less where "
     "alignment makes loads narrow"},
    {Strategy::scan_run,
     "scans in one direction over segments of any size, on CPUs over the whole input as well, of "
     "any types and alignment, without strides, on every target: a warp takes segments one by "
     "one, depth rows at once"},
    {Strategy::scan_block,
     "scans in any direction over segments that fit into the rows of a block, of any types, "
     "without strides, on GPUs: these are warps (any number) times depth, each of a load of "
     "every lane, and hold less where alignment makes loads narrow; what elements are told of "
     "several segments a block has to fit into shared memory"},
    {Strategy::look_back,
     "scans in one direction whose values need no fold of their whole segment, over segments of "
     "any size or the whole input, of any types and alignment, without strides, on every target: "
     "tiles wait for those before them; tile is 0 on GPUs, whose tiles are warps times depth "
     "rows, and 1024 elements of a tile on CPUs; staged of these rows come through shared memory "
     "(sm_80 and later), heads=1 has tiles of all segments (GPUs), near is groups of tiles "
     "looked at one by one, across (2 and more) segments of several tiles that are taken in turn "
     "(GPUs), blocked=1 has lanes scan their own part of a whole run, of one input and one output "
     "of elements of its type, and no more rows beside the staged ones than these (sm_90 and "
     "later)"},
    {Strategy::look_ahead,
     "scans in one direction whose values need no fold of their whole segment, of an input, over "
     "segments of any size or the whole input, of any types and alignment, without strides, on "
     "CPUs and on GPUs that copy to shared memory beside other work (sm_80 and later): on GPUs "
     "depth is rows of a tile, stages tiles in shared memory, blocks those that a processor "
     "holds, and all of it has to fit; on CPUs depth is rows at once, tile 1024 elements of a "
     "tile, near groups of tiles looked at one by one, stages (2 and more) one more than the "
     "tiles that a thread takes before it scans one, blocks those of a thread"},
    {Strategy::propagate,
     "scans in any direction over segments of any size or the whole input, of any types and "
     "alignment, without strides, on every target: tile is 0 on GPUs and of both directions, "
     "where tiles are warps times depth rows, and else 1024 elements of a tile; direct=1 has two "
     "launches instead of three (GPUs, scans in one direction whose values need no fold of their "
     "whole segment)"},
};

}  // namespace

std::string scope_of(Strategy strategy) {
  if (is_published(strategy)) return what_serves(strategy);
  if (is_published_scan(strategy)) return what_serves_scan(strategy);
  const auto* row = std::find_if(std::begin(kOwn), std::end(kOwn),
                                 [&](const Scope& known) { return known.strategy == strategy; });
  if (row == std::end(kOwn)) return {};
  return fmt::format("{} serves {}", name_of(strategy), row->serves);
}

}  // namespace chainfold::codegen
