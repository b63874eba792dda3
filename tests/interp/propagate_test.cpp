// propagate where tiles are many: the launch that scans their states by a block of several warps,
// forward, backward and both at once, with rounds that are whole and that are not.
#include <gtest/gtest.h>

#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

/// Tiles of one row of one warp.
constexpr std::int64_t kTile = codegen::kWarpWidth;

InterpCase of(std::int64_t segment, std::int64_t elements, std::uint64_t seed) {
  InterpCase c{
      .choice = PlanChoice{
          .strategy = Strategy::propagate, .warps = 1, .depth = 1, .bytes = 1, .mma = false}};
  c.segment = segment;
  c.elements = elements;
  c.seed = seed;
  c.in_place = seed % 2 == 0;
  c.options = options_of(seed % 6);
  return c;
}

class Propagate : public testing::TestWithParam<const char*> {};

/// A batch of a warp is 128 states; 16 warps have 2048 a round.
TEST_P(Propagate, ScansTheStatesOfManyTiles) {
  const TestProgram& tested = program(GetParam());
  std::uint64_t seed = 1;
  for (const std::int64_t tiles : thinned<std::int64_t>({1, 2049, 33, 128, 4500, 129, 900, 2048})) {
    const std::int64_t elements = tiles * kTile - static_cast<std::int64_t>(seed % 3);
    expect_right(tested, codegen::gpu_target(seed % 2 == 0 ? 90 : 80), of(0, elements, seed));
    ++seed;
  }
}

/// Segments of one batch, of one warp's rounds, and of several warps.
TEST_P(Propagate, ScansTheStatesOfSegments) {
  const TestProgram& tested = program(GetParam());
  std::uint64_t seed = 100;
  for (const std::int64_t tiles : thinned<std::int64_t>({130, 2, 32, 1100, 33, 128, 257})) {
    const std::int64_t segment = tiles * kTile - static_cast<std::int64_t>(seed % 5);
    expect_right(tested, codegen::gpu_target(90), of(segment, 3 * segment, seed));
    ++seed;
  }
}

/// Wide loads of which the last one is not all there, in both directions, too.
TEST_P(Propagate, OfEverythingEndsAnywhere) {
  const TestProgram& tested = program(GetParam());
  std::uint64_t seed = 200;
  for (const int bytes : {4, 8, 16}) {
    for (const std::int64_t elements :
         thinned<std::int64_t>({1, 250, 513, 2, 3, 3003, 7, 127, 511, 1024})) {
      InterpCase c = of(0, elements, seed++);
      c.choice->warps = 2;
      c.choice->depth = 2;
      c.choice->bytes = bytes;
      expect_right(tested, codegen::gpu_target(90), c);
    }
  }
}

/// Segments that begin and end within loads: in their first and last tiles, in one of few, and
/// where those in between have code without masks.
TEST_P(Propagate, OfSegmentsThatBeginWithinLoads) {
  const TestProgram& tested = program(GetParam());
  std::uint64_t seed = 300;
  for (const int bytes : {4, 8, 16}) {
    for (const std::int64_t segment :
         thinned<std::int64_t>({513, 1027, 2309, 515, 769, 1025, 1023, 641, 4099, 9001})) {
      InterpCase c = of(segment, segment * static_cast<std::int64_t>(1 + seed % 9), seed);
      if (segment > 4000) c.elements = 3 * segment;
      c.choice->warps = seed % 2 == 0 ? 1 : 2;
      c.choice->depth = seed % 3 == 0 ? 2 : 1;
      c.choice->bytes = bytes;
      expect_right(tested, codegen::gpu_target(seed % 4 == 0 ? 75 : 90), c);
      ++seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Propagate,
                         testing::Values("scan_sum_f32", "scan_back_out_f32", "scan_horner_u8",
                                         "scan_horner_back_u8", "scan_horner_both_ways_u8",
                                         "scan_both_ways_i32", "scan_share_f32",
                                         "scan_share_both_ways_f64", "scan_variance_f32",
                                         "scan_index_i16", "scan_share_left_i32",
                                         "scan_several_f16"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace chainfold::test
