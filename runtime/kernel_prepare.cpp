// What a kernel compiles ahead: for one launch, or for all launches of up to so many elements.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/choose.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/kernel_state.hpp"
#include "chainfold/runtime/launch/arguments.hpp"
#include "chainfold/runtime/launch/scan_arguments.hpp"
#include "chainfold/runtime/launch/variant.hpp"

namespace chainfold {

namespace {

using runtime::kWidestLoad;
using Prepared = Kernel::State::Prepared;

/// Variants that are compiled for all launches of up to so many elements, at most.
constexpr std::size_t kMostVariants = 16;

/// Bytes of the device's memory, or of this machine's.
std::int64_t memory_bytes(const Kernel::State& state) {
  if (state.device >= 0) return state.context->device().total_bytes;
  return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

/// Bytes an element of each input but bitmaps, and of each output with one value an element.
std::vector<int> element_sizes(const codegen::Graph& graph) {
  std::vector<int> sizes;
  for (const codegen::GraphInput& input : graph.inputs)
    if (!input.is_packed()) sizes.push_back(size_of(input.type));
  for (std::size_t o = 0; o < graph.outputs.size(); ++o)
    if (runtime::per_element(graph, o)) sizes.push_back(size_of(graph.node(graph.outputs[o]).type));
  return sizes;
}

/// Refuses numbers of elements for which memory does not even hold the widest input, or the widest
/// output with one value an element.
void check_limit(const Kernel::State& state, std::int64_t elements) {
  if (elements < 0) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("prepare for launches of up to {} elements; the count must not be "
                                "negative",
                                elements),
                    "elements");
  }
  int widest = 0;
  for (const int size : element_sizes(*state.graph)) widest = std::max(widest, size);
  const std::int64_t bytes = memory_bytes(state);
  const bool fits = widest > 0 ? elements <= bytes / widest
                               : !codegen::has_packed(*state.graph) || elements / 8 <= bytes;
  if (fits) return;
  if (widest == 0) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("prepare for launches of up to {} elements; {} has {} bytes of "
                                "memory, which hold 8 bits each",
                                elements, state.device >= 0 ? "the device" : "this machine", bytes),
                    "elements");
  }
  throw UserError(ErrorCode::invalid_argument,
                  fmt::format("prepare for launches of up to {} elements; {} has {} bytes of "
                              "memory, which hold {} elements of {} bytes",
                              elements, state.device >= 0 ? "the device" : "this machine", bytes,
                              bytes / widest, widest),
                  "elements");
}

/// The alignments that memory may have: from that of the smallest element up to `widest`.
std::vector<int> alignments(const codegen::Graph& graph, int widest) {
  int least = widest;
  for (const int size : element_sizes(graph)) least = std::min(least, size);
  std::vector<int> all;
  for (int bytes = least; bytes <= widest; bytes *= 2) all.push_back(bytes);
  return all;
}

std::size_t variants_of(const std::vector<Prepared>& pieces) {
  std::size_t all = 0;
  for (const Prepared& piece : pieces) all += piece.limits.size() * piece.alignments.size();
  return all;
}

/// Leaves no more than kMostVariants: of alignments the widest, and the lowest, which serves the
/// others. A kernel has two pieces with seven size classes in all at most.
void thin_out(std::vector<Prepared>& pieces) {
  if (variants_of(pieces) <= kMostVariants) return;
  for (Prepared& piece : pieces)
    if (piece.alignments.size() > 2)
      piece.alignments = {piece.alignments.front(), piece.alignments.back()};
  if (variants_of(pieces) > kMostVariants)
    throw InternalError(
        fmt::format("{} variants to prepare, {} at most", variants_of(pieces), kMostVariants));
}

/// Leaves the alignments for which a pinned plan is legal, if there are any. Launches of others are
/// refused, as they are without any preparation.
void keep_admitted(const Kernel::State& state, Prepared& piece) {
  const codegen::PlanChoice pinned = codegen::parse_choice(state.options.plan);
  std::vector<int> admitted;
  for (const int alignment : piece.alignments) {
    const codegen::PlanRequest request = state.request(piece.shape(0), alignment);
    if (make_plan(*state.graph, state.target, request, pinned)) admitted.push_back(alignment);
  }
  if (!admitted.empty()) piece.alignments = std::move(admitted);
}

template <class T>
bool contains(const std::vector<T>& all, T one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}
template <class T>
bool contains(const std::vector<T>& all, const std::vector<T>& some) {
  return std::all_of(some.begin(), some.end(), [&](T one) { return contains(all, one); });
}

}  // namespace

