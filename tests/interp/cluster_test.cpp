// Clusters: what their blocks tell each other in a Gather, the rules of it, and folds of the whole
// input and of segments by the blocks of one each.
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/tests/support/expect_scan.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;

constexpr int kCluster = 4, kWarps = 3;

/// Blocks of clusters of four: each hands over its number and a half of it, and stores, a value a
/// lane, what its last warp has received.
Program gathering(const std::function<void(Builder&)>& before = {}) {
  Program program;
  program.name = "gathering";
  program.buffers = {{"ranks", DType::i64, BufferRole::output, 0, 8, 0},
                     {"halves", DType::f32, BufferRole::output, 1, 4, 0}};
  program.params = {{"blocks", DType::i64, ParamRole::elements}};
  program.launches.push_back({.name = "gather",
                              .grid = SizeExpr::param(0, "blocks"),
                              .warps = kWarps,
                              .cluster = kCluster});
  Builder b(program);
  if (before) before(b);
  const ValueId block = b.splat(b.block());
  // Only the first warp hands over: what the others say is not heard.
  const ValueId said = b.add(block, b.splat(b.mul(b.convert(b.warp(), DType::i64), b.i64(1000))));
  const ValueId half = b.mul(b.convert(said, DType::f32), b.constant(DType::f32, 0x3f000000));
  const Builder::Values heard = b.gather({said, half});
  const ValueId place = b.mul(b.block(), b.i64(kWarpWidth));
  b.branch(
      b.compute(Op::eq, {b.warp(), b.i32(kWarps - 1)}),
      [&] {
        b.store(0, {place}, heard[0], kNoValue);
        b.store(1, {place}, heard[1], kNoValue);
        return Builder::Values{};
      },
      [] { return Builder::Values{}; });
  return program;
}

struct Memory {
  std::vector<std::int64_t> ranks;
  std::vector<float> halves;
  std::vector<std::uint64_t> params;
  explicit Memory(std::size_t blocks)
      : ranks(blocks * kWarpWidth), halves(blocks * kWarpWidth), params{blocks} {}
  std::vector<InterpBuffer> buffers() {
    return {{ranks.data(), static_cast<std::int64_t>(ranks.size())},
            {halves.data(), static_cast<std::int64_t>(halves.size())}};
  }
};

TEST(Gather, TellsEveryWarpWhatTheFirstOfEachBlockHas) {
  const Program program = gathering();
  ASSERT_NO_THROW(verify(program));
  for (std::size_t turn = 0; turn < 12; ++turn) {
    Memory memory(5 * kCluster);
    interpret(program, memory.buffers(), memory.params, options_of(turn));
    for (std::size_t i = 0; i < memory.ranks.size(); ++i) {
      const std::size_t block = i / kWarpWidth, lane = i % kWarpWidth;
      const std::size_t told = lane < kCluster ? block / kCluster * kCluster + lane : 0;
      ASSERT_EQ(memory.ranks[i], static_cast<std::int64_t>(told)) << "block " << block;
      ASSERT_EQ(memory.halves[i], static_cast<float>(told) / 2) << "block " << block;
    }
  }
}

TEST(Gather, IsABarrierOfEachBlock) {
  // A warp stores for its neighbour in shared memory; a Gather lies between, or nothing does.
  for (const bool behind : {true, false}) {
    Program program = gathering();
    Launch& launch = program.launches.back();
    launch.shared.push_back({"said", DType::i64, kWarps});
    std::vector<Instr> body = std::move(launch.body.body);
    launch.body.body.clear();
    Builder b(program);
    const ValueId warp = b.convert(b.warp(), DType::i64), zero = b.splat(b.i64(0));
    const ValueId first = b.compute(Op::eq, {b.lane(), b.i32(0)});
    b.shared_store(0, {warp}, zero, first);
    std::vector<Instr> stores = std::move(launch.body.body);
    launch.body.body.clear();
    b.shared_load(0, {b.rem(b.add(warp, b.i64(1)), b.i64(kWarps))}, 1, first);
    std::vector<Instr> loads = std::move(launch.body.body);
    launch.body.body = std::move(stores);
    auto append = [&](std::vector<Instr>& more) {
      std::move(more.begin(), more.end(), std::back_inserter(launch.body.body));
    };
    append(behind ? body : loads);
    append(behind ? loads : body);
    Memory memory(kCluster);
    const auto run = [&] {
      interpret(program, memory.buffers(), memory.params,
                {.schedule = Schedule::random, .seed = 5});
    };
    if (behind) {
      EXPECT_NO_THROW(run());
    } else {
      EXPECT_THROW(run(), InternalError);
    }
  }
}

