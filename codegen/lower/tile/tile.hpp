// What all lowerings share: from loaded vectors to partial results of every fold, across the lanes
// of a warp, to the values of the outputs.
//
// Order. Folds that are not commutative need their elements merged in order. A program with such a
// fold is `ordered`. The loads of a batch give every lane one contiguous run of elements, and every
// warp of a block one contiguous run of batches. The lower lane is the left side of a merge across
// lanes. What crosses batches is merged after its lanes are (`reduce_ordered`). Where lanes are
// elements of vectors, the loads of a batch lie side by side instead. Each merge of two loads is
// then one of neighbouring lanes of both (`tree_in_order`), so that lanes end up with such runs,
// too. Other folds of such a program keep a state a lane, over the same loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/row_merges.hpp"
#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

/// A partial result of one fold. Lifted, it is a state. Not lifted, it is one tile value that
/// stands for lift(value). Moments that are not lifted are a count, the value that all are relative
/// to, a mean and squares. Where they are relative to 0, that value is left out.
struct Partial {
  std::vector<ValueId> fields;
  bool lifted = false;
  bool complete = false;  ///< every lane of a group already holds its group's result
  bool absorbed = false;  ///< what came before is merged into it already
  /// Moments: a group's lanes hold its count and its mean, and each lane squares of its own.
  bool centred = false;

  /// Of moments that are not lifted whether they are relative to a value, and its field.
  static constexpr std::size_t kPilot = 1;
  [[nodiscard]] bool has_pilot() const {
    constexpr std::size_t kFields = 4;
    return !lifted && fields.size() == kFields;
  }
  /// Whether all lanes of a group hold the same in a field of moments: all but the squares, or what
  /// these are relative to.
  [[nodiscard]] bool is_shared(std::size_t field) const {
    if (centred) return field + 1 < fields.size();
    return has_pilot() && field == kPilot;
  }
};
using Partials = std::vector<Partial>;  // one a fold
/// One state a fold, or none before anything was folded.
using OptionalPartials = std::vector<std::optional<Partial>>;
/// What elements have of each fold; kNoValue, or no list, where no output asks for it.
struct Broadcasts {
  std::vector<ValueId> running{};  ///< of its scan
  std::vector<ValueId> whole{};    ///< of itself, over the element's segment
};
/// What a warp loaded for one tile: a vector of `width` elements a lane of each input.
struct Loaded {
  std::vector<ValueId> inputs;
  /// Lanes that hold elements; the others hold zeros. Where Plan::mean_loads is set lanes of
  /// segments that do not exist are not left out: whatever comes of their zeros goes nowhere.
  ValueId mask = kNoValue;
  /// The index within its segment of a lane's first element, i64; only where the graph asks for it.
  /// Where segments begin within loads, of each element.
  ValueId position = kNoValue;
  int width = 1;
  bool across = false;  ///< a lane's elements belong to segments side by side, at one position
  ValueId valid =
      kNoValue;        ///< a boolean an element: which belong to the lane's segment; none: all
  bool zeros = false;  ///< those that are not valid are zeros

  /// What leaves elements out is a value of a branch that has ended.
  void forget_what_exists() {
    mask = valid = kNoValue;
    zeros = false;
  }
};
/// What `body` does, by the first of a block's `warps` warps.
void on_first_warp(Builder& builder, int warps, const std::function<void()>& body);
/// Loads of a batch in runs of `loads`, one run's first element `apart` (i64) from the next's.
struct LoadRuns {
  int loads = 0;  ///< 0: there is one run
  ValueId apart = kNoValue;
};
/// The parts of TileLowering:
/// - values of nodes, what is folded of a tile and merged (tile.cpp, by matrix instructions
///   mma.cpp)
/// - loads (loads.cpp)
/// - batches and ranges of elements (range.cpp)
/// - merges across lanes and the outputs (lanes.cpp)
/// - guards (guard.cpp)
/// - quick folds (quick.cpp)
/// - values and their places (place.cpp)
/// - sums relative to the largest element (relative.cpp)
/// - moments (moments.cpp).
class TileLowering {
 public:
  TileLowering(Builder& builder, const Graph& graph, const Plan& plan);

