#include "chainfold/codegen/plan/plan.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/rows.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/strands.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

namespace {

/// The input behind conversions that keep its value, or kNoNode.
NodeId input_behind(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind == NodeKind::input) return id;
  if (node.kind != NodeKind::compute || node.op != Op::convert) return kNoNode;
  const NodeId inner = input_behind(graph, node.operands[0]);
  if (inner == kNoNode) return kNoNode;
  const DType from = graph.node(node.operands[0]).type;
  const bool keeps = is_float(from) == is_float(node.type) && widens(from, node.type);
  return keeps ? inner : kNoNode;
}

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::simt: return "simt";
    case Unit::mma_ones: return "mma P * data";
    case Unit::mma_diagonal: return "mma data * data, diagonal";
    case Unit::mma_scan: return "mma data * U";
  }
  return "?";
}

}  // namespace

MmaOperands mma_operands(const Graph& graph, const Node& fold) {
  const Fold& f = graph.folds[static_cast<std::size_t>(fold.index)];
  if (!f.linear || fold.filter != kNoNode) return {};
  const NodeId operand = fold.operands[0];
  if (const NodeId a = input_behind(graph, operand); a != kNoNode) return {.a = a};
  // A product: products of the element types are exact in the accumulator, so widening before or
  // after the multiplication is the same as long as it does not wrap.
  NodeId product = operand;
  while (graph.node(product).kind == NodeKind::compute && graph.node(product).op == Op::convert) {
    const NodeId inner = graph.node(product).operands[0];
    const DType from = graph.node(inner).type;
    if (!is_integer(from) || !is_integer(graph.node(product).type) ||
        !widens(from, graph.node(product).type))
      return {};
    product = inner;
  }
  const Node& node = graph.node(product);
  if (node.kind != NodeKind::compute || node.op != Op::mul) return {};
  const NodeId a = input_behind(graph, node.operands[0]), b = input_behind(graph, node.operands[1]);
  if (a == kNoNode || b == kNoNode || graph.node(a).type != graph.node(b).type) return {};
  return {.a = a, .b = b};
}

bool is_short(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind != NodeKind::compute || node.op != Op::convert) return false;
  const DType from = graph.node(node.operands[0]).type;
  return size_of(from) <= 2 && from != DType::bf16;
}

bool takes_lines(const Plan& plan, const Graph& graph, const Target& target) {
  const std::int64_t line = target.line_bytes;
  if (line == 0 || graph.inputs.empty()) return false;
  if (needs_order(graph)) return false;  // a lane's loads are one run
  auto all_inputs = [&](auto holds) {
    return std::all_of(graph.inputs.begin(), graph.inputs.end(), holds);
  };
  const bool wide = all_inputs([&](const GraphInput& input) {
    return std::int64_t{Plan::kWarp} * plan.load_width * size_of(input.type) >= 2 * line;
  });
  switch (plan.strategy) {
    case Strategy::parts: return wide;
    case Strategy::rows: return wide && plan.segment >= std::int64_t{Plan::kWarp} * plan.load_width;
    case Strategy::columns:
      return wide && plan.phases == 1 && !plan.strided && all_inputs([&](const GraphInput& input) {
               return plan.segment * size_of(input.type) % line == 0;
             });
    default: return false;
  }
}

bool half_vectors_do(const Plan& plan, const Graph& graph, const Target& target) {
  const bool parts = plan.strategy == Strategy::parts;
  if (!target.vector_lanes || graph.folds.size() != 1 ||
      !(parts || plan.strategy == Strategy::rows))
    return false;
  const auto fold = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& node) { return node.kind == NodeKind::fold; });
  const NodeId input = mma_operands(graph, *fold).a;
  if (input == kNoNode) return false;
  const DType type = graph.node(input).type;
  if (is_float(type) && graph.node(fold->operands[0]).type != type) return false;
  switch (size_of(type)) {
    case 4: return parts || plan.segment >= 16;
    case 8:
      return parts || plan.segment % Plan::kWarp == 0 ||
             (plan.segment >= 100 && plan.segment % 4 == 0);
    default: return false;
  }
}

