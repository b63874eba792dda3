// Kernel::State: what a Kernel's copies share.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/runtime/device/context.hpp"
#include "chainfold/runtime/kernel.hpp"
#include "chainfold/runtime/launch/arguments.hpp"
#include "chainfold/runtime/launch/inline_items.hpp"
#include "chainfold/runtime/launch/slots.hpp"
#include "chainfold/runtime/launch/variant.hpp"

namespace chainfold {

namespace runtime {
/// The first GPU that kernels can be generated for, else the CPU.
Target default_target();
}  // namespace runtime

struct Kernel::State {
  std::shared_ptr<const codegen::Graph> graph;
  /// The same outputs over one segment of any length: the graph of a shorter last segment.
  std::optional<codegen::Graph> tail_graph;
  /// codegen::element_classes of these graphs.
  std::vector<std::int64_t> classes, tail_classes;
  Options options;
  Target target;
  int device = -1;                            // < 0: the CPU
  const runtime::Context* context = nullptr;  // a GPU's

  /// What kernels are specialised for besides the alignment of memory.
  struct Shape {
    bool tail = false;            ///< of the tail's graph
    std::int64_t segment = 0;     ///< elements a segment, or columns; 0: the whole
    bool strided = false;         ///< inputs have strides
    std::int64_t size_limit = 0;  ///< PlanRequest::size_limit
    auto operator<=>(const Shape&) const = default;
  };
  /// Whether launches of segments (or columns) have the same plan whatever their number of
  /// elements: by a pinned plan, or with strides.
  [[nodiscard]] bool has_one_class(std::int64_t segment, bool strided) const {
    return segment > 0 && (strided || !options.plan.empty());
  }
  /// What prepare has compiled for all launches of up to so many elements, of a segment size.
  struct Prepared {
    bool tail = false;
    std::int64_t segment = 0;
    bool strided = false;
    /// Of launches that it serves; -1: only those whose own class and alignment it has.
    std::int64_t elements = 0;
    std::vector<std::int64_t> limits{};  ///< of the size classes, ascending; 0 (any) is last
    std::vector<int> alignments{};       ///< ascending
    const Prepared* older = nullptr;

    [[nodiscard]] bool is_of(const Shape& shape) const {
      return tail == shape.tail && segment == shape.segment && strided == shape.strided;
    }
    [[nodiscard]] Shape shape(std::int64_t limit) const {
      return {.tail = tail, .segment = segment, .strided = strided, .size_limit = limit};
    }
  };
  /// Kernel::prepare of all launches of up to so many elements.
  void prepare_up_to(const LaunchArgs& args);
  /// Replaces the size class and the alignment of a launch by those of what prepare has compiled.
  /// A launch whose own stand compiled keeps them.
  void cover(Shape& shape, int& alignment, std::int64_t elements) const;
  /// Adds a record for launches to find, unless another one has it all.
  void remember(Prepared piece);
  std::vector<std::unique_ptr<const Prepared>> all_prepared;
  /// The newest, for launches to read; null while all are of single launches.
  std::atomic<const Prepared*> prepared{nullptr};

  /// Chooses the plan of a shape, and compiles nothing. Throws for requests that no plan can meet.
  void foresee(const Shape& shape);
  /// The variant for a shape in memory aligned to `alignment`.
  const runtime::KernelVariant& variant(const Shape& shape, int alignment);
  /// Makes a variant that stands compiled the one that explain() and plan() tell of.
  void tell_of(const Shape& shape, int alignment);

  /// The tier of the code that variants have at first.
  [[nodiscard]] runtime::Effort least_effort() const;

  /// The decisions behind the plans of a segment size, and what a tuning found for them.
  enum class Source : std::uint8_t { rules, tuned, pinned };
  struct Choice {
    codegen::PlanChoice plan;
    Source source = Source::rules;
    std::optional<TuningResult> tuning{};
    std::shared_ptr<const runtime::Executable> kept{};  ///< what tuning compiled for it
  };
  /// Pinned, tuned or by rules: made once for a shape, so that scratch does not change between
  /// launches. Decisions on which scratch does not depend may still follow the pointers' alignment.
  const Choice& choice(const Shape& shape);
  [[nodiscard]] Choice make_choice(const Shape& shape) const;
  [[nodiscard]] codegen::PlanRequest request(const Shape& shape, int alignment) const {
    return {.accuracy = options.accuracy,
            .nonfinite = options.nonfinite,
            .determinism = options.determinism,
            .segment = shape.segment,
            .base_alignment = alignment,
            .strided = shape.strided,
            .size_limit = shape.size_limit};
  }

  /// One piece of work on memory of the target: full segments, or the tail as a whole.
  struct Piece {
    const runtime::KernelVariant* variant = nullptr;
    const codegen::Graph* graph = nullptr;
    runtime::Slots::Range range;
    runtime::Arguments arguments;
  };
  static constexpr std::size_t kMostPieces = 2;
  using Pieces = runtime::InlineItems<Piece, kMostPieces>;
  /// How a piece finds its variant.
  ///
  ///     staged     it works on copies, which begin with each piece and have no gaps
  ///     launched   in place, by what prepare has compiled for many sizes
  ///     itself     in place, by its own class and alignment, which later launches keep
  enum class Way : std::uint8_t { staged, launched, itself };
  /// The one or two pieces of a call, compiled. `alignment`: of the memory of inputs, and of
  /// outputs with one value an element.
  void add_pieces(const runtime::Arguments& arguments, int alignment, Way way, Pieces& pieces);

  /// The same for sizes alone, before there is any memory: inputs that are not bound count as
  /// aligned.
  void add_pieces_of_sizes(const LaunchArgs& args, Way way, Pieces& pieces);

  std::mutex mutex;
  struct Slot {
    std::once_flag once;
    runtime::KernelVariant variant;
    Choice choice;  ///< with what follows from the alignment
    Shape shape;
    int alignment = 0;
  };
  std::map<std::pair<Shape, int>, std::unique_ptr<Slot>> variants;
  /// The variant asked for last, compiled; and the tail's. Most launches are like the last one.
  std::array<std::atomic<const Slot*>, 2> recent{};
  struct ChoiceSlot {
    std::once_flag once;
    Choice choice;
  };
  std::map<Shape, std::unique_ptr<ChoiceSlot>> choices;
  KernelStats stats;
  /// The variant compiled last that is no tail's. Before any is, the one for any number of elements
  /// (foresee).
  struct Last {
    Shape shape;
    Choice choice;
    std::optional<codegen::Plan> plan;
    const runtime::KernelVariant* variant = nullptr;  ///< compiled
  };
  static Last last_of(const Slot& slot);
  Last last;
};

}  // namespace chainfold
