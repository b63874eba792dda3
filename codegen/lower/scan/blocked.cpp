#include "chainfold/codegen/lower/scan/blocked.hpp"

#include <utility>

#include "chainfold/codegen/lower/scan/row.hpp"

namespace chainfold::codegen {

namespace {

/// Of graphs that blocked_serves() admits.
constexpr int kInput = 0;

/// The one output with a value an element.
std::size_t output_of_elements(const Graph& graph) {
  std::size_t output = 0;
  while (graph.node(graph.outputs[output]).level != Level::element) ++output;
  return output;
}

}  // namespace

Builder::Values BlockedRun::nothing_before() {
  const Builder::Values kept = tile().flatten(tile().identities());
  Builder::Values fields = kept;
  fields.insert(fields.end(), kept.begin(), kept.end());
  return fields;
}

Address BlockedRun::address(const Span& span, int load) {
  const std::int64_t width = plan_.load_width;
  return {.base = b_.add(ring_.place(kInput, b_.i64(0)), b_.i64(load * width)),
          .group = 1,
          .stride = span.rows * width};
}

Loaded BlockedRun::loaded(const Span& span, int load, ValueId value) {
  const int width = plan_.load_width;
  Loaded row{.inputs = {value}, .width = width};
  if (tile().uses_index()) {
    const ValueId first = b_.add(span.place, b_.i64(std::int64_t{load} * width));
    row.position = tile().positions(first, kWarpWidth, span.rows * width);
  }
  return row;
}

Loaded BlockedRun::read(const Span& span, int load) {
  return loaded(span, load, b_.shared_load(kInput, address(span, load), plan_.load_width));
}

Partials BlockedRun::before_lanes(Partials lanes, Partials& all) {
  if (plan_.combine_states) lanes = tile().lift(std::move(lanes));
  all = lanes;
  Partials before;
  for (std::size_t f = 0; f < lanes.size(); ++f)
    before.push_back(run_.row().before_lanes(f, lanes[f], all[f]));
  all = tile().lift(std::move(all));
  return tile().lift(std::move(before));
}

BlockedRun::Folded BlockedRun::fold(const Span& kept, const Span& staged) {
  Folded folded;
  std::vector<Partials> loads;
  Partials all_kept = tile().identities(), before_kept = all_kept, all;
  int copies = 0;
  if (kept.rows > 0) {
    const ValueId number = b_.i64(copies++);
    ring_.start(number, kept.begin, kNoValue, kept.rows);
    ring_.wait(number);
    for (int i = 0; i < kept.rows; ++i) folded.kept.push_back(read(kept, i).inputs[kInput]);
  }
  const ValueId number = b_.i64(copies);
  ring_.start(number, staged.begin, kNoValue, staged.rows, kept.rows > 0);
  for (int i = 0; i < kept.rows; ++i)
    loads.push_back(tile().fold_tile(loaded(kept, i, folded.kept[static_cast<std::size_t>(i)])));
  if (kept.rows > 0)
    before_kept = before_lanes(tile().merge_all(std::exchange(loads, {})), all_kept);
  ring_.wait(number);
  for (int i = 0; i < staged.rows; ++i) loads.push_back(tile().fold_tile(read(staged, i)));
  Partials before_staged = before_lanes(tile().merge_all(std::move(loads)), all);
  if (kept.rows > 0) {
    before_staged = run_.merge(all_kept, before_staged);
    all = run_.merge(all_kept, all);
  }
  for (Partial& state : all) state.complete = true;
  folded.all = std::move(all);
  for (const Partials* before : {&before_kept, &before_staged}) {
    const Builder::Values fields = tile().flatten(*before);
    folded.before.insert(folded.before.end(), fields.begin(), fields.end());
  }
  return folded;
}

void BlockedRun::scan_loads(const Span& span, const Partials& before, ValueId extent,
                            const std::function<Loaded(int)>& load,
                            const std::function<void(int, ValueId)>& done) {
  const std::size_t folds = graph_.folds.size();
  std::vector<LaneCarry> carries;
  for (const Partial& state : before) carries.push_back({.state = state});
  for (int i = 0; i < span.rows; ++i) {
    const int at = run_.reverse() ? span.rows - 1 - i : i;
    const Loaded row = load(at);
    const Partials elements = tile().fold_elements(row);
    Broadcasts values{.running = std::vector<ValueId>(folds, kNoValue),
                      .whole = std::vector<ValueId>(folds, kNoValue)};
    for (std::size_t f = 0; f < folds; ++f) {
      if (run_.is_scan(f))
        values.running[f] = run_.row().scan_in_lanes(f, elements[f], row.width, carries[f]);
    }
    done(at, tile().finish_elements(row, values, extent)[output_of_elements(graph_)]);
  }
}

void BlockedRun::copy_out(const Span& span) {
  b_.copy_out({.buffer = static_cast<int>(graph_.inputs.size() + output_of_elements(graph_)),
               .first = span.begin,
               .array = kInput,
               .from = ring_.place(kInput, b_.i64(0)),
               .elements = static_cast<int>(span.rows * run_.row_elements())});
}

void BlockedRun::scan(const Folded& folded, const Span& kept, const Span& staged,
                      const Partials& carry, ValueId extent) {
  const auto put = [&](const Span& span, int i, ValueId value) {
    b_.shared_store(kInput, address(span, i), value);
  };
  const auto half = folded.before.begin() + static_cast<std::ptrdiff_t>(folded.before.size() / 2);
  const Partials before_kept = tile().unflatten({folded.before.begin(), half}),
                 before_staged = tile().unflatten({half, folded.before.end()});
  scan_loads(
      staged, run_.merge(carry, before_staged), extent, [&](int i) { return read(staged, i); },
      [&](int i, ValueId value) { put(staged, i, value); });
  copy_out(staged);
  std::vector<ValueId> scanned(static_cast<std::size_t>(kept.rows), kNoValue);
  if (kept.rows > 0) {
    scan_loads(
        kept, run_.merge(carry, before_kept), extent,
        [&](int i) { return loaded(kept, i, folded.kept[static_cast<std::size_t>(i)]); },
        [&](int i, ValueId value) { scanned[static_cast<std::size_t>(i)] = value; });
    b_.copy_out_wait();
    for (int i = 0; i < kept.rows; ++i) put(kept, i, scanned[static_cast<std::size_t>(i)]);
    copy_out(kept);
  }
  b_.copy_out_wait();
}

}  // namespace chainfold::codegen