bool cluster_serves(const Plan& plan, const Target& target) {
  return plan.strategy == Strategy::parts && plan.cluster > 1 &&
         plan.cluster <= target.cluster_blocks && plan.parts_wanted == plan.cluster;
}

namespace {

/// Segments have up to so many parts each, until so much of the target is busy.
constexpr std::int64_t kMostUneven = 16;
constexpr double kBusyEnough = 0.9;

PartCut cut_into(std::int64_t wanted, const Plan& plan, std::int64_t length,
                 std::int64_t segments) {
  const std::int64_t even = (length + wanted - 1) / wanted;
  std::int64_t quanta = (even + plan.part_quantum - 1) / plan.part_quantum;
  if (plan.few_parts > 0) {
    const std::int64_t few = std::max<std::int64_t>(1, plan.few_parts / segments);
    quanta = std::max(quanta, std::min(kMostQuanta, length / few / plan.part_quantum));
  }
  const std::int64_t part_length = quanta * plan.part_quantum;
  return {.parts = (length + part_length - 1) / part_length, .part_length = part_length};
}

/// The share of the target that is busy while parts come and go in waves, the last of them too.
double busy_share(const PartCut& cut, const Plan& plan, std::int64_t length,
                  std::int64_t segments) {
  const std::int64_t waves = (cut.parts * segments + plan.wave - 1) / plan.wave;
  return static_cast<double>(segments) * static_cast<double>(length) /
         (static_cast<double>(waves * plan.wave) *
          static_cast<double>(std::min(cut.part_length, length)));
}

}  // namespace

PartCut cut_parts(const Plan& plan, std::int64_t length, std::int64_t segments) {
  if (plan.cluster > 0) {
    // Of each segment, and all blocks of a cluster are there, though some have nothing to do.
    const std::int64_t round = plan.cluster * plan.part_quantum;
    const std::int64_t rounds = std::max<std::int64_t>(1, (length + round - 1) / round);
    return {.parts = plan.cluster, .part_length = rounds * plan.part_quantum};
  }
  if (length <= 0 || segments <= 0) return {.part_length = plan.part_quantum};
  const std::int64_t wanted = std::max<std::int64_t>(1, plan.parts_wanted / segments);
  PartCut best = cut_into(wanted, plan, length, segments);
  // One segment has the parts that its plan names.
  if (plan.wave == 0 || segments == 1 || wanted >= kMostUneven) return best;
  double share = busy_share(best, plan, length, segments);
  for (std::int64_t more = wanted + 1; share < kBusyEnough && more <= kMostUneven; ++more) {
    const PartCut cut = cut_into(more, plan, length, segments);
    const double other = busy_share(cut, plan, length, segments);
    if (other > share) std::tie(best, share) = std::pair(cut, other);
  }
  return best;
}

StageCopy stage_copy(const Plan& plan, DType input) {
  // Copies that begin within a line of the cache are slow: they share lines with their neighbours.
  constexpr int kUnit = 16, kLine = 128;
  const int size = size_of(input);
  const std::int64_t bytes = plan.segments_per_warp() * plan.segment * size;
  const bool exact = bytes % kLine == 0 && plan.base_alignment >= kUnit;
  if (exact) return {.elements = static_cast<int>(bytes / size), .exact = true, .unit = kUnit};
  const std::int64_t lines = (bytes + 2 * kLine - size - 1) / kLine;
  return {.elements = static_cast<int>(lines * (kLine / size)), .exact = false, .unit = kLine};
}

