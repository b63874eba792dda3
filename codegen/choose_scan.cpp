#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "chainfold/codegen/choose_scan.hpp"
#include "chainfold/codegen/const_matrix.hpp"
#include "chainfold/codegen/error.hpp"
#include "chainfold/codegen/mma_table.hpp"

namespace chainfold::codegen {

namespace {

/// Rows of a warp's run, at most: they have to fit into registers, with what is made of them.
constexpr int kMostRunRows = 32;
/// With those in shared memory, of which each is a piece of the fold's code.
constexpr int kMostRows = 64;
constexpr int kRunRows = 8, kTileRows = 4, kMostGroupRows = 12;
/// Blocks of scan_tile: rows of all warps, and warps at most. Rows of fewer
/// bytes are as many as have them.
constexpr int kShortRows = 8, kShortWarps = 4, kLeastRowBytes = 256;
constexpr int kManyResidentWarps = 64;
/// Larger blocks have too few registers for rows of this length.
constexpr int kMostBlockWarps = 16;
/// Rows at once of the end of everything: the longest wait of a launch that has one.
constexpr int kRaggedDepth = 8;
/// Bytes of a lane's registers that the rows of a run may take.
constexpr int kRunBytes = 128;
/// look_ahead: tiles in shared memory or on their way, at most, and of the best guess; and its
/// bytes of them a processor, about half of which are under way (0009).
constexpr int kMostStages = 8, kStages = 4;
constexpr std::int64_t kStageBytes = 128 * 1024;
constexpr int kCpuRangeDepth = 8;
/// A CPU's task should take longer than starting it.
constexpr std::int64_t kCpuTaskElements = 16 * 1024;
/// Longer segments than this give a CPU's threads too few tasks.
constexpr std::int64_t kCpuLongestRun = std::int64_t{1} << 18;

/// A guess of the registers that a lane takes for `rows` rows of `width` elements, their values and
/// the copies of states that wait in a scan with a carry. What it is compared with was found by
/// compiling; only that nothing spills depends on it.
int lane_registers(const Graph& graph, int rows, int width) {
  constexpr int kAddresses = 20;
  int bytes = 0, registers = kAddresses;
  for (const GraphInput& input : graph.inputs) bytes += size_of(input.type);
  registers += rows * width * bytes / 4;
  for (const Fold& fold : graph.folds) {
    int words = 0;
    for (const DType type : fold.state) words += std::max(1, size_of(type) / 4);
    // Merges of one field are one instruction, those of a user's own many.
    const int copies = fold.state.size() == 1 ? 2 : fold.linear ? 3 : fold.commutative ? 6 : 8;
    registers +=
        words * copies + (fold.linear ? std::max(1, size_of(fold.result()) / 4) : words) * width;
  }
  return registers;
}

/// Whether states have several fields that merges compute with, or elements a filter: the compiler
/// keeps what is made of them from the fold of a run to its scan.
bool keeps_lifted_rows(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (node.kind != NodeKind::fold && node.kind != NodeKind::scan) return false;
    const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    return node.filter != kNoNode || (!fold.linear && fold.state.size() > 1);
  });
}

/// Warps of a processor that have registers enough.
int most_warps(const Graph& graph, int lane_registers) {
  constexpr int kFitsInto64 = 64, kFitsInto128 = 104;
  if (lane_registers <= kFitsInto64 && !keeps_lifted_rows(graph)) return 32;
  return lane_registers <= kFitsInto128 ? 16 : 8;
}

}  // namespace

bool is_scan(Strategy strategy) {
  switch (strategy) {
    case Strategy::scan_tile:
    case Strategy::scan_run:
    case Strategy::scan_block:
    case Strategy::look_back:
    case Strategy::look_ahead:
    case Strategy::propagate: return true;
    default: return false;
  }
}

int widest_output(const Graph& graph) {
  int bytes = 1;
  for (const NodeId output : graph.outputs) {
    const Node& node = graph.node(output);
    if (node.level == Level::element) bytes = std::max(bytes, size_of(node.type));
  }
  return bytes;
}

int widest_of_scan(const Graph& graph) {
  return std::max(widest_input(graph), widest_output(graph));
}

int widest_load(const Target& target, const PlanRequest& request, int element) {
  return std::max(1, std::min(target.vector_bytes, request.base_alignment) / element);
}

