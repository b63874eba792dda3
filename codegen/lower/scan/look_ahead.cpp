// lower_look_ahead: scans of the whole input, or of segments of several tiles, by blocks that stay.
//
// A block takes one tile after the other by tickets, always some tiles before it works on them, and
// has their elements under way. In each trip it folds one tile and publishes the fold. Then it
// scans the tile before that one behind what comes before it. Others have published that since, so
// there is hardly anything to wait for (tile_tree.hpp).
//
// Where there is shared memory tiles come by copies and stay there between their fold and their
// scan. So blocks need registers for no more than a few rows. A CPU's tiles are ranges of memory
// and stay in its cache. While a thread stores one, its loads prefetch the tile that it has just
// taken, so that memory is read and written at once.
//
// All blocks of warps take the same number of tiles; a CPU's threads, of which some are slower, as
// many as they come to. Waits end whatever the occupancy: a tile's fold is published before the
// block waits under its ticket or a later one.
#include "chainfold/codegen/lower/scan/look_ahead.hpp"

#include <memory>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/block.hpp"
#include "chainfold/codegen/lower/scan/params.hpp"
#include "chainfold/codegen/lower/scan/ring.hpp"
#include "chainfold/codegen/lower/scan/tile_tree.hpp"
#include "chainfold/codegen/lower/scan/tiles.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

/// What a block does with its tiles, by the numbers in which it takes them and their tickets.
class AheadTiles {
 public:
  AheadTiles(Builder& builder, const Graph& graph, const Plan& plan, const TileParams& params,
             const TileTree& tree)
      : b_(builder), graph_(graph), tree_(tree), tiles_(builder, graph, plan, params) {}
  AheadTiles(const AheadTiles&) = delete;
  AheadTiles& operator=(const AheadTiles&) = delete;
  virtual ~AheadTiles() = default;

  /// Brings the elements of a tile on their way.
  virtual void start(ValueId number, ValueId ticket) = 0;
  /// Folds a tile; what it returns publish() and scan() get back.
  virtual Builder::Values fold(ValueId number, ValueId ticket) = 0;
  virtual void publish(ValueId number, ValueId ticket, const Builder::Values& folded) = 0;
  /// Scans a tile while those of `next`, a ticket, come.
  virtual void scan(ValueId number, ValueId ticket, const Builder::Values& folded,
                    ValueId next) = 0;
  /// Values like those of fold().
  virtual Builder::Values nothing() = 0;

  [[nodiscard]] ScanTiles& tiles() { return tiles_; }

 protected:
  /// Scans the run of the tile at which the tiles are; `in_block`: what comes before the warp's run
  /// in it; `own`: the fold of all of it.
  void scan_placed(ValueId ticket, const std::function<Partials()>& in_block,
                   const std::function<Partials()>& own, const TileTree::Refold& refold = {}) {
    ScanTile& run = tiles_.run();
    const Partials before_run = in_block(), carried = tiles_.carried_in();
    const Partials looked = tree_.before(b_, tiles_, ticket, own, false, refold);
    const Partials before = run.merge(carried, looked);
    tiles_.scan(run.merge(before, before_run), std::vector<ValueId>(graph_.folds.size(), kNoValue));
    tiles_.store_folds([&] { return run.merge(before, own()); });
  }

  Builder& b_;
  const Graph& graph_;
  const TileTree& tree_;
  ScanTiles tiles_;
};

/// In shared memory, where a ring of copies brings them.
class StagedTiles final : public AheadTiles {
 public:
  StagedTiles(Builder& builder, Program& program, const Graph& graph, const Plan& plan,
              const TileParams& params, const TileTree& tree)
      : AheadTiles(builder, graph, plan, params, tree),
        warps_(plan.warps),
        ring_(builder, program, graph, plan, tiles_.run()),
        block_(builder, program, graph, tiles_.run()) {
    tiles_.read_from_stage();
    block_.declare(2);
  }