std::int64_t staged_bytes(const Plan& plan, const Graph& graph) {
  constexpr std::int64_t kUnit = 16;
  auto padded = [](std::int64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; };
  const std::int64_t slots = std::int64_t{plan.warps} * plan.stages;
  std::int64_t bytes = 0;
  for (const GraphInput& input : graph.inputs) {
    bytes += slots * stage_copy(plan, input.type).elements * size_of(input.type);
    bytes += padded(slots * static_cast<std::int64_t>(sizeof(std::uint64_t)));
  }
  for (const NodeId output : graph.outputs) {
    bytes += padded(std::int64_t{plan.warps} * plan.burst * plan.segments_per_warp() *
                    size_of(graph.node(output).type));
  }
  return bytes;
}

bool stages_fit(const Plan& plan, const Graph& graph, const Target& target) {
  return target.fits_shared(staged_bytes(plan, graph), plan.resident);
}

int phases_of(const Plan& plan) {
  // How far off a boundary strided rows begin is known at launch.
  if (plan.strided) return plan.load_width;
  return plan.load_width /
         std::gcd(plan.load_width, static_cast<int>(plan.segment % plan.load_width));
}

bool phases_fit(const Plan& plan, const Graph& graph) {
  return is_power_of_two(plan.phases) && plan.phases % phases_of(plan) == 0 &&
         plan.warps % plan.phases == 0 && plan.load_width > 1 && plan.lanes_per_segment == 1 &&
         plan.strip == 0 && plan.columns_per_block() <= plan.segment && graph.inputs.size() == 1 &&
         !needs_order(graph);
}

std::int64_t columns_bytes(const Plan& plan) {
  return plan.warps / 2 * plan.rows * Plan::kWarp * plan.load_width * plan.state_bytes;
}

std::string_view name_of(Strategy strategy) {
  switch (strategy) {
    case Strategy::rows: return "rows";
    case Strategy::elements: return "elements";
    case Strategy::parts: return "parts";
    case Strategy::staged: return "staged";
    case Strategy::columns: return "columns";
    case Strategy::scan_tile: return "scan_tile";
    case Strategy::scan_run: return "scan_run";
    case Strategy::scan_block: return "scan_block";
    case Strategy::look_back: return "look_back";
    case Strategy::look_ahead: return "look_ahead";
    case Strategy::propagate: return "propagate";
    default:
      return (is_published_scan(strategy) ? published_scan(strategy) : published(strategy))->name;
  }
}

std::optional<double> proven_bound(const Plan& plan, const Graph& graph, std::size_t fold) {
  const Fold& f = graph.folds[fold];
  if (!is_float(f.result()) || (f.tile && !f.linear)) return 0;
  if (!f.linear || rounds_sums(plan)) return std::nullopt;
  return plan.folds[fold].error_bound_u;
}

