#include "chainfold/codegen/plan/scan_strategies.hpp"

#include <cstddef>
#include <utility>

#include "chainfold/codegen/plan/bound.hpp"
#include "chainfold/codegen/plan/derive_scan.hpp"
#include "chainfold/codegen/plan/print_scan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

namespace {

constexpr PlanField kScan[] = {{"warps", &PlanChoice::warps},
                               {"depth", &PlanChoice::depth},
                               {"blocks", &PlanChoice::occupancy},
                               {"bytes", &PlanChoice::bytes}};
constexpr PlanField kTiles[] = {
    {"warps", &PlanChoice::warps},          {"depth", &PlanChoice::depth},
    {"direct", &PlanChoice::direct, false}, {"tile", &PlanChoice::tile},
    {"blocks", &PlanChoice::occupancy},     {"bytes", &PlanChoice::bytes}};
constexpr PlanField kBack[] = {{"warps", &PlanChoice::warps},
                               {"depth", &PlanChoice::depth},
                               {"staged", &PlanChoice::staged},
                               {"heads", &PlanChoice::heads, false},
                               {"near", &PlanChoice::window, false},
                               {"across", &PlanChoice::interleaved, false},
                               {"blocked", &PlanChoice::blocked, false},
                               {"tile", &PlanChoice::tile},
                               {"blocks", &PlanChoice::occupancy},
                               {"bytes", &PlanChoice::bytes}};
constexpr PlanField kAhead[] = {
    {"warps", &PlanChoice::warps},        {"depth", &PlanChoice::depth},
    {"near", &PlanChoice::window, false}, {"tile", &PlanChoice::tile, false},
    {"stages", &PlanChoice::stages},      {"blocks", &PlanChoice::occupancy},
    {"bytes", &PlanChoice::bytes}};

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  std::vector<double> allowed;
  for (std::size_t f = 0; f < begun.folds.size(); ++f)
    allowed.push_back(
        allowed_error(site.graph, site.target, begun.promises.accuracy, begun.segment, f));
  return make_scan_plan(begun, choice, site.graph, site.target, site.request, allowed);
}

StrategyRow row(Strategy id, std::string_view name, std::span<const PlanField> fields,
                std::string serves) {
  return {.id = id,
          .name = name,
          .serves = std::move(serves),
          .fields = fields,
          .make = make,
          .print = [](const Plan& plan, const Graph& /*graph*/) { return print_scan(plan); },
          .verify = verify_scan};
}

}  // namespace

std::vector<StrategyRow> scan_strategies() {
  return {
      row(Strategy::scan_tile, "scan_tile", kScan,
          "scans in any direction over segments that fit into the rows of a warp, of any types, "
          "without "
          "strides, on every target: depth is rows of a load of every lane, which hold less where "
          "alignment makes loads narrow"),
      row(Strategy::scan_run, "scan_run", kScan,
          "scans in one direction over segments of any size, on CPUs over the whole input as well, "
          "of "
          "any types and alignment, without strides, on every target: a warp takes segments one by "
          "one, depth rows at once"),
      row(Strategy::scan_block, "scan_block", kScan,
          "scans in any direction over segments that fit into the rows of a block, of any types, "
          "without strides, on GPUs: these are warps (any number) times depth, each of a load of "
          "every lane, and hold less where alignment makes loads narrow; what elements are told of "
          "several segments a block has to fit into shared memory"),
      row(Strategy::look_back, "look_back", kBack,
          "scans in one direction whose values need no fold of their whole segment, over segments "
          "of "
          "any size or the whole input, of any types and alignment, without strides, on every "
          "target: "
          "tiles wait for those before them; tile is 0 on GPUs, whose tiles are warps times depth "
          "rows, and 1024 elements of a tile on CPUs; staged of these rows come through shared "
          "memory "
          "(sm_80 and later), heads=1 has tiles of all segments (GPUs), near is groups of tiles "
          "looked at one by one, across (2 and more) segments of several tiles that are taken in "
          "turn "
          "(GPUs), blocked=1 has lanes scan their own part of a whole run, of one input and one "
          "output "
          "of elements of its type, and no more rows beside the staged ones than these (sm_90 and "
          "later)"),
      row(Strategy::look_ahead, "look_ahead", kAhead,
          "scans in one direction whose values need no fold of their whole segment, of an input, "
          "over "
          "segments of any size or the whole input, of any types and alignment, without strides, "
          "on "
          "CPUs and on GPUs that copy to shared memory beside other work (sm_80 and later): on "
          "GPUs "
          "depth is rows of a tile, stages tiles in shared memory, blocks those that a processor "
          "holds, and all of it has to fit; on CPUs depth is rows at once, tile 1024 elements of a "
          "tile, near groups of tiles looked at one by one, stages (2 and more) one more than the "
          "tiles that a thread takes before it scans one, blocks those of a thread"),
      row(Strategy::propagate, "propagate", kTiles,
          "scans in any direction over segments of any size or the whole input, of any types and "
          "alignment, without strides, on every target: tile is 0 on GPUs and of both directions, "
          "where tiles are warps times depth rows, and else 1024 elements of a tile; direct=1 has "
          "two "
          "launches instead of three (GPUs, scans in one direction whose values need no fold of "
          "their "
          "whole segment)")};
}

}  // namespace chainfold::codegen