namespace {

/// Whether rows of ranges that begin anywhere are worth moving to lines of memory: segments are so
/// long that the gaps of their first and last rows, which cost time in every launch, are little
/// beside what the others save in those that pass the caches by, and folds so plain that this is
/// what they wait for. Measured on a Zen 4, two threads: running sums of f16 take a third longer
/// with it at 300 elements, as long at 777; those of f64 in cache a fifth at 300; those of f32 half
/// as long at 2000, past the caches; variances of 400 three quarters longer either way.
bool moves_to_lines(const Graph& graph, const Plan& plan) {
  constexpr std::int64_t kLeastRows = 24;
  const bool plain = std::all_of(graph.folds.begin(), graph.folds.end(),
                                 [](const Fold& fold) { return fold.tile.has_value(); });
  return plain && !plan.in_registers && plan.stream_from > 0 &&
         rows_are_lines(widest_output(graph)) && plan.segment % Plan::kWarp != 0 &&
         plan.segment >= kLeastRows * Plan::kWarp;
}

/// The decisions of place_scan but for the last one.
bool place_strategy(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                    int widest) {
  const std::int64_t s = plan.segment;
  const bool one_warp = target.max_warps == 1;
  plan.strategy = choice.strategy;
  plan.lanes_per_segment = Plan::kWarp;
  plan.rows = 1;
  plan.launches = 1;
  plan.in_registers = true;
  plan.range_depth = one_warp ? kCpuRangeDepth : s > 0 ? 1 : kRaggedDepth;
  plan.vector_lanes = target.vector_lanes;
  plan.stream_from = target.stream_bytes;
  plan.heads = choice.heads > 0;
  plan.load_width = s > 0 && !plan.heads ? dividing_width(s, widest) : widest;
  plan.depth = choice.depth;
  plan.resident = choice.blocks;
  if (choice.depth > kMostRows || choice.depth - choice.staged > kMostRunRows) return false;
  if (choice.blocks * choice.warps > target.resident_warps) return false;
  const bool both_ways = scans_both_ways(graph);  // rows are there for a pass each
  if (plan.heads && (choice.strategy != Strategy::look_back || choice.heads > 1 || one_warp ||
                     choice.tile > 0 || !heads_serve(graph, s)))
    return false;
  plan.near = choice.near;
  plan.across = choice.across;
  if (choice.across > 0 && choice.strategy != Strategy::look_back) return false;
  plan.direct = choice.direct > 0;
  if (!near_serves(plan) || choice.direct > 1) return false;
  if (plan.direct && !direct_serves(plan, graph, target)) return false;
  switch (choice.strategy) {
    case Strategy::scan_tile: {
      if (s < 1) return false;
      const auto tile = choose_run(graph, s, choice.depth, widest);
      if (!tile) return false;
      plan.load_width = tile->width;
      plan.depth = tile->rows;
      plan.tile_segments = tile->segments;
      return true;
    }
    case Strategy::scan_run:
      if ((s < 1 && !one_warp) || both_ways) return false;
      plan.load_width = 1;
      plan.in_registers = false;
      plan.range_depth = choice.depth;
      plan.tile_segments = one_warp && s > 0 ? std::max<std::int64_t>(1, kCpuTaskElements / s) : 1;
      return true;
    case Strategy::scan_block: {
      if (s < 1 || one_warp) return false;
      const auto group = choose_group(graph, s, widest, plan.depth * plan.warps);
      if (!group) return false;
      plan.load_width = group->width;
      plan.tile_segments = group->segments;
      return true;
    }
    case Strategy::look_back:
    case Strategy::propagate:
      // What the last tile adds is known only when all others have been scanned, but by propagate.
      if (choice.strategy == Strategy::look_back && (both_ways || broadcasts(graph))) return false;
      plan.in_registers = choice.tile == 0;
      if (plan.in_registers != (both_ways || !one_warp)) return false;
      // Everything ends anywhere: the last rows have single elements, or are a range of one
      // direction.
      if (both_ways && s == 0) plan.load_width = 1;
      if (!plan.in_registers) {
        plan.load_width = 1;
        plan.range_depth = choice.depth;
      }
      plan.tile = plan.in_registers
                      ? std::int64_t{Plan::kWarp} * plan.load_width * plan.depth * plan.warps
                      : std::int64_t{choice.tile} * 1024;
      if (!across_serves(plan)) return false;
      plan.ragged = is_ragged(plan, graph);
      plan.launches = choice.strategy == Strategy::look_back || plan.direct ? 2 : 3;
      // Blocks take tiles in turn: the next one of a thread is about as many tiles on as there are
      // threads.
      if (choice.strategy == Strategy::look_back && !plan.in_registers)
        plan.read_ahead = plan.tile * target.processors;
      if (choice.staged == 0) return true;
      if (choice.strategy != Strategy::look_back || !plan.in_registers) return false;
      plan.staged = choice.staged;
      plan.stages = 1;
      return choice.staged <= choice.depth && !graph.inputs.empty() &&
             staged_tiles_fit(plan, graph, target);
    case Strategy::look_ahead:
      if (both_ways || broadcasts(graph) || one_warp || graph.inputs.empty()) return false;
      if (choice.stages < 2 || choice.stages > kMostStages || choice.blocks < 1) return false;
      plan.stages = choice.stages;
      plan.staged = plan.depth;
      plan.blocks = std::int64_t{target.processors} * choice.blocks;
      plan.tile = std::int64_t{Plan::kWarp} * plan.load_width * plan.depth * plan.warps;
      plan.launches = 2;
      plan.ragged = is_ragged(plan, graph);
      return staged_tiles_fit(plan, graph, target);
    default: return false;
  }
}

/// Gives the folds that matrix instructions can scan to them; whether there are any.
bool place_on_quads(Plan& plan, const Graph& graph, const Target& target) {
  if (!plan.in_registers || !fits_quads(plan)) return false;
  bool any = false;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::fold && node.kind != NodeKind::scan) continue;
    const MmaOperands data = mma_operands(graph, node);
    if (data.a == kNoNode || data.b != kNoNode) continue;
    const DType type = graph.node(data.a).type;
    if (type == DType::f32) continue;  // its low bits would be lost
    const int index = find_mma_of(type, target.arch, plan.load_width);
    if (index < 0) continue;
    const MmaRow& row = mma_table()[static_cast<std::size_t>(index)];
    if (QuadLayout(row).held < 2) continue;  // a lane's two columns are its own elements
    if (is_float(row.accumulator) && row.accumulator != node.type) continue;
    plan.folds[static_cast<std::size_t>(node.index)] = {.unit = Unit::mma_scan, .mma_row = index};
    plan.guard = plan.guard || (is_float(row.accumulator) && plan.nonfinite == NonFinite::ieee);
    any = true;
  }
  return any;
}

}  // namespace