std::string print(const Plan& plan, const Graph& graph) {
  std::string text = fmt::format(
      "plan {{\n  strategy {}\n  segment {}\n  load_width {} elements a lane{}, {} in flight, base "
      "aligned to {} bytes\n",
      name_of(plan.strategy), plan.segment > 0 ? std::to_string(plan.segment) : "known at launch",
      plan.load_width, plan.straddle ? " that segments straddle" : "", plan.depth,
      plan.base_alignment);
  if (plan.strategy == Strategy::staged) {
    text += fmt::format(
        "  stages {}, burst {}{}, blocks {}, {} a processor, {} bytes of shared memory\n",
        plan.stages, plan.burst,
        plan.one_burst() ? ", one a block"
        : plan.late > 0  ? fmt::format(", {} rounds a late block", plan.late)
                         : "",
        plan.blocks, plan.resident, staged_bytes(plan, graph));
  }
  if (plan.strided) text += "  strides of the inputs given at launch\n";
  if (is_published(plan.strategy)) {
    text += print_published(plan);
  } else if (is_published_scan(plan.strategy)) {
    text += print_published_scan(plan);
  } else if (is_scan(plan.strategy)) {
    text += print_scan(plan);
  } else if (plan.strategy == Strategy::columns) {
    text += fmt::format(
        "  lanes_per_column {}, runs {}, {} columns a block{}{}{}{}\n  part_quantum {} rows, "
        "parts_wanted "
        "{}\n",
        plan.lanes_per_segment, plan.rows, plan.columns_per_block(),
        plan.phases > 1 ? fmt::format(", rows in {} phases", plan.phases) : "",
        plan.resident > 0 ? fmt::format(", {} a processor", plan.resident) : "",
        plan.strip > 0 ? ", states in scratch" : "",
        plan.load_rows_first ? ", all rows loaded first" : "", plan.part_quantum,
        plan.parts_wanted);
  } else if (plan.strategy == Strategy::rows || plan.strategy == Strategy::staged) {
    text += fmt::format("  lanes_per_segment {}, rows {}{}{}\n", plan.lanes_per_segment, plan.rows,
                        plan.load_rows_first ? ", all rows loaded first" : "",
                        plan.vector_lanes && plan.rows > 1 ? ", merged by patterns of two" : "");
  } else if (plan.strategy == Strategy::parts) {
    text += fmt::format(
        "  part_quantum {}, parts_wanted {}{}{}{}\n", plan.part_quantum, plan.parts_wanted,
        plan.few_parts > 0 ? fmt::format(", {} of few elements", plan.few_parts) : "",
        plan.wave > 0 ? fmt::format(", {} at once", plan.wave) : "",
        plan.cluster > 0 ? ", of one cluster" : "");
  }
  text += fmt::format("  warps {}, edges {}, combine {}\n", plan.warps,
                      plan.edges ? "scalar" : "none", plan.combine_states ? "states" : "values");
  if (plan.takes_lines) text += "  loads take whole lines\n";
  if (plan.strategy == Strategy::rows && plan.stream_from > 0)
    text += fmt::format("  outputs of {} bytes and more pass the caches by\n", plan.stream_from);
  if (plan.half_vectors) text += "  vectors of half a register do\n";
  if (plan.strands > 1)
    text += fmt::format("  memory is read in {} places in turn\n", plan.strands);
  if (plan.read_ahead > 0) text += fmt::format("  reads {} elements ahead\n", plan.read_ahead);
  if (plan.mean_loads > 0) text += fmt::format("  means of {} loads a lane\n", plan.mean_loads);
  for (std::size_t f = 0; f < plan.folds.size(); ++f) {
    const FoldPlan& how = plan.folds[f];
    text += fmt::format("  fold {}: {} on {}", f, graph.folds[f].name, name_of(how.unit));
    if (how.unit != Unit::simt)
      text += fmt::format(" ({})", mma_table()[static_cast<std::size_t>(how.mma_row)].name);
    const Fold& fold = graph.folds[f];
    if (const std::optional<double> bound = proven_bound(plan, graph, f); !bound) {
      text += fold.linear ? ", error bound none proven (as published)\n" : ", no bound proven\n";
    } else {
      const bool exact = !is_float(fold.result()) || !fold.linear;
      text += exact ? ", exact\n" : fmt::format(", error bound {:g} u\n", *bound);
    }
  }
  constexpr const char* kAccuracy[] = {"exact", "reproducible", "accurate", "fast", "as_published"};
  constexpr const char* kDeterminism[] = {"not_guaranteed", "run_to_run", "gpu_to_gpu"};
  text += fmt::format(
      "  accuracy {}, determinism {}, nonfinite {}, guard {}\n",
      kAccuracy[static_cast<int>(plan.accuracy)], kDeterminism[static_cast<int>(plan.determinism)],
      plan.nonfinite == NonFinite::ieee ? "ieee" : "assume_finite", plan.guard ? "on" : "off");
  const bool keeps_states = plan.strategy == Strategy::parts ||
                            (plan.strategy == Strategy::columns && plan.launches == 2) ||
                            (is_scan(plan.strategy) && plan.launches > 1);
  text += fmt::format("  launches {}, scratch {} bytes a part, carry {} bytes\n}}\n", plan.launches,
                      keeps_states ? plan.state_bytes : 0, plan.state_bytes);
  return text;
}

