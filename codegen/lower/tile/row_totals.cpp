#include "chainfold/codegen/lower/tile/row_totals.hpp"

#include <bit>
#include <iterator>
#include <utility>

namespace chainfold::codegen {

namespace {
/// The lane bit that tells a run of `rows` rows from the next one.
int bit_of(int rows) { return std::countr_zero(static_cast<unsigned>(rows)); }
}  // namespace

void RowTotals::add(const Partials& row) {
  for (std::size_t f = 0; f < row.size(); ++f) {
    const Fold& fold = tile_.fold_of(f);
    const bool ordered = !fold.commutative;
    Run run{.part = row[f]};
    if (ordered && tile_.screens() && fold.place && run.part.lifted && !run.part.complete) {
      std::vector<Run>& runs = runs_[f];
      if (runs.empty()) {
        runs.push_back({.part = tile_.of_warp(f, std::move(run.part), 1)});
      } else {
        runs.back().part = tile_.with_better_place(f, runs.back().part, run.part);
      }
      continue;
    }
    if (ordered && !run.part.complete) {
      if (tile_.vector_lanes())
        run.part = tile_.of_warp(f, std::move(run.part), 1);
      else
        run.rows = 1;
    }
    add(f, std::move(run));
  }
}

void RowTotals::add(std::size_t fold, Run run) {
  std::vector<Run>& runs = runs_[fold];
  while (run.rows > 0 && run.rows < kWarpWidth && !runs.empty() && runs.back().rows == run.rows) {
    const int bit = bit_of(run.rows);
    run.part = tile_.pair_rows(fold, runs.back().part, run.part, {.merged = bit, .row = bit});
    run.rows *= 2;
    runs.pop_back();
  }
  // Of quick folds what is beside the scan's is one state, so that rows leave no more behind.
  if (fold >= tile_.graph().folds.size() && !runs.empty()) {
    runs.back().part = tile_.merge(fold, runs.back().part, run.part);
    return;
  }
  runs.push_back(std::move(run));
}

void RowTotals::append(RowTotals later) {
  for (std::size_t f = 0; f < runs_.size(); ++f) {
    runs_[f].insert(runs_[f].end(), std::make_move_iterator(later.runs_[f].begin()),
                    std::make_move_iterator(later.runs_[f].end()));
  }
}

Partial RowTotals::finished(std::size_t fold, const Run& run) {
  if (run.rows == 0) return run.part;
  // First what is left of each row, then the rows.
  std::vector<int> bits;
  for (int bit = bit_of(run.rows); bit < bit_of(kWarpWidth); ++bit) bits.push_back(bit);
  for (int bit = 0; bit < bit_of(run.rows); ++bit) bits.push_back(bit);
  Partial all = tile_.reduce(fold, run.part, bits);
  all.complete = true;
  return all;
}

Partials RowTotals::merged() {
  Partials all;
  for (std::size_t f = 0; f < runs_.size(); ++f) {
    std::vector<Partial> parts;
    for (const Run& run : runs_[f]) parts.push_back(finished(f, run));
    all.push_back(tile_.tree(f, std::move(parts)));
  }
  return all;
}

}  // namespace chainfold::codegen