  /// Whether elements must be merged in order.
  [[nodiscard]] bool ordered() const { return ordered_; }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  /// Loads come from the launch's shared arrays, one an input, whose element bases[i] is what
  /// addresses count from.
  void read_stage(std::vector<ValueId> bases) {
    bases_ = std::move(bases);
    staged_ = true;
  }
  /// Loads come from the inputs again.
  void read_inputs() {
    bases_.clear();
    staged_ = false;
  }
  /// What addresses count from in each input. Where groups of lanes lie in rows of their own, these
  /// are steps[i] apart.
  void place(std::vector<ValueId> bases, std::vector<ValueId> steps = {}) {
    bases_ = std::move(bases);
    steps_ = std::move(steps);
  }
  /// From now on load() prefetches the elements so many (uniform i64) behind what it loads;
  /// kNoValue: nothing. At first it does as the plan says (PlanHints::read_ahead).
  void read_ahead(ValueId elements) { ahead_ = elements; }
  void read_ahead_as_planned();
  /// place() at the segment `row` of strided inputs, whose next ones are their strides apart.
  void place_at_row(ValueId row);
  /// Elements between the rows of an input, a parameter of strided plans.
  ValueId stride(std::size_t input);
  [[nodiscard]] bool uses_input(std::size_t input) const { return input_used_[input]; }
  /// The inputs that folds or filters read, `width` elements a lane; lanes' positions as above.
  /// `rows`: each group of lanes reads a row of its own (place).
  Loaded load(const Address& at, int width, ValueId mask, ValueId position, bool rows = false);
  /// One element of the inputs, uniform, at `position` (uniform i64) in its segment.
  Loaded load_one(ValueId at, ValueId position);
  /// load() of lanes of segments that exist (`row_mask`) and of what lies `inside` of them, which
  /// inside() tells.
  Loaded load_inside(const Address& at, int width, ValueId row_mask, ValueId inside,
                     ValueId position, bool rows = false);
  /// Whether what each lane loads from its `offset` in a segment on lies before `end`. That is one
  /// boolean, or, where segments end within loads, one an element. `offset` and `end` are of one
  /// type.
  ValueId inside(ValueId offset, ValueId end);
  /// Positions of lanes. Each group of `group` lanes covers a run of one segment, `lane_stride`
  /// elements a lane, from its element `first` (uniform i64) on.
  ValueId positions(ValueId first, int group, int lane_stride);
  [[nodiscard]] bool uses_index() const { return uses_index_; }
  [[nodiscard]] const FoldPlan& how(std::size_t fold) const { return plan_.folds[own(fold)]; }
  /// Whether lanes are elements of vectors (Target::vector_lanes).
  [[nodiscard]] bool vector_lanes() const { return plan_.vector_lanes; }
  /// Whether places are looked for only where there is a better value (PlanHints::screens).
  [[nodiscard]] bool screens() const { return plan_.hints.screens; }
  /// Whether what a matrix instruction gives is tested for NaN and infinities.
  [[nodiscard]] bool guarded() const { return plan_.promises.guard; }
  /// Whether quads of lanes sum a tile's elements of this fold (Unit::mma_scan); these as operand
  /// A.
  [[nodiscard]] bool by_quads(std::size_t fold, const Loaded& tile) const {
    return how(fold).unit == Unit::mma_scan && tile.width == plan_.load_width;
  }
  ValueId quads_of(std::size_t fold, const Loaded& tile);
  /// Neighbouring lanes that hold the same after fold_tile().
  [[nodiscard]] int lanes_alike() const;
  /// Every fold's partial of one tile, a value (or state) a lane.
  Partials fold_tile(const Loaded& tile);
  /// Every fold's partial of each element by itself: fields are as wide as the load, or one for
  /// all.
  Partials fold_elements(const Loaded& tile);
  /// `tiles` tiles that cover the elements from `begin` on, loads at or beyond `limit` masked
  /// (kNoValue: none), of the segment that begins at `origin`. The first `whole` tiles of
  /// consecutive loads are known to end before the limit.
  std::vector<Loaded> load_batch(ValueId begin, int tiles, ValueId limit, ValueId row_mask,
                                 ValueId origin, int whole = 0, const LoadRuns& runs = {});
  /// The merge of partials of runs that follow each other, neighbours first.
  Partials merge_all(std::vector<Partials> parts);
  Partial tree(std::size_t fold, std::vector<Partial> parts);
  /// Moments of rows: what follows is taken relative to the first element of the segment that a
  /// group of lanes shares. The segment's first load is `first`. Moments that are filtered,
  /// whose first element may be none, and those of f16 and bytes are not.
  void set_pilots(const Loaded& first, int group);
  void forget_pilots() { pilots_.clear(); }
  /// The merged partials of tiles whose loads are all in flight. In rows of segments side by side
  /// (Loaded::across), each element has its own. With group > 0 they are all that groups of so many
  /// lanes have of their segments.
  Partials fold_batch(const std::vector<Loaded>& batch, int group = 0) {
    return fold_batch(batch, group, nullptr);
  }
  /// Whether a fold gains from seeing all of a lane's loads at once.
  [[nodiscard]] bool has_moments() const;
  /// The partials of elements [begin, begin + length) of the buffers, spread over a warp's lanes;
  /// `warp` of `warps` warps shares the range with the others. begin, length and origin (the first
  /// element of the segment) are uniform i64.
  Partials fold_range(ValueId begin, ValueId length, ValueId origin, ValueId row_mask, ValueId warp,
                      int warps);