void verify(const Plan& plan, const Graph& graph, const Target& target) {
  auto require = [&](bool holds, const char* rule) {
    if (!holds) throw InternalError(fmt::format("illegal plan: {}", rule), print(plan, graph));
  };
  require(is_power_of_two(plan.load_width) && is_power_of_two(plan.lanes_per_segment) &&
              is_power_of_two(plan.rows),
          "load_width, lanes_per_segment and rows are powers of two");
  require(plan.lanes_per_segment <= Plan::kWarp, "lanes_per_segment is at most a warp");
  require(plan.warps >= 1 && plan.warps <= target.max_warps, "warps fit the target");
  require(plan.takes_lines == takes_lines(plan, graph, target),
          "loads of whole lines are what takes_lines() says");
  require(plan.half_vectors == half_vectors_do(plan, graph, target),
          "vectors of half a register do where half_vectors_do() says so");
  require(plan.strands == strands_of(plan, graph, target),
          "memory is read in as many places as strands_of() says");
  require(plan.read_ahead == 0 || plan.read_ahead == ahead_of(plan, graph, target),
          "what is asked for ahead is what ahead_of() says, or nothing");
  require(plan.strands == 1 || (target.max_warps == 1 && is_power_of_two(plan.strands) &&
                                !(plan.strategy == Strategy::rows && plan.edges)),
          "a CPU's thread reads in several places, and rows of it have no edges");
  const bool by_blocks = plan.strategy == Strategy::rows && !plan.has_loop();
  require(by_blocks || plan.depth % plan.strands == 0, "a batch's loads are dealt evenly");
  require(plan.depth >= 1 && plan.folds.size() == graph.folds.size(), "every fold has its plan");
  for (const GraphInput& input : graph.inputs) {
    const int bytes = plan.load_width * size_of(input.type);
    require(
        plan.load_width == 1 || bytes <= std::max(load_bytes(graph, target), size_of(input.type)),
        "loads fit the target");
    const bool anywhere =
        plan.straddle || plan.phases > 1 || target.accesses_anywhere || peels_memory(plan, graph);
    require(anywhere || bytes <= std::max(plan.base_alignment, size_of(input.type)),
            "loads fit the base alignment");
  }
  if (is_published(plan.strategy)) return verify_published(plan, graph, target);
  if (is_published_scan(plan.strategy)) return verify_published_scan(plan, graph, target);
  if (is_scan(plan.strategy)) return verify_scan(plan, graph, target);
  require(!has_scans(graph), "scans have plans of their own");
  const bool fits =
      plan.load_width == 1 || (plan.segment > 0 && plan.segment % plan.load_width == 0);
  const bool side_by_side = plan.phases > 1 || plan.strategy == Strategy::elements;
  require(fits || plan.edges || plan.straddle || side_by_side ||
              (plan.has_partial_loads() && target.accesses_anywhere),
          "segments begin and end on the load width, or edges are peeled or masked");
  require(!plan.straddle || (plan.strategy == Strategy::staged && graph.inputs.size() == 1),
          "only one input, in shared memory, is read by loads that its segments straddle");
  require(!plan.strided || plan.segment >= 1, "a stride lies between segments");
  require(plan.mean_loads == 0 || (target.vector_lanes && (plan.strategy == Strategy::rows ||
                                                           plan.strategy == Strategy::parts)),
          "rows and parts of vector registers have means of few loads");
  require(!plan.vector_lanes || target.vector_lanes, "lanes are elements of the target's vectors");
  if (plan.strategy == Strategy::staged) {
    require(!plan.strided, "copies bring what lies side by side");
    require(plan.segment >= 1 && plan.depth >= plan.loads_a_lane() && !plan.edges,
            "a tile's loads are issued together");
    require(is_power_of_two(plan.stages) && plan.blocks >= 1, "stages and blocks");
    require(plan.burst >= plan.stages, "copies reach no further than into the next burst");
    require(plan.late >= 0 && plan.late <= plan.burst, "a block that comes late has one burst");
    require(target.async_copies && stages_fit(plan, graph, target),
            "stages fit the target's shared memory");
    for (const GraphInput& input : graph.inputs) {
      const StageCopy copy = stage_copy(plan, input.type);
      const std::int64_t bytes = plan.segments_per_warp() * plan.segment * size_of(input.type);
      require(copy.exact || bytes >= 32,
              "what a copy brings besides its tile lies in the next one");
    }
  } else if (plan.strategy == Strategy::columns) {
    require(plan.segment >= 1 && !plan.edges, "columns have a number");
    require(is_power_of_two(plan.depth) && is_power_of_two(plan.warps),
            "warps and depth are powers of two");
    require(plan.rows == 1 || plan.lanes_per_segment == 1, "several runs need whole warps");
    require(plan.columns_per_block() <= plan.segment ||
                (plan.rows == 1 && plan.columns_per_block() < 2 * plan.segment),
            "a block's columns exist");
    require(columns_bytes(plan) <= target.shared_bytes, "states fit the target's shared memory");
    require(plan.part_quantum > 0 && plan.parts_wanted > 0, "parts have a quantum and a number");
    require(plan.launches == (plan.parts_wanted > 1 || plan.strip > 0 ? 2 : 1),
            "what lies in scratch is merged");
    require(
        plan.strip == 0 || (plan.lanes_per_segment == 1 && plan.warps == 1 && plan.load_width == 1),
        "one warp walks along a strip, by single columns");
    require(plan.resident * plan.warps <= target.resident_warps, "a processor holds the blocks");
    require(plan.phases == 1 || phases_fit(plan, graph),
            "the warps of a block take whole turns of phases, of the rows of one input");
  } else if (plan.strategy == Strategy::rows) {
    require(plan.segment >= 1, "rows need the segment size");
    require(plan.lanes_per_segment == Plan::kWarp ||
                plan.segment <= static_cast<std::int64_t>(plan.lanes_per_segment) *
                                    plan.load_width * plan.depth,
            "a group of fewer lanes than a warp loads its segment in one batch");
    require(!plan.edges || plan.lanes_per_segment == Plan::kWarp, "edges need a warp a segment");
  } else if (plan.strategy == Strategy::elements) {
    require(plan.segment == 1 && !plan.strided && plan.lanes_per_segment == 1,
            "elements are segments that lie side by side");
    for (const NodeId output : graph.outputs) {
      const int bytes = plan.load_width * size_of(graph.node(output).type);
      require(plan.load_width == 1 || bytes <= target.vector_bytes, "stores fit the target");
    }
  } else {
    require(
        plan.part_quantum > 0 && plan.part_quantum % plan.load_width == 0 && plan.parts_wanted > 0,
        "parts have a quantum and a number");
    require(plan.cluster == 0 || cluster_serves(plan, target),
            "a cluster has all parts of a segment");
    require(plan.launches == (plan.parts_wanted > 1 && plan.cluster == 0 ? 2 : 1),
            "parts are merged by a second launch, one part and a cluster's are not");
  }
  for (std::size_t f = 0; f < plan.folds.size(); ++f) {
    const FoldPlan& how = plan.folds[f];
    if (how.unit == Unit::simt) continue;
    require(how.mma_row >= 0 && target.has_mma, "the target has the matrix instruction");
    const MmaRow& row = mma_table()[static_cast<std::size_t>(how.mma_row)];
    require(target.arch >= row.first_arch, "the architecture has the matrix instruction");
    require(plan.load_width % row.elements(Operand::b) == 0, "a load fills whole fragments");
    const bool small = plan.shares_quads();
    require(how.unit == Unit::mma_ones || !small, "the diagonal holds sums of whole quads");
    require(!small ||
                plan.segment == static_cast<std::int64_t>(plan.lanes_per_segment) * plan.load_width,
            "segments below a quad fill their lanes");
    require(!small || row.rounding == MmaRounding::exact || plan.guard ||
                plan.nonfinite == NonFinite::assume_finite,
            "segments that share a quad are guarded against each other's NaN");
  }
}

}  // namespace chainfold::codegen
