// Expressions that nobody thought of: random computations over random shapes, by the default plan
// and by any of the space, against the reference. CHAINFOLD_RANDOM_SEED=n begins with other ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/launch/scan_arguments.hpp"
#include "chainfold/tests/support/exact_sum.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/random_graph.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

constexpr std::uint64_t kGroups = 16, kCases = 48 / kThin;
constexpr std::int64_t kElements = 4000;

std::uint64_t first_seed() {
  const char* given = std::getenv("CHAINFOLD_RANDOM_SEED");
  return given == nullptr ? 2026'11'22 : std::strtoull(given, nullptr, 10);
}

/// Odd, prime, powers of two and their neighbours, multiples of loads and rows.
std::int64_t random_size(Dice& dice, std::int64_t most) {
  const std::int64_t size = [&] {
    switch (dice.below(5)) {
      case 0: return dice.from_to(1, 40);
      case 1: {
        const std::int64_t power = std::int64_t{1} << dice.from_to(1, 12);
        return power + dice.from_to(-1, 1);
      }
      case 2: {
        const std::int64_t unit = dice.pick({8, 16, 32, 64, 256});
        return unit * dice.from_to(1, 60);
      }
      case 3: return dice.pick<std::int64_t>({37, 101, 251, 257, 521, 1009, 2039, 3001});
      default: return dice.from_to(1, 2000);
    }
  }();
  return std::min(size, most);
}

/// A computation and everything that its run depends on.
struct Random {
  RandomGraph made;
  codegen::Graph graph;  ///< the target's of it
  codegen::Target target;
  InterpCase run;
  codegen::PlanRequest request;
};

/// Nothing where the computation would be a scan of an expression without a fold.
std::optional<Random> make_random(Dice& dice) {
  Random all;
  const int arch = dice.pick({0, 75, 80, 90, 90, 100});
  all.target = arch == 0 ? codegen::cpu_target(static_cast<int>(dice.from_to(1, 8)))
                         : codegen::gpu_target(arch, dice.pick({0, 1, 3}));
  // Of numbers near the ends of their types the plainest folds tell most.
  const bool plain = dice.chance(35), scans = dice.chance(plain ? 15 : 50);
  using Kind = codegen::Partition::Kind;
  codegen::Partition partition{
      .kind = scans ? dice.pick({Kind::whole, Kind::segments})
                    : dice.pick({Kind::whole, Kind::segments, Kind::segments, Kind::columns})};
  InterpCase& run = all.run;
  run.elements = random_size(dice, kElements);
  if (partition.kind != Kind::whole) {
    partition.size = run.segment = random_size(dice, kElements);
    run.columns = partition.kind == Kind::columns;
    run.elements =
        run.segment * dice.from_to(0, std::max<std::int64_t>(1, kElements / run.segment));
  }
  if (dice.chance(25)) {
    run.ragged = make_ragged(dice.of(kAllLengths), dice.from_to(0, kElements / 2),
                             static_cast<std::uint64_t>(dice.below(1000)), dice.chance(30),
                             dice.pick({DType::i64, DType::i32}));
    if (dice.chance(30)) run.ragged = by_heads(*run.ragged);
    partition = {.kind = run.ragged->heads ? Kind::heads : Kind::offsets};
    for (const Column& bound : run.ragged->bounds())
      partition.bounds.push_back({fmt::format("bound_{}", partition.bounds.size()), bound.type()});
    run.columns = false;
    run.segment = 0;
    run.elements = run.ragged->elements;
  }
  try {
    all.made = make_random_graph(dice, scans, partition, plain);
    runtime::check_scan_partition(all.made.graph);
  } catch (const UserError&) {
    return std::nullopt;
  }
  const codegen::Graph& graph = all.graph = codegen::legalize(all.made.graph, all.target);
  if (!has_scans(graph) && partition.has_size() && dice.chance(20))
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) run.gaps.push_back(dice.below(20));
  run.base_alignment = std::max(dice.pick({16, 16, 8, 4, 1}), codegen::widest_of_scan(graph));
  run.fill = plain ? dice.pick({Fill::constant, Fill::near_ends, Fill::near_ends, Fill::whole})
                   : dice.pick({Fill::uniform, Fill::uniform, Fill::whole, Fill::nonfinite,
                                Fill::extremes, Fill::constant, Fill::near_ends});
  run.seed = static_cast<std::uint64_t>(dice.below(1000));
  run.in_place = has_scans(graph) && dice.chance(40);
  run.options = {.schedule = static_cast<codegen::Schedule>(dice.below(3)),
                 .seed = run.seed,
                 .resident_blocks = dice.pick({1, 2, 5})};
  if (arch > 0) run.options.arch = arch;
  all.request = {.segment = run.segment,
                 .base_alignment = alignment_of(graph, run),
                 .strided = !run.gaps.empty()};
  if (dice.chance(50)) {
    all.request.size_limit = codegen::size_class_of(graph, all.target, run.segment, run.elements);
  }
  if (dice.chance(60)) {
    const auto space = codegen::plan_space(graph, all.target, all.request);
    run.choice = dice.of(space);
  } else {
    run.choice = codegen::default_choice(graph, all.target, all.request);
  }
  return all;
}