  // Places in order (place.cpp): folds with Fold::place that are merged in order.
  /// Whether a value is better than another one by itself. NaN is not worse than anything, and
  /// nothing is better than it.
  ValueId is_better(std::size_t fold, ValueId value, ValueId other);
  /// Whether a lane has elements or states that may change the state of what comes before them, or
  /// behind them in memory (`ahead`). Their values are `value`.
  ValueId changes_place(std::size_t fold, const Partial& state, ValueId value, bool ahead = false);
  /// The state of all lanes behind `before`, which all of them have. Few rows of many change it.
  Partial with_better_place(std::size_t fold, const Partial& before, const Partial& lanes);

  // Quick folds (quick.cpp).
  /// Whether some fold has those that serve ordinary elements.
  [[nodiscard]] bool has_quick() const { return has_quick_folds(graph_); }
  /// `total`: the folds of `scans`, and behind all folds the quick ones' QuickFold::rest.
  enum class Form : std::uint8_t { own, scans, total };
  /// How many folds partials are of now.
  [[nodiscard]] std::size_t count() const {
    return graph_.folds.size() + (form_ == Form::total ? quick_.size() : 0);
  }
  /// The graph's fold that one of them belongs to.
  [[nodiscard]] std::size_t own(std::size_t fold) const {
    return fold < graph_.folds.size() ? fold : quick_[fold - graph_.folds.size()];
  }
  /// The fold that partials are of now: the graph's own, or within quickly() a quick one.
  [[nodiscard]] const Fold& fold_of(std::size_t fold) const {
    const Fold& own_fold = graph_.folds[own(fold)];
    if (!own_fold.quick || form_ == Form::own) return own_fold;
    return fold < graph_.folds.size() ? own_fold.quick->scans : own_fold.quick->rest;
  }
  /// Whether a filter leaves elements out.
  [[nodiscard]] bool is_filtered(std::size_t fold) const {
    return fold_node(fold).filter != kNoNode;
  }
  [[nodiscard]] bool is_quick() const { return form_ != Form::own; }
  /// What `body` does by quick folds of a form.
  template <class Body>
  auto quickly(Form form, const Body& body) {
    const Form outer = std::exchange(form_, form);
    auto result = body();
    form_ = outer;
    return result;
  }
  /// Of each lane whether quick folds serve what elements it has of loaded rows. `alone`: nothing
  /// asks for their totals.
  ValueId quick_serves(const std::vector<Loaded>& rows, bool alone = false);
  /// The states of whole runs as `body` folds them by quick folds, as the graph's own. `serves`
  /// becomes false (lanes) where one does not hold. What is beside the scans' states `body` leaves
  /// a partial a lane, or complete, but for unflatten(), which would not tell.
  Partials quick_totals(ValueId& serves, const std::function<Partials()>& body);
  /// quick_totals() where they serve, else what `slow` folds; of folds without a quick one theirs.
  Partials chosen_totals(ValueId serves, const Partials& totals,
                         const std::function<Partials()>& slow);
  /// All of that for loaded rows; `slow` is `body` unless it is given.
  Partials either(const std::vector<Loaded>& rows, const std::function<Partials()>& body,
                  const std::function<Partials()>& slow = nullptr);
  /// What comes before elements as the quick folds' scans take it. `serves` becomes false (lanes)
  /// where that, or what is given, is not below their limit.
  OptionalPartials narrowed(ValueId& serves, const OptionalPartials& before);
  /// What comes of a scan: values, and states of what comes before the next elements.
  struct Scanned {
    std::vector<ValueId> values{};
    OptionalPartials states{};
  };
  using Scan = std::function<Scanned(OptionalPartials before)>;
  /// `quick`, by the quick folds' scans from what comes before as theirs, if all lanes are served,
  /// else `slow` by the graph's own. The states of quick folds are those that `behind` gives.
  Scanned either(ValueId serves, const OptionalPartials& before, const Scan& quick,
                 const std::function<Partial(std::size_t)>& behind, const Scan& slow);

