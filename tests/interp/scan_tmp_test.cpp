#include <gtest/gtest.h>
#include <fmt/format.h>
#include <random>
#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/interp.hpp"
#include "chainfold/codegen/plan_space.hpp"
#include "chainfold/codegen/plan_scan.hpp"
#include "chainfold/runtime/arguments.hpp"
#include "chainfold/tests/support/data.hpp"
namespace chainfold::test {
namespace {
using namespace codegen;
std::vector<Column> run(const Graph& g, const Compiled& c, std::vector<Column>& inputs, std::int64_t n, std::int64_t s, const InterpOptions& o) {
  runtime::Arguments a = runtime::dense_arguments(g, n, s);
  auto range = runtime::range_of(c.plan, a);
  const runtime::Slots slots(g, c.program, a, range);
  const auto params = std::span(slots.data(), slots.size()).subspan(c.program.buffers.size());
  std::vector<Column> outs, scratch;
  for (NodeId out : g.outputs) { outs.emplace_back(g.node(out).type, n); outs.back().fill(std::byte{0x5A}); }
  for (auto& b : c.program.buffers) if (b.role == BufferRole::scratch) { scratch.emplace_back(b.type, b.elements.evaluate(params)); scratch.back().fill(std::byte{0x5A}); }
  std::vector<InterpBuffer> bufs;
  for (auto& b : c.program.buffers) { Column& col = b.role == BufferRole::input ? inputs[b.index] : b.role == BufferRole::output ? outs[b.index] : scratch[b.index]; bufs.push_back({col.data(), col.count()}); }
  interpret(c.program, bufs, params, o);
  return outs;
}
TEST(ScanTmp, Sum) {
  auto x = input<std::int32_t>("x");
  std::mt19937_64 random(1);
  int runs = 0;
  for (int form = 0; form < 4; ++form)
  for (std::int64_t s : {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 33, 37, 64, 100, 128, 256, 300, 500, 777, 1000, 1024, 4096, 5000, 0}) {
    const bool ex = form & 1, rev = form & 2;
    auto part = s ? segments(s) : whole();
    Computation comp = !ex && !rev ? over(part, inclusive(sum(x)), x + inclusive(max(x))) : ex && !rev ? over(part, exclusive(sum(x)), x + exclusive(max(x))) : !ex ? over(part, inclusive(sum(x), backward), x + inclusive(max(x), backward)) : over(part, exclusive(sum(x), backward), x + exclusive(max(x), backward));
    const Graph& g = comp.graph();
    for (const char* tn : {"sm_90", "cpu"}) {
      Target t = parse_target(tn);
      PlanRequest req{.segment = s, .base_alignment = 16};
      auto space = plan_space(g, t, req);
      for (auto& choice : space) {
        if (random() % 30) continue;
        auto plan = make_plan(g, t, req, choice);
        ASSERT_TRUE(plan);
        std::int64_t n = s ? s * (1 + random() % std::max<std::int64_t>(1, 3000 / s)) : 1 + random() % 6000;
        if (choice.warps > 8 && random() % 3) continue;
        SCOPED_TRACE(fmt::format("{} s={} n={} ex={} rev={} {}", tn, s, n, ex, rev, to_text(choice)));
        Compiled c = compile_plan(g, t, *plan);
        auto inputs = make_inputs(g, n, Fill::whole, random());
        InterpOptions o; o.schedule = static_cast<Schedule>(random() % 3); o.seed = random(); o.resident_blocks = 1 + random() % 5;
        auto outs = run(g, c, inputs, n, s, o);
        std::int64_t S = s ? s : n;
        for (std::int64_t b = 0; b < n; b += S) {
          std::int64_t acc = 0; std::int32_t mx = std::numeric_limits<std::int32_t>::min();
          for (std::int64_t k = 0; k < S; ++k) {
            std::int64_t i = rev ? b + S - 1 - k : b + k;
            auto v = static_cast<std::int32_t>(inputs[0].get(i));
            std::int64_t a0 = acc; std::int32_t m0 = mx;
            acc += v; mx = std::max(mx, v);
            std::int64_t want = ex ? a0 : acc; std::int32_t wm = static_cast<std::int32_t>(static_cast<std::uint32_t>(v) + static_cast<std::uint32_t>(ex ? m0 : mx));
            ASSERT_EQ(static_cast<std::int64_t>(outs[0].get(i)), want) << i;
            ASSERT_EQ(static_cast<std::int32_t>(outs[1].get(i)), wm) << i;
          }
        }
        ++runs; if (runs % 20 == 0) { std::printf("%d s=%ld\n", runs, (long)s); fflush(stdout); }
      }
    }
  }
  std::printf("%d runs\n", runs);
}
TEST(ScanTmp, Tiles) {
  auto x = input<std::int32_t>("x");
  std::mt19937_64 random(1);
  int runs = 0;
  for (int form = 0; form < 4; ++form)
  for (std::int64_t s : {5000, 4100, 777, 0, 0, 0}) {
    const bool ex = form & 1, rev = form & 2;
    auto part = s ? segments(s) : whole();
    Computation comp = !ex && !rev ? over(part, inclusive(sum(x)), x + inclusive(max(x))) : ex && !rev ? over(part, exclusive(sum(x)), x + exclusive(max(x))) : !ex ? over(part, inclusive(sum(x), backward), x + inclusive(max(x), backward)) : over(part, exclusive(sum(x), backward), x + exclusive(max(x), backward));
    const Graph& g = comp.graph();
    for (const char* tn : {"sm_90", "cpu"}) {
      Target t = parse_target(tn);
      PlanRequest req{.segment = s, .base_alignment = 16};
      std::vector<PlanChoice> space; for (int q = 0; q < 3; ++q) { PlanChoice ch{.strategy = random() % 4 ? Strategy::look_back : Strategy::propagate, .warps = 1 << (random() % 4), .depth = 1 << (random() % 2), .mma = false}; ch.bytes = random() % 2 ? 16 : 4; if (t.max_warps == 1) { ch.warps = 1; ch.tile = 1; } space.push_back(ch); }
      for (auto& choice : space) {
        
        auto plan = make_plan(g, t, req, choice);
        ASSERT_TRUE(plan);
        std::int64_t n = s ? s * (1 + random() % std::max<std::int64_t>(1, 3000 / s)) : 1 + (random() % 8 ? random() % 20000 : 140000);
        
        SCOPED_TRACE(fmt::format("{} s={} n={} ex={} rev={} {}", tn, s, n, ex, rev, to_text(choice)));
        Compiled c = compile_plan(g, t, *plan);
        auto inputs = make_inputs(g, n, Fill::whole, random());
        InterpOptions o; o.schedule = static_cast<Schedule>(random() % 3); o.seed = random(); o.resident_blocks = 1 + random() % 5;
        auto outs = run(g, c, inputs, n, s, o);
        std::int64_t S = s ? s : n;
        for (std::int64_t b = 0; b < n; b += S) {
          std::int64_t acc = 0; std::int32_t mx = std::numeric_limits<std::int32_t>::min();
          for (std::int64_t k = 0; k < S; ++k) {
            std::int64_t i = rev ? b + S - 1 - k : b + k;
            auto v = static_cast<std::int32_t>(inputs[0].get(i));
            std::int64_t a0 = acc; std::int32_t m0 = mx;
            acc += v; mx = std::max(mx, v);
            std::int64_t want = ex ? a0 : acc; std::int32_t wm = static_cast<std::int32_t>(static_cast<std::uint32_t>(v) + static_cast<std::uint32_t>(ex ? m0 : mx));
            ASSERT_EQ(static_cast<std::int64_t>(outs[0].get(i)), want) << i;
            ASSERT_EQ(static_cast<std::int32_t>(outs[1].get(i)), wm) << i;
          }
        }
        ++runs; if (runs % 20 == 0) { std::printf("%d s=%ld\n", runs, (long)s); fflush(stdout); }
      }
    }
  }
  std::printf("%d runs\n", runs);
}
}  // namespace
}  // namespace chainfold::test
