#include "chainfold/codegen/lower/fold/path_walk.hpp"

#include <optional>
#include <utility>

#include "chainfold/codegen/graph/queries.hpp"

namespace chainfold::codegen {

namespace {

Builder::Values fields_of(const Partials& partials) {
  Builder::Values fields;
  for (const Partial& part : partials)
    fields.insert(fields.end(), part.fields.begin(), part.fields.end());
  return fields;
}

/// Partials of the same forms with other fields.
Partials with_fields(Partials partials, const Builder::Values& fields) {
  std::size_t next = 0;
  for (Partial& part : partials)
    for (ValueId& field : part.fields) field = fields[next++];
  return partials;
}

}  // namespace

ValueId PathWalk::in_memory(ValueId from, ValueId length) {
  return mirrored_ ? b_.sub(b_.sub(elements_, from), length) : from;
}

/// Begin and end of a segment, or of one without elements behind the last.
Builder::Values PathWalk::bounds_of(ValueId segment) {
  const ValueId known = b_.min(segment, b_.sub(segments_, b_.i64(1)));
  const ValueId begin = bounds_.any_begin(known), end = bounds_.any_end(known);
  return {b_.select(b_.lt(segment, segments_), begin, end), end};
}

PathWalk::Piece PathWalk::piece_of(ValueId segment, const Builder::Values& bounds, ValueId first,
                                   ValueId behind) {
  return {.segment = segment,
          .begin = bounds[0],
          .end = bounds[1],
          .from = b_.compute(Op::max, {bounds[0], first}),
          .to = b_.min(bounds[1], behind)};
}

void PathWalk::each_piece(ValueId begun, ValueId ended, ValueId first, ValueId behind,
                          const std::function<void(const Piece&)>& body) {
  const ValueId one = b_.i64(1);
  // The next segment's bounds are loaded in front of what depends on this one's, which no processor
  // foresees.
  b_.loop(begun, b_.add(ended, one), one, bounds_of(begun),
          [&](ValueId segment, const Builder::Values& bounds) {
            const Builder::Values next = bounds_of(b_.add(segment, one));
            body(piece_of(segment, bounds, first, behind));
            return next;
          });
}

PathWalk::Piece PathWalk::last_piece(ValueId ended, ValueId first, ValueId behind) {
  return piece_of(ended, bounds_of(ended), first, behind);
}

/// States of the lanes.
Partials PathWalk::over_lanes(const Piece& piece) {
  const ValueId length = b_.compute(Op::max, {b_.i64(0), b_.sub(piece.to, piece.from)});
  const ValueId from = in_memory(piece.from, length);
  const ValueId origin = in_memory(piece.begin, piece.extent(b_));
  return tile_.lift(tile_.fold_range_safely(from, length, origin, kNoValue, b_.warp(), 1));
}

Partials PathWalk::fold_by_lanes(const Piece& piece) {
  return tile_.reduce_lanes(over_lanes(piece), 1, kWarpWidth);
}

Partials PathWalk::fold(const Piece& piece) {
  return tile_.unflatten(b_.branch_as_is(
      b_.compute(Op::ge, {b_.sub(piece.to, piece.from), b_.i64(plan_.path.apart)}),
      [&] { return fold_many(piece); }, [&] { return fold_few(piece); }));
}

/// By all lanes. Values stand for states of more than one number, if the plan says so.
Builder::Values PathWalk::fold_many(const Piece& piece) {
  const auto uniform = [&](const Partials& states) {
    Builder::Values fields = fields_of(tile_.lift(tile_.reduce_lanes(states, 1, kWarpWidth)));
    for (ValueId& field : fields) field = b_.first_lane(field);
    return fields;
  };
  const Partials states = over_lanes(piece);
  if (plan_.combine_states) return uniform(states);
  Partials values = states;
  for (std::size_t f = 0; f < values.size(); ++f)
    if (values[f].fields.size() > 1) values[f] = tile_.collapse(f, std::move(values[f]));
  values = tile_.reduce_lanes(std::move(values), 1, kWarpWidth);
  const ValueId bad = tile_.exceeds(values);
  if (bad == kNoValue) return uniform(values);
  return b_.branch_as_is(
      b_.first_lane(bad), [&] { return uniform(states); }, [&] { return uniform(values); });
}

/// One behind the other, in values where these stand for states.
Builder::Values PathWalk::fold_few(const Piece& piece) {
  Partials none;
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    const Fold& fold = graph_.folds[f];
    none.push_back(tile_.neutral(f, plan_.combine_states || !fold.tile || fold.moments));
  }
  const Partials values = add_each(tile_, piece, none);
  const Builder::Values fields = fields_of(tile_.lift(values));
  const ValueId bad = plan_.combine_states ? kNoValue : tile_.exceeds(values);
  if (bad == kNoValue) return fields;
  return b_.branch_as_is(
      b_.first_lane(bad),
      [&] {
        TileByElements elements(b_, tile_);
        return fields_of(add_each(elements.tile(), piece, elements.tile().identities()));
      },
      [&] { return fields; });
}

Partials PathWalk::scan(const Piece& piece, const Partials& before, const Sink& sink) {
  const std::vector<std::optional<ScanForm>> forms = scan_forms(graph_);
  return add_each(
      tile_, piece, before,
      [&](const Loaded& element, ValueId at, const Partials& earlier, const Partials& states) {
        std::vector<ValueId> running(graph_.folds.size(), kNoValue);
        for (std::size_t f = 0; f < running.size(); ++f) {
          if (!forms[f]) continue;
          running[f] = tile_.finalize(f, forms[f]->exclusive ? earlier[f] : states[f]);
        }
        sink(at, element, std::move(running));
      });
}

Partials PathWalk::add_each(TileLowering& tile, const Piece& piece, const Partials& before,
                            const Visit& visit) {
  const ValueId one = b_.i64(1), origin = in_memory(piece.begin, piece.extent(b_));
  return with_fields(
      before, b_.loop(
                  piece.from, piece.to, one, fields_of(before),
                  [&](ValueId counted, const Builder::Values& carried) {
                    const ValueId at = in_memory(counted, one);
                    const Loaded element =
                        tile.load_one(at, tile.uses_index() ? b_.sub(at, origin) : kNoValue);
                    const Partials alone = tile.fold_elements(element),
                                   earlier = with_fields(before, carried);
                    Partials now;
                    for (std::size_t f = 0; f < alone.size(); ++f) {
                      // Where sums of elements may leave their range only states are merged.
                      const bool lifts =
                          before[f].lifted && (tile.is_guarded(f) || graph_.folds[f].moments);
                      const Partial added = lifts ? tile.lift(f, alone[f]) : alone[f];
                      now.push_back(mirrored_ ? tile.merge(f, added, earlier[f])
                                              : tile.merge(f, earlier[f], added));
                    }
                    if (visit) visit(element, at, earlier, now);
                    return fields_of(now);
                  },
                  /*few=*/true));
}

}  // namespace chainfold::codegen
