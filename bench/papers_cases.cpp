#include "chainfold/bench/papers_cases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/parts.hpp"
#include "chainfold/codegen/choose/scan_guess.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/text.hpp"

namespace chainfold::bench {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

/// A multiprocessor holds so many warps of these strategies at once.
constexpr int kResidentWarps = 32;
constexpr int kMostLinks = 8;  // of the chains that recurrence and single_pass know

Case sum_of(std::int64_t elements, std::int64_t segment, Source source) {
  Case test =
      make_case(Op::sum, DType::f16, segment > 0 ? DType::f16 : DType::f32, elements, segment);
  test.source = source;
  return test;
}

/// Running sums: of balanced data in f16, which holds them, of other data in f32.
Case scan_of(std::int64_t elements, std::int64_t segment, Source source) {
  const DType out = source == Source::balanced ? DType::f16 : DType::f32;
  Case test = make_case(Op::inclusive_sum, DType::f16, out, elements, segment);
  test.source = source;
  return test;
}

/// Cases of one target, and the ways that it has for them.
class Experiments {
 public:
  explicit Experiments(const Target& target) : target_(target) {}

  void begin(const std::string& experiment, const std::string& name, Case test) {
    all.push_back({fmt::format("{}/{}", experiment, name), std::move(test), {}, experiment});
  }
  /// Blocks a multiprocessor, as many as it holds and plans know.
  [[nodiscard]] int blocks_of(int warps) const {
    return std::clamp(kResidentWarps / warps, 1, codegen::kMostParts / target_.processors);
  }
  void pin(const PlanChoice& choice) {
    const bool finite = codegen::is_published_scan(choice.strategy);
    codegen::PlanRequest request{.accuracy = Accuracy::as_published,
                                 .determinism = Determinism::not_guaranteed,
                                 .segment = test().segment};
    if (finite) request.nonfinite = NonFinite::assume_finite;
    if (!codegen::make_plan(test().computation.graph(), target_, request, choice)) return;
    all.back().ways.push_back({.impl = "chainfold",
                               .kind = "pinned",
                               .strategy = codegen::to_text(choice),
                               .as_published = true,
                               .finite = finite});
  }
  /// Our own scan on tensor cores, where rules choose one by lanes.
  void pin_own_mma() {
    if (!target_.has_mma) return;
    const codegen::Graph& graph = test().computation.graph();
    const codegen::PlanRequest request{.segment = test().segment};
    const PlanChoice chosen = codegen::default_choice(graph, target_, request);
    const auto own = codegen::scan_choice_of(chosen.strategy, graph, target_, request, true);
    if (!own || *own == chosen || !codegen::make_plan(graph, target_, request, *own)) return;
    all.back().ways.push_back(
        {.impl = "chainfold", .kind = "pinned", .strategy = codegen::to_text(*own)});
  }
  /// What the papers compare with: additions by lanes alone.
  void pin_lanes() {
    if (!target_.has_mma) return;
    PlanChoice choice =
        codegen::parts_choice(test().computation.graph(), target_, {.segment = test().segment});
    choice.mma = false;
    all.back().ways.push_back(
        {.impl = "chainfold", .kind = "pinned", .strategy = codegen::to_text(choice)});
  }
  /// Our own plan and the peer, where there is one.
  void chosen_and_peer() {
    all.back().ways.insert(all.back().ways.begin(),
                           {.impl = "chainfold", .kind = "chosen", .strategy = {}});
    if (const std::string impl = peer(); !impl.empty())
      all.back().ways.push_back({.impl = impl, .kind = {}, .strategy = {}});
  }
  /// Drops the last case if nothing serves it here.
  void end() {
    if (all.back().ways.empty()) all.pop_back();
  }
  std::vector<NamedCase> all;