  // Guards (guard.cpp).
  /// Whether some fold has values for which only a fold by elements holds (Fold::guard).
  [[nodiscard]] bool has_guards() const;
  [[nodiscard]] bool is_guarded(std::size_t fold) const { return guarded_[own(fold)]; }
  /// Of each lane whether partials are such, and of each of its elements; kNoValue where there are
  /// no guards.
  ValueId exceeds(const Partials& partials);
  ValueId exceeding(const Partials& partials);
  /// fold_range(), the whole range by its elements where a lane's partials do not hold: states.
  Partials fold_range_safely(ValueId begin, ValueId length, ValueId origin, ValueId row_mask,
                             ValueId warp, int warps);

  Partial identity(std::size_t fold);
  Partials identities();  ///< of all folds
  /// The same as a state or as a tile value.
  Partial neutral(std::size_t fold, bool lifted);
  /// The identity where the condition is false.
  Partial keep_where(std::size_t fold, Partial part, ValueId condition);
  Partial merge(std::size_t fold, const Partial& a, const Partial& b);
  Partials merge(const Partials& a, const Partials& b);
  Partial lift(std::size_t fold, const Partial& a);
  Partials lift(Partials a);
  /// Lifted sums and the like back to one rounded value, so that later merges are cheap.
  Partials collapse(Partials a);
  Partial collapse(std::size_t fold, Partial a);
  /// Every lane of a group of `lanes` lanes receives the merge over bits [first, lanes) of the
  /// group.
  Partials reduce_lanes(Partials a, int first, int lanes);
  /// Over the given bits of the lane's number, in their order.
  Partials reduce_lanes(Partials a, const std::vector<int>& bits);
  Partial reduce(std::size_t fold, Partial a, const std::vector<int>& bits);
  /// Over lane bits from `first` on, after which it is complete.
  Partial of_warp(std::size_t fold, Partial a, int first);
  /// Folds that are not commutative become complete: their warp's lanes are merged in order, over
  /// lane bits from `first` on.
  Partials reduce_ordered(Partials a, int first = 1);
  /// Two rows in, one out: lanes of the result belong to a or b as `pair` says. By exchanges of
  /// lanes (`pair` moves no bit), or by patterns that take lanes of both, if the plan says so.
  Partials pair_rows(const Partials& a, const Partials& b, LanePair pair);
  Partial pair_rows(std::size_t fold, const Partial& a, const Partial& b, LanePair pair);
  /// Type-stable form for carrying through loops and branches: lifted, lane-shaped fields of
  /// `width` elements. Where all of a lane's have the same, the count of moments, it is one
  /// element. That may stay uniform (`same_counts`) where it always is.
  std::vector<ValueId> flatten(const Partials& lifted, int width = 1, bool same_counts = false);
  /// `reduced`: folds that are not commutative were complete.
  Partials unflatten(const std::vector<ValueId>& fields, bool reduced = false);

  /// The outputs with a value a segment, in the graph's order (kNoValue for the others), from every
  /// fold's finished partial. `extent` is the i64 number of elements of the segment.
  std::vector<ValueId> finish(const Partials& partials, ValueId extent);
  /// The value of one fold, or another of its results.
  ValueId finalize(std::size_t fold, const Partial& partial, int part = 0);
  /// The outputs of `level` (kNoValue for the others), computed for every element of a tile.
  std::vector<ValueId> finish_elements(const Loaded& tile, const Broadcasts& values, ValueId extent,
                                       Level level = Level::element);