bool place_scan(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                int widest) {
  if (!place_strategy(plan, choice, graph, target, widest)) return false;
  plan.to_lines = moves_to_lines(graph, plan);
  return true;
}

std::optional<Plan> make_scan_plan(const Plan& plan, const PlanChoice& choice, const Graph& graph,
                                   const Target& target, const PlanRequest& request,
                                   const std::vector<double>& allowed) {
  auto bounded = [&](Plan& tried) {
    for (const bool states : {false, true}) {
      bool within = true;
      tried.combine_states = states;
      for (std::size_t f = 0; f < tried.folds.size(); ++f) {
        tried.folds[f].error_bound_u = scan_error_bound(graph, tried, target, f);
        within = within && tried.folds[f].error_bound_u <= allowed[f];
      }
      if (within) return true;
    }
    return false;
  };
  const int bytes = std::min({target.vector_bytes, request.base_alignment, choice.bytes});
  auto elements = [&](int of_bytes) {
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(1, bytes / of_bytes))));
  };
  if (choice.mma && request.allow_mma) {
    // A load fills a fragment, however wide what is stored.
    for (int width = elements(widest_input(graph)); width > 1; width /= 2) {
      Plan quads = plan;
      if (place_scan(quads, choice, graph, target, width) && quads.load_width == width &&
          place_on_quads(quads, graph, target) && bounded(quads))
        return quads;
    }
  }
  Plan lanes = plan;
  const int width = elements(widest_of_scan(graph));
  if (!place_scan(lanes, choice, graph, target, width) || !bounded(lanes)) return std::nullopt;
  return lanes;
}