/// What verify or a run says of a broken program.
std::string complaint(const std::function<void()>& run) {
  try {
    run();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "nothing";
}

void expect_in(const std::string& words, const std::string& said) {
  EXPECT_NE(said.find(words), std::string::npos) << "not '" << words << "' but: " << said;
}

TEST(Gather, HasItsRules) {
  const auto verified = [](const std::function<void(Program&)>& harm) {
    Program program = gathering();
    harm(program);
    return complaint([&] { verify(program); });
  };
  expect_in("without a cluster", verified([](Program& p) { p.launches[0].cluster = 1; }));
  expect_in("1 to 32 blocks", verified([](Program& p) { p.launches[0].cluster = 33; }));
  expect_in("gathers once", complaint([] {
              verify(gathering([](Builder& b) { b.gather({b.splat(b.i64(1))}); }));
            }));
  expect_in("outside of loops and branches", complaint([] {
              verify(gathering([](Builder& b) {
                b.branch(
                    b.compute(Op::eq, {b.block(), b.i64(0)}),
                    [&] {
                      b.gather({b.splat(b.i64(1))});
                      return Builder::Values{};
                    },
                    [] { return Builder::Values{}; });
              }));
            }));
}

TEST(Gather, NeedsWholeClusters) {
  const Program program = gathering();
  Memory some(kCluster + 1);
  expect_in("are no clusters of 4",
            complaint([&] { interpret(program, some.buffers(), some.params); }));
  // Some clusters alone, in any order of their blocks.
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Memory two(3 * kCluster);
    EXPECT_NO_THROW(interpret(program, two.buffers(), two.params,
                              {.schedule = Schedule::random,
                               .seed = seed,
                               .resident_blocks = 1,
                               .blocks = {0, 1, 2, 3, 8, 9, 10, 11}}));
  }
  // Of a cluster one block does not run: the others wait for it.
  Memory all(kCluster);
  expect_in("a deadlock: not all warps of the cluster's blocks", complaint([&] {
              interpret(program, all.buffers(), all.params, {.blocks = {0, 1, 3}});
            }));
}

// --- folds of the whole input

PlanChoice parts_of(int cluster, int warps, int depth, bool mma) {
  return {.strategy = Strategy::parts,
          .warps = warps,
          .depth = depth,
          .cluster = cluster,
          .parts = cluster,
          .mma = mma};
}

/// Clusters of several sizes over each of these: everything, or one to three segments of so many.
void expect_clusters_right(bool segmented, const std::vector<std::int64_t>& sizes) {
  std::size_t turn = 0;
  for (const char* name : {"sum_f16", "sum_f32", "variance_f32", "longest_run_bool", "argmax_f16",
                           "basics_i32", "dot_f16"}) {
    for (const int cluster : {2, 7, 8}) {
      for (const std::int64_t size : sizes) {
        const auto count = static_cast<std::int64_t>(1 + turn % 3);
        InterpCase c{.segment = segmented ? size : 0,
                     .elements = segmented ? size * count : size,
                     .fill = turn % 4 == 3 ? Fill::nonfinite : Fill::uniform,
                     .seed = turn,
                     .base_alignment = turn % 5 == 4 ? 4 : 16,
                     .chunks = segmented && turn % 3 == 2 ? 2 : 1,
                     .choice = parts_of(cluster, turn % 2 == 0 ? 4 : 1, 2, turn % 3 != 0)};
        if (segmented && turn % 3 == 1) c.gaps = {5, 8};
        c.options = options_of(turn++);
        expect_right(program(name), gpu_target(90), c);
      }
    }
  }
}

TEST(ClusterFold, IsRightForAnyNumberOfElements) {
  expect_clusters_right(false, {0, 1, 257, 4096, 16'384, 40'001});
}

TEST(ClusterFold, IsRightForSegments) { expect_clusters_right(true, {1, 300, 4099, 16'384}); }

TEST(ClusterFold, IsTheDefaultOfFewElements) {
  const Computation computation = program("sum_f16").over(whole());
  const Graph& graph = computation.graph();
  for (const int arch : {80, 90, 120}) {
    const Target target = gpu_target(arch);
    for (const std::int64_t elements : {1, 1 << 16, 1 << 18, 327'680, 327'681, 1 << 24}) {
      const std::int64_t most = size_class_of(graph, target, 0, elements);
      const PlanChoice chosen = default_choice(graph, target, {.size_limit = most});
      EXPECT_EQ(chosen.cluster, elements > 327'680          ? 0
                                : target.cluster_blocks > 1 ? target.cluster_blocks
                                                            : 0)
          << arch << ", " << elements;
      const auto plan = make_plan(graph, target, {.size_limit = most}, chosen);
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->launches, chosen.cluster > 0 ? 1 : 2);
    }
  }
  EXPECT_FALSE(make_plan(graph, gpu_target(80), {}, parts_of(8, 4, 2, true)));
  PlanChoice other = parts_of(8, 4, 2, true);
  other.parts = 16;
  EXPECT_FALSE(make_plan(graph, gpu_target(90), {}, other)) << "blocks are not as many as parts";
}

}  // namespace
}  // namespace chainfold::test