 private:
  struct Scope {
    std::map<NodeId, ValueId> values;
    ValueId position = kNoValue;
    int width = 1;
    bool across = false;
  };
  /// The values of the inputs' nodes in a tile; others are added as they are computed.
  Scope scope_of(const Loaded& tile) const;
  [[nodiscard]] std::int64_t least_batches(std::int64_t chunk) const;
  ValueId node_value(NodeId id, Scope& scope);
  std::vector<ValueId> outputs_of(Level level, Scope& scope);
  ValueId uniform_value(NodeId id);
  /// The indices of the tile's elements within their segments.
  ValueId index_value(const Scope& scope);
  Partial fold_element(std::size_t fold, const Loaded& tile, Scope& scope);
  Partial fold_simt(std::size_t fold, const Loaded& tile, Scope& scope);
  /// Whether states take elements one by one, since no operation combines these first.
  [[nodiscard]] bool takes_elements(std::size_t fold) const {
    const Fold& f = fold_of(fold);
    return f.accumulate && !f.tile && f.commutative;
  }
  /// The same of loads one behind the other, by such states: one for each element of a load, until
  /// the last one is in.
  Partial accumulate(std::size_t fold, const std::vector<Loaded>& batch);
  Partial merge_halves(std::size_t fold, Partial part, int width);
  /// One fold of one tile.
  Partial fold_one(std::size_t fold, const Loaded& tile, Scope& scope);

  // Values and their places (place.cpp).
  /// What a loop carries into a batch.
  struct Before {
    const Partials& states;
    ValueId from = kNoValue;  ///< the batch's first index in its segment, uniform i64
    LoadRuns runs{};
  };
  /// Folds that are screened are merged with their states before the batch (Partial::absorbed).
  Partials fold_batch(const std::vector<Loaded>& batch, int group, const Before* before);
  /// Whether a fold's second operand is the element's index, in the order of a lane's elements.
  [[nodiscard]] bool has_place(std::size_t fold) const;
  /// The state of a load's elements, of which `filter` (kNoValue: all) tells which count.
  Partial locate(std::size_t fold, const Loaded& tile, ValueId value, ValueId filter);
  Partial locate_by_keys(std::size_t fold, const Loaded& tile, ValueId value, ValueId filter);
  /// Whether few batches change the fold's state, which one comparison finds.
  [[nodiscard]] bool is_screened(std::size_t fold) const;
  Partial screen(std::size_t fold, const std::vector<Loaded>& batch, const Before& before);

  /// A batch of a fold with Fold::relative (relative.cpp).
  Partial fold_relative(std::size_t fold, const std::vector<Loaded>& batch);
  /// States of it across lanes: each takes one term, relative to the largest one of all.
  Partial reduce_relative(std::size_t fold, const Partial& a, const std::vector<int>& bits);

  // Moments (moments.cpp).
  static constexpr std::size_t kCount = 0;  ///< the field of their states that counts
  /// The values that a fold takes from a tile, and which of them count.
  struct Sample {
    ValueId values = kNoValue, keep = kNoValue, mask = kNoValue;
    bool across = false;  ///< its elements are of segments side by side
  };
  [[nodiscard]] ValueId pilot_of(std::size_t fold) const {
    return pilots_.empty() ? kNoValue : pilots_[fold];
  }
  Partial fold_moments(std::size_t fold, const std::vector<Loaded>& batch, int group);
  Partial moments_near(std::size_t fold, std::vector<Sample> samples, ValueId pilot, int group);
  Partial merge_near(std::size_t fold, const Partial& a, const Partial& b);
  Partial lift_moments(std::size_t fold, const Partial& near);
  /// The first of what a lane has of the samples, or, of loads across segments, each segment's.
  ValueId first_of(const std::vector<Sample>& samples);
  ValueId difference(ValueId value, ValueId pilot);
  /// Whether values, of floats, are those of f16 or of a byte, of at most 11 digits.
  [[nodiscard]] bool has_few_digits(std::size_t fold) const;
  [[nodiscard]] bool group_knows_count(std::size_t fold) const;
  /// Whether what a state counts are all elements of a lane.
  [[nodiscard]] bool knows_count(std::size_t fold) const;
  Sample sample_of(std::size_t fold, const Loaded& tile, Scope& scope);
  ValueId count_of(const std::vector<Sample>& samples);
  ValueId sum_of(std::size_t fold, const std::vector<Sample>& samples);
  ValueId squares_of(const std::vector<Sample>& samples, ValueId mean);
  ValueId add_squares(const Sample& sample, const std::vector<ValueId>& vectors);
  /// Halves by an operation, until one element a lane is left.
  ValueId combine_halves(Op op, ValueId v);
  /// What becomes of a lane's elements in one segment.
  ValueId total_of(const Sample& sample, ValueId v) {
    return sample.across ? v : combine_halves(Op::add, v);
  }
  /// Values pairwise, neighbours first, by an operation; and what a group of lanes holds.
  ValueId combine_all(Op op, std::vector<ValueId> values);
  ValueId combine_group(Op op, ValueId value, int group);