int scan_warps(const Graph& graph, const Target& target, int rows, int width) {
  return std::min(most_warps(graph, lane_registers(graph, rows, width)), target.resident_warps);
}

std::optional<PlanChoice> scan_choice_of(Strategy strategy, const Graph& graph,
                                         const Target& target, const PlanRequest& request,
                                         bool mma) {
  PlanChoice choice;
  choice.strategy = strategy;
  choice.mma = mma;
  choice.bytes = target.vector_bytes;
  const bool one_warp = target.max_warps == 1, both_ways = scans_both_ways(graph);
  const int widest =
      widest_load(target, request, mma ? widest_input(graph) : widest_of_scan(graph));
  const std::int64_t s = request.segment;
  // Rows that registers hold: of all inputs, as they come from memory.
  int bytes = 0;
  for (const GraphInput& input : graph.inputs) bytes += size_of(input.type);
  bytes = std::max(1, bytes);  // positions alone are scanned without an input
  const int fit = std::max(1, kRunBytes / (bytes * widest));
  const int most = graph.folds.size() > 1 || keeps_lifted_rows(graph) ? kRunRows / 2 : kRunRows;
  const int rows = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::min(most, fit))));
  const int registers = lane_registers(graph, rows, widest);
  choice.warps = one_warp ? 1 : 8;
  choice.depth = std::min(kTileRows, rows);
  switch (strategy) {
    case Strategy::scan_tile:
      if (s < 1) return std::nullopt;
      for (int depth = choice.depth; depth <= kMostRunRows; depth *= 2) {
        choice.depth = depth;
        const auto run = choose_run(graph, s, depth, widest);
        if (!run) continue;
        if (!one_warp && depth <= kTileRows) {
          const int least =
              std::clamp(kLeastRowBytes / (bytes * widest * Plan::kWarp), 1, kTileRows);
          choice.depth = choose_short_run(graph, s, *run, least).rows;
          // Processors with fewer warps also hold fewer blocks.
          const int least_warps = target.resident_warps < kManyResidentWarps ? kShortWarps : 1;
          choice.warps = std::clamp(kShortRows / choice.depth, least_warps, kShortWarps);
        }
        return choice;
      }
      return std::nullopt;
    case Strategy::scan_run:
      if (s < 1 && !one_warp) return std::nullopt;
      choice.depth = kCpuRangeDepth;
      if (s > 0) {
        choice.depth =
            static_cast<int>(std::clamp<std::int64_t>(s / Plan::kWarp, 2, kCpuRangeDepth));
      }
      return choice;
    case Strategy::scan_block: {
      if (s < 1 || one_warp) return std::nullopt;
      const std::int64_t row = std::int64_t{Plan::kWarp} * dividing_width(s, widest);
      const std::int64_t needed = (s - 1) / row + 1;
      const int most_of_block =
          std::min({kMostBlockWarps, most_warps(graph, registers), target.max_warps});
      // Short segments by few warps, so that several blocks share a processor. What else has both
      // directions reads its input twice: there rows may be longer.
      const int most_rows = both_ways ? kMostRunRows : rows;
      if (s > std::int64_t{Plan::kWarp} * widest * kMostRunRows * most_of_block)
        return std::nullopt;
      // Where a block holds so many segments that they are whole loads, these are worth more.
      for (int width = widest; may_begin_anywhere_in_blocks(graph) && s % width != 0; width /= 2) {
        const std::int64_t unit = width / std::gcd(s, std::int64_t{width}) * s;
        const auto shape = choose_block(unit, std::int64_t{Plan::kWarp} * width, most_of_block,
                                        std::min(kMostGroupRows, rows * widest / width));
        if (!shape) continue;
        choice.warps = shape->warps;
        choice.depth = shape->depth;
        choice.bytes = std::max(1, target.vector_bytes * width / widest);
        const int fit = scan_warps(graph, target, choice.depth, width);
        choice.blocks = fit / choice.warps;
        return choice;
      }
      std::uint64_t warps = 0;
      for (int depth = rows; depth <= most_rows; depth *= 2) {
        warps = std::bit_ceil(static_cast<std::uint64_t>((needed + depth - 1) / depth));
        if (warps <= static_cast<std::uint64_t>(most_of_block)) break;
      }
      if (warps > static_cast<std::uint64_t>(most_of_block)) return std::nullopt;
      choice.warps = static_cast<int>(warps);
      choice.depth = static_cast<int>((needed + choice.warps - 1) / choice.warps);
      return choice;
    }
    case Strategy::look_back:
    case Strategy::propagate:
      choice.depth = one_warp && !both_ways ? kCpuRangeDepth : rows;
      if (!one_warp) {
        const int warps = std::min(most_warps(graph, registers), target.resident_warps);
        const auto few = shape_of_few(graph, target, request);
        choice.warps = std::min(few ? few->warps : kTileWarps, warps);
        choice.blocks = warps / choice.warps;
        if (few) choice.depth = std::min(choice.depth, few->rows);
      } else if (!both_ways) {
        choice.tile = std::max(1, cpu_tile_bytes(request) / (1024 * widest_of_scan(graph)));
      }
      return choice;
    case Strategy::look_ahead: {
      if (!target.bulk_copies || graph.inputs.empty()) return std::nullopt;
      constexpr int kBlocks = 2;
      const int most_of_block =
          std::min(most_warps(graph, registers), target.resident_warps) / kBlocks;
      choice.warps = std::min(kTileWarps, most_of_block);
      choice.blocks = kBlocks;
      choice.stages = kStages;
      const std::int64_t row = std::int64_t{Plan::kWarp} * widest * bytes;
      const std::int64_t most = kStageBytes / (row * choice.warps * kBlocks * kStages);
      choice.depth =
          std::clamp(static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(most))), 1, rows);
      const std::int64_t tile = std::int64_t{Plan::kWarp} * widest * choice.depth * choice.warps;
      if (s > 0 && s <= tile) return std::nullopt;  // other strategies have no need to wait
      return choice;
    }
    default: return std::nullopt;
  }
}

