// lower_look_ahead: scans of everything, or of segments of several tiles, by blocks that stay.
//
// A block takes one tile after the other by tickets, always some tiles before it works on them, and
// has the copies of their elements under way. In each round it folds one tile and publishes the
// fold, and scans the tile before that one behind what comes before it: which others have published
// since, so that there is hardly anything to wait for (lower_tile_tree.hpp). Elements stay in
// shared memory between the two, and blocks need registers for no more than a few rows.
//
// All blocks take the same number of tiles. Waits end with any number of resident blocks: a tile's
// fold is published before the block waits under its ticket or a later one.
#include <utility>

#include "chainfold/codegen/lower.hpp"
#include "chainfold/codegen/lower_scan_ring.hpp"
#include "chainfold/codegen/lower_tile_tree.hpp"

namespace chainfold::codegen {

namespace {

class LookAhead {
 public:
  LookAhead(Program& program, const Graph& graph, const Plan& plan, const TileParams& params,
            const TileTree& tree)
      : graph_(graph),
        plan_(plan),
        tree_(tree),
        b_(program),
        tiles_(b_, graph, plan, params),
        ring_(b_, program, graph, plan, tiles_.run()),
        block_(b_, program, graph, tiles_.run()) {
    tiles_.read_from_stage();
    block_.declare(2);
    all_ = b_.mul(b_.param(params.segments), tiles_.tiles());
    const ValueId blocks = b_.min(all_, b_.i64(plan.blocks));
    rounds_ = b_.div(b_.add(all_, b_.sub(blocks, b_.i64(1))), blocks);
  }

  void lower() {
    Builder::Values tickets{tree_.ticket(b_)};
    start(b_.i64(0), tickets[0]);
    for (int number = 1; number < ahead(); ++number) {
      tickets.push_back(take(b_.i64(number), tickets.back()));
      start(b_.i64(number), tickets.back());
    }
    tickets.insert(tickets.begin(), tickets[0]);  // of no tile yet
    b_.loop(b_.i64(0), b_.add(rounds_, b_.i64(1)), b_.i64(1), tickets,
            [&](ValueId number, const Builder::Values& carried) { return round(number, carried); });
  }

 private:
  /// Tiles that are taken before the one that is folded is scanned.
  [[nodiscard]] int ahead() const { return plan_.stages - 1; }

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
        b_.lt(number, rounds_), [&] { return tree_.ticket(b_); },
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
    when(exists(number, ticket), [&] {
      tiles_.place(ticket);
      ring_.start(number, tiles_.begin(), tiles_.count());
    });
  }
  /// Where the totals of the tile's warps are: those of the tile before are still needed.
  ValueId totals_of(ValueId number) {
    return b_.mul(b_.compute(Op::bit_and, {number, b_.i64(1)}), b_.i64(plan_.warps));
  }

  /// Folds the block's tile `number` and scans the one before it. `carried`: the tickets of the
  /// latter, the former, and those whose copies are under way.
  Builder::Values round(ValueId number, const Builder::Values& carried) {
    const ValueId scanned = carried[0], folded = carried[1];
    const ValueId here = exists(number, folded);
    when(here, [&] {
      tiles_.place(folded);
      ring_.wait(number);
      ring_.read(number, tiles_.begin());
      block_.put(tiles_.total(), totals_of(number));
    });
    const ValueId next = b_.add(number, b_.i64(ahead()));
    const ValueId taken = take(next, carried.back());
    when(here, [&] {
      on_first_warp(b_, plan_.warps, [&] {
        tiles_.place(folded);
        block_.get(totals_of(number));
        tree_.publish(b_, tiles_, folded, block_.all());
      });
    });
    const ValueId before = b_.sub(number, b_.i64(1));
    when(b_.both(b_.compute(Op::ge, {before, b_.i64(0)}), b_.lt(scanned, all_)),
         [&] { scan(before, scanned); });
    start(next, taken);
    Builder::Values tickets(carried.begin() + 1, carried.end());
    tickets.push_back(taken);
    return tickets;
  }

  void scan(ValueId number, ValueId ticket) {
    ScanTile& run = tiles_.run();
    tiles_.place(ticket);
    ring_.read(number, tiles_.begin());
    block_.get(totals_of(number));
    const Partials in_block = block_.before_warp(), carried = tiles_.carried_in();
    const Partials looked = tree_.before(b_, tiles_, ticket, [&] { return block_.all(); }, false);
    const Partials before = run.merge(carried, looked);
    tiles_.scan(run.merge(before, in_block), std::vector<ValueId>(graph_.folds.size(), kNoValue));
    tiles_.store_folds([&] { return run.merge(before, block_.all()); });
  }

  const Graph& graph_;
  const Plan& plan_;
  const TileTree& tree_;
  Builder b_;
  ScanTiles tiles_;
  ScanRing ring_;
  ScanBlock block_;
  ValueId all_ = kNoValue, rounds_ = kNoValue;  // tiles; of a block
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
                              .min_blocks = plan.resident,
                              .bulk_copies = target.bulk_copies,
                              .streams = params.streams(graph, plan, target)});
  LookAhead(program, graph, plan, params, tree).lower();
  return program;
}

}  // namespace chainfold::codegen