void Kernel::State::cover(Shape& shape, int& alignment, std::int64_t elements) const {
  const Prepared* covering = nullptr;
  for (const Prepared* p = prepared.load(std::memory_order_acquire); p != nullptr; p = p->older) {
    if (!p->is_of(shape)) continue;
    const bool same_class = contains(p->limits, shape.size_limit);
    if (same_class && contains(p->alignments, alignment)) return;
    const bool covers = elements <= p->elements && alignment >= p->alignments.front();
    if (covering == nullptr && covers) covering = p;
  }
  if (covering == nullptr) return;
  // Classes are not ordered: some launches of few elements are of the class of any number.
  if (!contains(covering->limits, shape.size_limit)) {
    shape.size_limit =
        *std::find_if(covering->limits.begin(), covering->limits.end(),
                      [&](std::int64_t limit) { return limit == 0 || limit >= elements; });
  }
  const std::vector<int>& known = covering->alignments;
  alignment = *std::prev(std::upper_bound(known.begin(), known.end(), alignment));
}

void Kernel::State::remember(Prepared piece) {
  const std::lock_guard lock(mutex);
  const Prepared* const newest = all_prepared.empty() ? nullptr : all_prepared.back().get();
  for (const Prepared* p = newest; p != nullptr; p = p->older) {
    if (p->is_of(piece.shape(0)) && p->elements >= piece.elements &&
        contains(p->limits, piece.limits) && contains(p->alignments, piece.alignments))
      return;
  }
  piece.older = newest;
  // While no record serves other launches, none of them need look.
  const bool is_read = piece.elements >= 0 || prepared.load(std::memory_order_relaxed) != nullptr;
  all_prepared.push_back(std::make_unique<const Prepared>(std::move(piece)));
  if (is_read) prepared.store(all_prepared.back().get(), std::memory_order_release);
}

void Kernel::State::prepare_up_to(const LaunchArgs& args) {
  check_limit(*this, args.elements);
  const Bindings bindings =
      runtime::with_any_bounds(*graph, runtime::with_any_memory(*graph, args.inputs));
  const bool partial = graph->partition.tail;
  std::int64_t most = args.elements;
  const std::int64_t row = runtime::resolve(*graph, bindings, 0).segment;
  if (row > 0 && !partial) most -= most % row;
  runtime::Arguments resolved = runtime::resolve(*graph, bindings, most);
  runtime::check_scan_strides(*graph, resolved);
  // Strides alone limit the alignment: each launch has memory of its own.
  resolved.inputs.fill(nullptr);
  const auto aligned = [&](const codegen::Graph& g, int widest) {
    return target.accesses_anywhere ? std::vector{kWidestLoad} : alignments(g, widest);
  };
  std::vector<Prepared> pieces;
  const bool columns = has_columns(*graph);
  // Segments have no launch without a segment; the whole and columns have one of no elements.
  if (row == 0 || columns || most >= row) {
    const std::int64_t least = row == 0 || columns ? 0 : row;
    const std::int64_t step = row == 0 || partial ? 1 : row;
    pieces.push_back({.segment = row,
                      .strided = resolved.strided,
                      .elements = most,
                      .limits = has_one_class(row, resolved.strided)
                                    ? std::vector<std::int64_t>{0}
                                    : codegen::size_classes_between(*graph, target, classes, row,
                                                                    least, most, step),
                      .alignments = aligned(*graph, runtime::common_alignment(*graph, resolved))});
  }
  if (partial && most > 0 && row > 1) {
    const std::int64_t longest = std::min(most, row - 1);
    pieces.push_back({.tail = true,
                      .elements = longest,
                      .limits = codegen::size_classes_between(*tail_graph, target, tail_classes, 0,
                                                              1, longest, 1),
                      .alignments = aligned(*tail_graph, kWidestLoad)});
  }
  if (!options.plan.empty())
    for (Prepared& piece : pieces)
      if (!piece.tail) keep_admitted(*this, piece);
  thin_out(pieces);
  for (const Prepared& piece : pieces)
    for (const std::int64_t limit : piece.limits)
      for (const int alignment : piece.alignments)
        variant(piece.shape(limit), alignment).executable->optimise();
  if (!pieces.empty() && !pieces.front().tail)
    tell_of(pieces.front().shape(pieces.front().limits.back()), pieces.front().alignments.back());
  for (Prepared& piece : pieces) remember(std::move(piece));
}

void Kernel::prepare(const LaunchArgs& args, Sizes sizes) const {
  if (sizes == Sizes::up_to) return state_->prepare_up_to(args);
  State::Pieces pieces;
  state_->add_pieces_of_sizes(args, State::Way::itself, pieces);
  for (const auto& piece : pieces) piece.variant->executable->optimise();
}

}  // namespace chainfold