 private:
  /// Empty where none computes the same: the one on CPUs keeps the inputs' type.
  [[nodiscard]] std::string peer() const {
    const bool cpu = target_.is_cpu();
    if (!is_scan(test().op)) return cpu ? "openmp-simd" : "cub";
    if (cpu) return test().in == test().out ? "std-par" : "";
    return test().segment > 0 ? "cub-keys" : "cub";
  }
  [[nodiscard]] const Case& test() const { return all.back().test; }
  const Target& target_;
};

void add_variants(Experiments& experiments, std::int64_t elements) {
  for (std::int64_t n = std::int64_t{1} << 16; n <= elements; n *= 4) {
    for (const Source source : {Source::normal, Source::uniform}) {
      experiments.begin("variants", fmt::format("{}/{}", name_of(source), size_text(n)),
                        sum_of(n, 0, source));
      // The shapes that [N] found best, and [D]'s.
      experiments.pin({.strategy = Strategy::recurrence, .warps = 1, .chain = 5});
      experiments.pin({.strategy = Strategy::single_pass,
                       .warps = 4,
                       .occupancy = experiments.blocks_of(4),
                       .chain = 4,
                       .product = 1});
      experiments.pin({.strategy = Strategy::split,
                       .warps = 16,
                       .depth = 4,
                       .occupancy = experiments.blocks_of(16),
                       .product = 1,
                       .fraction = 50});
      experiments.pin({.strategy = Strategy::grid256n,
                       .warps = 16,
                       .depth = 4,
                       .occupancy = 4,
                       .chain = 4,
                       .product = 1});
      experiments.pin_lanes();
      experiments.chosen_and_peer();
    }
  }
}

void add_chains(Experiments& experiments, Strategy strategy, const std::string& name,
                std::int64_t elements) {
  for (const int power : {20, 26}) {
    const std::int64_t n = std::int64_t{1} << power;
    if (n > elements) continue;
    experiments.begin(name, size_text(n), sum_of(n, 0, Source::normal));
    for (int warps = 1; warps <= 32; warps *= 2) {
      for (int chain = 1; chain <= kMostLinks; ++chain) {
        PlanChoice choice{.strategy = strategy, .warps = warps, .chain = chain};
        if (strategy == Strategy::single_pass) {
          choice.occupancy = experiments.blocks_of(warps);
          choice.product = 1;
        }
        experiments.pin(choice);
      }
    }
    experiments.end();
  }
}

void add_split(Experiments& experiments, std::int64_t elements) {
  constexpr int kWarps = 16;
  for (const int power : {20, 26}) {
    const std::int64_t n = std::int64_t{1} << power;
    if (n > elements) continue;
    experiments.begin("split", size_text(n), sum_of(n, 0, Source::normal));
    for (int tensor = 1; tensor < kWarps; tensor += 2) {
      experiments.pin({.strategy = Strategy::split,
                       .warps = kWarps,
                       .depth = 4,
                       .occupancy = experiments.blocks_of(kWarps),
                       .product = 1,
                       .fraction = (100 * tensor + kWarps / 2) / kWarps});
    }
    if (!experiments.all.back().ways.empty()) experiments.pin_lanes();
    experiments.end();
  }
}

void add_segments(Experiments& experiments, std::int64_t elements) {
  for (std::int64_t s = 16; s <= elements; s *= 2) {
    // All in one is a sum of the whole input, as no f16 holds the sum of 2^30 elements.
    experiments.begin("segments", size_text(s),
                      sum_of(elements, s < elements ? s : 0, Source::f16));
    experiments.pin({.strategy = Strategy::reduction16, .warps = 8, .rows = 4});
    experiments.pin({.strategy = Strategy::strided16n, .warps = 8, .depth = 4});
    experiments.pin({.strategy = Strategy::coalesced16n, .warps = 8, .depth = 4});
    experiments.pin({.strategy = Strategy::reduction256, .warps = 8, .rows = 4, .product = 1});
    experiments.pin({.strategy = Strategy::inefficient256n, .warps = 8, .depth = 4, .product = 1});
    experiments.pin({.strategy = Strategy::efficient256n, .warps = 8, .depth = 8, .product = 1});
    experiments.pin({.strategy = Strategy::block256n, .warps = 4, .depth = 4, .product = 1});
    experiments.chosen_and_peer();
  }
}

/// A warp's segments one after the other take long where there are few.
constexpr std::int64_t kFewForWarps = 1 << 10, kFewForBlocks = 1 << 6;
constexpr std::int64_t kSquare = 256;

PlanChoice block_scan(std::int64_t segment) {
  constexpr std::int64_t kMostWarps = 16;
  const auto warps = static_cast<int>(std::clamp<std::int64_t>(segment / kSquare, 1, kMostWarps));
  return {.strategy = Strategy::scan_block256n, .warps = warps, .product = 1};
}

constexpr PlanChoice kStridedScan = {.strategy = Strategy::scan16n, .warps = 8, .chain = 0};
constexpr PlanChoice kSquareScan = {
    .strategy = Strategy::scan256n, .warps = 8, .chain = 0, .product = 1};
constexpr PlanChoice kGridScan = {.strategy = Strategy::scan_grid256n, .warps = 8, .product = 1};

void add_scan_variants(Experiments& experiments, std::int64_t elements) {
  constexpr std::int64_t kLongestOfAWarp = 1 << 20, kLongestOfABlock = 1 << 24;
  for (std::int64_t n = std::int64_t{1} << 16; n <= elements; n *= 4) {
    for (const Source source : {Source::normal, Source::uniform}) {
      const std::string name = fmt::format("{}/{}", name_of(source), size_text(n));
      experiments.begin("scan_variants", name, scan_of(n, 0, source));
      experiments.pin(kGridScan);
      experiments.pin_own_mma();
      experiments.chosen_and_peer();
      // The other forms take what they scan for a segment.
      if (n > kLongestOfABlock) continue;
      experiments.begin("scan_variants", name + "/segment", scan_of(n, n, source));
      if (n <= kLongestOfAWarp) {
        experiments.pin(kStridedScan);
        experiments.pin(kSquareScan);
      }
      experiments.pin(block_scan(n));
      experiments.end();
    }
  }
}

void add_scan_segments(Experiments& experiments, std::int64_t elements) {
  for (std::int64_t s = 16; s < elements; s *= 2) {
    experiments.begin("scan_segments", size_text(s), scan_of(elements, s, Source::balanced));
    experiments.pin({.strategy = Strategy::scan16, .warps = 8, .rows = 4});
    experiments.pin({.strategy = Strategy::scan256, .warps = 8, .rows = 4, .product = 1});
    if (elements / s >= kFewForWarps) {
      experiments.pin(kStridedScan);
      experiments.pin(kSquareScan);
    }
    if (elements / s >= kFewForBlocks) experiments.pin(block_scan(s));
    experiments.pin_own_mma();
    experiments.chosen_and_peer();
  }
  experiments.begin("scan_segments", size_text(elements), scan_of(elements, 0, Source::balanced));
  experiments.pin_own_mma();
  experiments.chosen_and_peer();
}

}  // namespace

std::vector<NamedCase> papers_cases(std::int64_t bytes, const Target& target) {
  const std::int64_t elements = bytes / size_of(DType::f16);
  Experiments experiments(target);
  add_chains(experiments, Strategy::recurrence, "recurrence", elements);
  add_chains(experiments, Strategy::single_pass, "single_pass", elements);
  add_split(experiments, elements);
  add_variants(experiments, elements);
  if (target.has_mma) add_segments(experiments, elements);
  add_scan_variants(experiments, elements);
  add_scan_segments(experiments, elements);
  return std::move(experiments.all);
}

}  // namespace chainfold::bench