std::string words(const Random& random) {
  const InterpCase& run = random.run;
  const std::string segments =
      run.ragged ? fmt::format(" in {} segments", run.ragged->segments.size()) : "";
  return fmt::format("{} on {} ({}), {} elements{} of {} (seed {}), {} gaps, aligned to {}{}: {}",
                     print_expression(random.made.graph), random.target.name,
                     random.target.processors, run.elements, segments, name_of(run.fill), run.seed,
                     run.gaps.size(), run.base_alignment, run.in_place ? ", in place" : "",
                     to_text(*run.choice));
}

/// Means and norms of all elements of an input, by a way that knows nothing of graphs: the values
/// that are not within 64 u, of integers one unit in the last place.
std::string wrong_plain(const Random& random, const std::vector<Column>& inputs,
                        const std::vector<Column>& outputs) {
  const InterpCase& run = random.run;
  const auto size_of_segment = [&] {
    if (run.segment == 0) return run.elements;
    return run.columns ? run.elements / run.segment : run.segment;
  }();
  const std::int64_t step = run.columns ? run.segment : 1;
  for (const RandomGraph::Plain& plain : random.made.plain) {
    const auto& names = random.graph.inputs;
    const auto named = [&](const codegen::GraphInput& input) { return input.name == plain.input; };
    const auto at = std::find_if(names.begin(), names.end(), named) - names.begin();
    const Column &input = inputs[static_cast<std::size_t>(at)], &output = outputs[plain.output];
    const DType in = input.type(), out = output.type();
    for (std::int64_t s = 0; s < output.count() && size_of_segment > 0; ++s) {
      Real sum, squares;
      long double absolute = 0;
      for (std::int64_t i = 0; i < size_of_segment; ++i) {
        const Bits bits = input.get(run.columns ? s + i * step : s * size_of_segment + i);
        Real x(codegen::double_of_bits(in, bits));
        if (is_integer(in) && size_of(in) == 8) {  // of 64 bits in two exact halves
          x = Real(codegen::double_of_bits(in, bits & ~Bits{0xffff}));
          x += Real(static_cast<double>(bits & 0xffff));
        }
        absolute += std::fabs(x.to_long_double());
        sum += x;
        x *= x;
        squares += x;
      }
      if (!std::isfinite(absolute)) continue;  // nothing that is not finite is plain
      const bool is_mean = plain.kind == RandomGraph::Plain::Kind::mean;
      const auto n = static_cast<double>(size_of_segment);
      sum /= Real(n);
      const long double right = is_mean ? sum.to_long_double() : squares.root().to_long_double();
      const long double most = out == DType::f32 ? std::numeric_limits<float>::max()
                                                 : std::numeric_limits<double>::max();
      if (!(std::fabs(right) < most * (1 - 0x1p-10L))) continue;
      const long double unit = out == DType::f32 ? 0x1p-24L : 0x1p-53L;
      const long double least = out == DType::f32 ? 0x1p-149L : 0x1p-1074L;
      const long double off =
          is_float(in) ? 64 * unit * (is_mean ? absolute / n : right) : 2 * unit * std::fabs(right);
      const double got = codegen::double_of_bits(out, output.get(s));
      if (std::fabs(got - right) <= off + least) continue;
      return fmt::format("the {} of {} over segment {} is {}, not {}", is_mean ? "mean" : "norm",
                         plain.input, s, got, static_cast<double>(right));
    }
  }
  return "";
}

/// Whether there is such a case and the reference can judge it.
bool agrees_with_the_reference(std::uint64_t seed) {
  Dice dice(seed);
  const std::optional<Random> random = make_random(dice);
  if (!random) return false;
  SCOPED_TRACE(words(*random));
  const codegen::Graph &written = random->made.graph, &graph = random->graph;
  const InterpCase& run = random->run;
  try {
    EXPECT_EQ(codegen::parse_choice(to_text(*run.choice)), *run.choice);
    auto plan = make_plan(graph, random->target, random->request, *run.choice);
    if (!plan) throw std::runtime_error("not legal");
    const auto compiled = codegen::compile_plan(graph, random->target, *std::move(plan));
    auto inputs = make_inputs(graph, run.elements, run.fill, run.seed);
    if (run.ragged) set_heads(graph, *run.ragged, inputs);
    auto outputs = interpret_graph(graph, compiled, inputs, random->made.params, run);
    EXPECT_EQ(keep_segments(graph, run, outputs), "");
    EXPECT_EQ(run.ragged ? "" : wrong_plain(*random, inputs, outputs), "");
    ReferenceRequest asked{.segment = run.segment,
                           .params = random->made.params,
                           .plan = as_written(compiled.plan, graph, written)};
    if (run.ragged) asked.ragged = run.ragged->segments;
    const auto expected = reference(written, inputs, run.elements, asked);
    EXPECT_EQ(judge(expected, outputs).problems, "");
  } catch (const NoRule&) {
    return false;
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  return true;
}

class RandomExpressions : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomExpressions, AgreeWithTheReference) {
  std::uint64_t judged = 0;
  for (std::uint64_t i = 0; i < kCases; ++i) {
    const std::uint64_t seed = first_seed() + GetParam() * kCases + i;
    SCOPED_TRACE(fmt::format("CHAINFOLD_RANDOM_SEED={}", seed));
    if (agrees_with_the_reference(seed)) ++judged;
  }
  EXPECT_GE(judged, kCases / 2);
}

INSTANTIATE_TEST_SUITE_P(Groups, RandomExpressions, testing::Range<std::uint64_t>(0, kGroups));

}  // namespace
}  // namespace chainfold::test