PlanChoice scan_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  const bool one_warp = target.max_warps == 1;
  const std::int64_t s = request.segment;
  struct Attempt {
    Strategy strategy;
    int most_rows = kMostRunRows;
  };
  std::vector<Attempt> order;
  const bool few = shape_of_few(graph, target, request).has_value();
  if (few) {
    // Tiles that wait have a launch that clears their slots, and tickets; these have neither.
    auto choice = scan_choice_of(Strategy::propagate, graph, target, request);
    if (choice) choice->direct = 1;
    if (choice && make_plan(graph, target, request, *choice)) return *choice;
  }
  if (s == 0 && owned_by_one_thread(graph, target, request)) order.push_back({Strategy::scan_run});
  if (s > 0 && one_warp) {
    if (s < Plan::kWarp) order.push_back({Strategy::scan_tile});
    if (s <= kCpuLongestRun) order.push_back({Strategy::scan_run});
  } else if (s > 0) {
    const int widest = widest_load(target, request, widest_of_scan(graph));
    // Segments that fill a warp's rows have no use for heads among them.
    const bool fill_rows =
        s % widest == 0 && s > std::int64_t{kTileRows - 1} * Plan::kWarp * widest;
    if (fill_rows) order.push_back({Strategy::scan_block});
    order.push_back({Strategy::scan_tile, kRunRows});
    order.push_back({Strategy::scan_block});
  }
  for (const Strategy strategy : {Strategy::look_back, Strategy::propagate, Strategy::scan_tile})
    order.push_back({strategy});
  for (const Attempt& attempt : order) {
    // Of few elements every block has one tile or none, and small ones are there sooner.
    if (attempt.strategy == Strategy::look_back && !few) {
      const auto staged = staged_scan_choice(graph, target, request);
      const auto plan = staged ? make_plan(graph, target, request, *staged) : std::optional<Plan>();
      if (plan) return better_by_heads(graph, target, request, *plan).value_or(*staged);
    }
    const std::optional<PlanChoice> choice =
        scan_choice_of(attempt.strategy, graph, target, request);
    if (!choice || choice->depth > attempt.most_rows) continue;
    const std::optional<Plan> plan = make_plan(graph, target, request, *choice);
    if (plan) return better_by_heads(graph, target, request, *plan).value_or(*choice);
  }
  throw InternalError("no strategy serves a scan", print(graph));
}

}  // namespace chainfold::codegen