  void start(ValueId number, ValueId ticket) override {
    tiles_.place(ticket);
    ring_.start(number, tiles_.begin(), tiles_.count());
  }
  Builder::Values fold(ValueId number, ValueId ticket) override {
    tiles_.place(ticket);
    ring_.wait(number);
    ring_.read(number, tiles_.begin());
    block_.put(tiles_.total(), totals_of(number));
    return {};
  }
  void publish(ValueId number, ValueId ticket, const Builder::Values&) override {
    on_first_warp(b_, warps_, [&] {
      tiles_.place(ticket);
      block_.get(totals_of(number));
      tree_.publish(b_, tiles_, ticket, block_.all());
    });
  }
  void scan(ValueId number, ValueId ticket, const Builder::Values&, ValueId) override {
    tiles_.place(ticket);
    ring_.read(number, tiles_.begin());
    block_.get(totals_of(number));
    scan_placed(ticket, [&] { return block_.before_warp(); }, [&] { return block_.all(); });
  }
  Builder::Values nothing() override { return {}; }

 private:
  /// Where the totals of the tile's warps are: those of the tile before are still needed.
  ValueId totals_of(ValueId number) {
    return b_.mul(b_.compute(Op::bit_and, {number, b_.i64(1)}), b_.i64(warps_));
  }

  int warps_;
  ScanRing ring_;
  ScanBlock block_;
};

/// Ranges of memory, which stay in the cache of a CPU's core.
class RangeTiles final : public AheadTiles {
 public:
  RangeTiles(Builder& builder, const Graph& graph, const Plan& plan, const TileParams& params,
             const TileTree& tree)
      : AheadTiles(builder, graph, plan, params, tree), others_(builder, graph, plan, params) {}

  void start(ValueId, ValueId) override {}  // scan() asks for them
  Builder::Values fold(ValueId, ValueId ticket) override {
    return lowering().flatten(tiles_.total_of(ticket));
  }
  void publish(ValueId, ValueId ticket, const Builder::Values& folded) override {
    tiles_.place(ticket);
    tree_.publish(b_, tiles_, ticket, lowering().unflatten(folded, true));
  }
  void scan(ValueId, ValueId ticket, const Builder::Values& folded, ValueId next) override {
    const ValueId all = b_.mul(tiles_.counts(), tiles_.tiles());
    tiles_.place(next);
    const ValueId wanted = tiles_.begin();
    tiles_.place(ticket);
    // Behind the last tile there is none: to prefetch what is here already costs nothing.
    tiles_.run().read_ahead(b_.select(b_.lt(next, all), b_.sub(wanted, tiles_.begin()), b_.i64(0)));
    scan_placed(
        ticket, [&] { return lowering().identities(); },
        [&] { return lowering().unflatten(folded, true); },
        [&](ValueId late) { return others_.total_of(late); });
  }
  Builder::Values nothing() override { return lowering().flatten(lowering().identities()); }

 private:
  TileLowering& lowering() { return tiles_.run().tile(); }

  ScanTiles others_;  // that other threads have taken
};

/// The trips of a block.
class LookAhead {
 public:
  LookAhead(Builder& builder, const Plan& plan, const TileParams& params, const TileTree& tree,
            AheadTiles& work)
      : b_(builder), plan_(plan), tree_(tree), work_(work) {
    all_ = b_.mul(b_.param(params.segments), work_.tiles().tiles());
    if (!of_equal_blocks()) return;
    const ValueId blocks = b_.min(all_, b_.i64(plan.blocks));
    rounds_ = b_.div(b_.add(all_, b_.sub(blocks, b_.i64(1))), blocks);
  }

  void lower() {
    Builder::Values tickets{tree_.ticket(b_)};
    // Each ticket is a later one than the one before it.
    if (!of_equal_blocks()) rounds_ = b_.compute(Op::max, {b_.i64(0), b_.sub(all_, tickets[0])});
    start(b_.i64(0), tickets[0]);
    for (int number = 1; number < ahead(); ++number) {
      tickets.push_back(take(b_.i64(number), tickets.back()));
      start(b_.i64(number), tickets.back());
    }
    Builder::Values first = work_.nothing();  // of no tile yet
    first.push_back(tickets[0]);
    first.insert(first.end(), tickets.begin(), tickets.end());
    b_.loop(b_.i64(0), b_.add(rounds_, b_.i64(1)), b_.i64(1), first,
            [&](ValueId number, const Builder::Values& carried) { return round(number, carried); });
  }