  /// Whether the node is zero where all inputs are zero, so that masked lanes need no further care.
  [[nodiscard]] bool keeps_zero(NodeId id) const;
  /// Whether zeros in the place of masked elements leave the fold's value alone.
  bool zeros_are_harmless(std::size_t fold) const;
  NodeId narrow_sum(const Fold& fold, NodeId operand, int width) const;
  /// The merge of what the lanes of a group hold. If the fold needs its order, a lane with bit
  /// `mask` clear sees (mine, other), and the others see (other, mine).
  Partial merge_across(std::size_t fold, const Partial& mine, const Partial& other, int mask);
  Partial pair_by_patterns(std::size_t fold, const Partial& x, const Partial& y, LanePair pair);
  Partial pair_by_exchange(std::size_t fold, const Partial& x, const Partial& y, LanePair pair);
  ValueId has_lane_bit(int mask);
  /// Elements [first, first + width) of each lane, neighbours merged first. Few states are alive at
  /// once.
  Partial fold_in_order(std::size_t fold, const std::vector<ValueId>& operands, ValueId filter,
                        int first, int width);
  Partial fold_mma(std::size_t fold, const Loaded& tile);
  Partial fold_quads(std::size_t fold, const Loaded& tile);
  std::vector<ValueId> call(const Lambda& lambda, const std::vector<ValueId>& arguments);
  const Node& fold_node(std::size_t fold) const;
  /// What finalize is given behind a state.
  void append_given(std::size_t fold, std::vector<ValueId>& state);
  [[nodiscard]] std::span<const NodeId> operands_of(std::size_t fold) const;  ///< of its lift
  /// Of loads side by side, in order: lane l of the result has the l-th run of their elements.
  Partial tree_in_order(std::size_t fold, std::vector<Partial> parts);

  /// What a warp folds of a range, in this order: a head, middle intervals, a rest and a tail, some
  /// of which may be nothing. The middle intervals are [at, at + length) for every `stride`th `at`
  /// of [first, stop).
  struct Intervals {
    struct One {
      ValueId begin = kNoValue, end = kNoValue;
      ValueId by = kNoValue;  ///< whether it is this warp's; kNoValue: it is
    };
    ValueId first = kNoValue, stop = kNoValue, stride = kNoValue, length = kNoValue;
    std::optional<One> head{}, rest{}, tail{};
  };
  /// fold_range(), and what of it is this warp's.
  Partials fold_share(ValueId begin, ValueId length, ValueId origin, ValueId row_mask, ValueId warp,
                      int warps, Intervals& own);
  Partials fold_intervals(const Intervals& own, ValueId origin, ValueId row_mask);

  friend class TileByElements;
  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  std::vector<bool> guarded_;       // one a fold
  std::vector<std::size_t> quick_;  // folds that have quick ones
  Form form_ = Form::own;
  ValueId ahead_ = kNoValue;
  std::vector<NodeId> fold_nodes_;
  std::vector<bool> input_used_;
  std::vector<ValueId> pilots_;  // one a fold, kNoValue: it has none; or none at all
  std::vector<ValueId> bases_;   // one an input, or none: addresses are the inputs' own
  std::vector<ValueId> steps_;
  bool staged_ = false;  // loads come from shared memory
  bool ordered_ = false, uses_index_ = false;
};
/// The same elements at the same places as `of`, one a lane at a time and by lift and merge alone.
/// That is little code, for values that would not hold otherwise. States are those of `of`.
class TileByElements {
 public:
  TileByElements(Builder& builder, const TileLowering& of);
  TileByElements(const TileByElements&) = delete;
  TileByElements& operator=(const TileByElements&) = delete;
  [[nodiscard]] TileLowering& tile() { return tile_; }

 private:
  Graph graph_;
  Plan plan_;
  TileLowering tile_;
};

}  // namespace chainfold::codegen