 private:
  /// Tiles that are taken before the one that is folded is scanned.
  [[nodiscard]] int ahead() const { return plan_.stages - 1; }
  [[nodiscard]] bool of_equal_blocks() const { return plan_.scan.in_registers; }

  void when(ValueId condition, const std::function<void()>& body) {
    b_.branch(
        condition,
        [&] {
          body();
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  }
  /// The ticket of the block's tile `number`; `last`, the one before it, if it has no such tile.
  /// Barriers of all warps either way.
  ValueId take(ValueId number, ValueId last) {
    return b_.branch_uniform(
        of_equal_blocks() ? b_.lt(number, rounds_) : b_.lt(last, all_),
        [&] { return tree_.ticket(b_); },
        [&] {
          if (plan_.warps > 1) b_.barrier();
          return last;
        });
  }
  /// Whether the block's tile `number`, which it took as `ticket`, is there.
  ValueId exists(ValueId number, ValueId ticket) {
    return b_.both(b_.lt(number, rounds_), b_.lt(ticket, all_));
  }
  void start(ValueId number, ValueId ticket) {
    when(exists(number, ticket), [&] { work_.start(number, ticket); });
  }

  /// Folds the block's tile `number` and scans the one before it. `carried`: what is known of the
  /// latter, its ticket, the former's, and those of tiles that are on their way.
  Builder::Values round(ValueId number, const Builder::Values& carried) {
    const Builder::Values nothing = work_.nothing();
    const auto fields = static_cast<std::ptrdiff_t>(nothing.size());
    const Builder::Values of_scanned(carried.begin(), carried.begin() + fields);
    const ValueId scanned = carried[nothing.size()], folded = carried[nothing.size() + 1];
    const ValueId here = exists(number, folded);
    const Builder::Values of_folded =
        b_.branch(here, [&] { return work_.fold(number, folded); }, [&] { return nothing; });
    const ValueId next = b_.add(number, b_.i64(ahead()));
    const ValueId taken = take(next, carried.back());
    when(here, [&] { work_.publish(number, folded, of_folded); });
    const ValueId before = b_.sub(number, b_.i64(1));
    when(b_.both(b_.compute(Op::ge, {before, b_.i64(0)}), b_.lt(scanned, all_)),
         [&] { work_.scan(before, scanned, of_scanned, taken); });
    start(next, taken);
    Builder::Values behind = of_folded;
    behind.insert(behind.end(), carried.begin() + fields + 1, carried.end());
    behind.push_back(taken);
    return behind;
  }

  Builder& b_;
  const Plan& plan_;
  const TileTree& tree_;
  AheadTiles& work_;
  ValueId all_ = kNoValue, rounds_ = kNoValue;  // tiles; of a block, at most
};

}  // namespace

Program lower_look_ahead(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "scan_look_ahead";
  declare_graph(program, graph, plan, target);
  const TileParams params = declare_tiles(program, graph, plan);
  TileTree tree(program, graph, plan, params);
  program.launches.reserve(2);
  tree.lower_clear(target);
  program.launches.push_back({.name = "scan_look_ahead",
                              .grid = min(params.all(), plan.blocks),
                              .warps = plan.warps,
                              .min_blocks = plan.occupancy,
                              .grain = plan.scan.in_registers ? 1 : 0,
                              .bulk_copies = target.bulk_copies,
                              .non_temporal = params.streams(graph, plan, target)});
  Builder b(program);
  std::unique_ptr<AheadTiles> work;
  if (plan.scan.in_registers) {
    work = std::make_unique<StagedTiles>(b, program, graph, plan, params, tree);
  } else {
    work = std::make_unique<RangeTiles>(b, graph, plan, params, tree);
  }
  LookAhead(b, plan, params, tree, *work).lower();
  return program;
}

}  // namespace chainfold::codegen
