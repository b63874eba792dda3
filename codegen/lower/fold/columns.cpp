// lower_columns: blocks own adjacent columns of a matrix (Band). Where these are too few to fill
// the target, blocks also take parts of the rows. A part's fold states go to scratch, part by part
// a row of them. A second launch folds the rows of that matrix in their order. A launch of one part
// gives the outputs at once, and the second launch has no blocks.
//
// Rows are absolute, and `origin` is the row at which the input buffers begin. So the host may pass
// a long matrix piece by piece without changing any part's bounds.
#include "chainfold/codegen/lower/fold/columns.hpp"

#include <algorithm>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/band.hpp"
#include "chainfold/codegen/lower/tile/block.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

/// Rows of states that a warp of the second launch keeps in flight: fewer of many bytes, which take
/// as many registers.
int state_loads(const Plan& plan) {
  constexpr int kLoads = 4, kLongState = 16;
  return plan.state_bytes > kLongState ? kLoads / 2 : kLoads;
}

/// Warps of its blocks: as many as there are batches of parts. So one trip brings them all where
/// that is possible, and blocks are small where they are many.
int merge_warps(const Plan& plan, const Target& target) {
  constexpr std::int64_t kMostBytes = 16 * 1024;  // of states on their way to the first warp
  int warps = warps_for(plan.parts.wanted, state_loads(plan), target.max_warps);
  while (warps > 1 && warps / 2 * kWarpWidth * plan.state_bytes > kMostBytes) warps /= 2;
  return warps;
}

/// Its blocks whose states take a CPU's thread some microseconds.
std::int64_t merge_grain(const Plan& plan) {
  constexpr std::int64_t kBytes = 128 * 1024;
  const std::int64_t block = kWarpWidth * plan.state_bytes * plan.parts.wanted;  // 0: no folds
  return kBytes / std::clamp<std::int64_t>(block, 1, kBytes);
}

struct ColumnParams {
  int columns, rows, origin, part_begin = -1, part_end = -1, parts = -1, part_length = -1;
};

class ColumnsLowering {
 public:
  ColumnsLowering(Program& program, const Graph& graph, const Plan& plan,
                  const ColumnParams& params)
      : program_(program), graph_(graph), plan_(plan), params_(params) {}

  void lower_fold(const Band::Shape& shape) {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    const ValueId columns = b.param(params_.columns), rows = b.param(params_.rows);
    const Place place = place_of(b);
    Band work(b, tile, shape, plan_.segment, place.band, columns);
    const auto source = [&](TileLowering& of) {
      Band::Source inputs_of = inputs(b, of, shape, place.begin);
      if (shape.phased()) let_pick(b, of, shape, place, inputs_of);
      return inputs_of;
    };
    const std::vector<Partials> states = work.fold(source(tile), place.size, source);
    on_first_warp(b, plan_.warps, [&] {
      if (!has_parts()) return put_outputs(tile, work, states, rows);
      b.branch(
          b.compute(Op::eq, {b.param(params_.parts), b.i64(1)}),
          [&] {
            put_outputs(tile, work, states, rows);
            return Builder::Values{};
          },
          [&] {
            const ValueId row = b.mul(place.part, pitch(b));
            put_states(tile, work, states, row, shape.width);
            return Builder::Values{};
          });
    });
  }

  /// A block walks along the rows of its strip, a batch of them at a time; states wait in scratch.
  void lower_sweep(const Band::Shape& shape) {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    const ValueId columns = b.param(params_.columns);
    const Place place = place_of(b);
    const ValueId part = place.part, left = b.mul(place.band, b.i64(plan_.columns.strip));
    const ValueId right = b.min(columns, b.add(left, b.i64(plan_.columns.strip)));
    Band::Source source = inputs(b, tile, shape, place.begin);
    const ValueId states_at = b.mul(part, columns);
    const int step = shape.columns();
    const bool ragged = plan_.segment % step != 0;
    const ValueId whole =
        ragged ? b.add(left, b.mul(b.div(b.sub(right, left), b.i64(step)), b.i64(step))) : right;
    Band::Shape narrow = shape;
    narrow.runs = 1;
    /// Does `body` for all columns of the strip, whole steps and then what is left.
    auto walk =
        [&](const std::function<void(const Band::Shape&, ValueId at, ValueId reads)>& body) {
          b.loop(left, whole, b.i64(step), {}, [&](ValueId at, const Builder::Values&) {
            body(shape, at, kNoValue);
            return Builder::Values{};
          });
          if (!ragged) return;
          b.loop(whole, right, b.i64(kWarpWidth), {}, [&](ValueId at, const Builder::Values&) {
            body(narrow, at, b.lt(b.convert(b.lane(), DType::i64), b.sub(right, at)));
            return Builder::Values{};
          });
        };
    walk([&](const Band::Shape& now, ValueId at, ValueId reads) {
      const Partials nothing = tile.identities();
      for (int run = 0; run < now.runs; ++run)
        keep(b, tile, b.add(states_at, b.add(at, b.i64(run * kWarpWidth))), nothing, reads);
    });
    auto add = [&](int loads, bool masked) {
      return [&, loads, masked](ValueId row, const Builder::Values&) {
        walk([&](const Band::Shape& now, ValueId at, ValueId reads) {
          Band work(b, tile, now, at, masked ? reads : kNoValue);
          const auto of = [&](TileLowering& other) {
            Band::Source inputs_of = inputs(b, other, shape, place.begin);
            inputs_of.apart = source.apart;
            return inputs_of;
          };
          const std::vector<Partials> fresh = work.batch_safely(source, row, loads, of);
          for (int run = 0; run < now.runs; ++run) {
            const ValueId place = b.add(states_at, b.add(at, b.i64(run * kWarpWidth)));
            const Partials kept = load_states(b, tile, {.base = place}, reads);
            keep(b, tile, place, tile.lift(tile.merge(kept, fresh[static_cast<std::size_t>(run)])),
                 reads);
          }
        });
        return Builder::Values{};
      };
    };
    // Behind a row without a gap lies the next one. So only the last row of all needs masks for
    // what it loads; its batch has them.
    const bool packed = ragged && !plan_.strided;
    const ValueId batch = b.i64(shape.depth);
    const ValueId before_last =
        packed ? b.compute(Op::max, {b.i64(0), b.sub(place.size, is_last_of_all(b, place))})
               : place.size;
    const ValueId batches = b.div(before_last, batch);
    ValueId rest = b.mul(batches, batch);
    if (shape.far) {
      source.apart = batches;
      b.loop(b.i64(0), batches, b.i64(1), {}, add(shape.depth, !packed));
      source.apart = kNoValue;
    } else {
      b.loop(b.i64(0), rest, batch, {}, add(shape.depth, !packed));
    }
    if (packed) {
      const ValueId end = b.add(rest, b.mul(b.div(b.sub(place.size, rest), batch), batch));
      b.loop(rest, end, batch, {}, add(shape.depth, true));
      rest = end;
    }
    b.loop(rest, place.size, b.i64(1), {}, add(1, true));
  }

  void lower_merge(const Band::Shape& shape) {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    const ValueId columns = b.param(params_.columns);
    Band work(b, tile, shape, plan_.segment, b.block(), columns);
    Band::Source source{.strides = {pitch(b)},
                        .first_row = b.i64(0),
                        .first_index = b.i64(0),
                        .packed = plan_.segment == shape.columns()};
    source.load = [&](const std::vector<ValueId>& bases, const std::vector<ValueId>& steps,
                      const Address& at, ValueId, ValueId exists, ValueId reads) {
      Address place = at;
      place.base = b.add(bases[0], at.base);
      if (!steps.empty()) place.step = steps[0];
      Partials states = load_states(b, tile, place, reads);
      for (std::size_t f = 0; f < states.size() && exists != kNoValue; ++f) {
        const Partial nothing = tile.identity(f);
        for (std::size_t i = 0; i < nothing.fields.size(); ++i)
          states[f].fields[i] = b.select(exists, states[f].fields[i], nothing.fields[i]);
      }
      return Loaded{.inputs = tile.flatten(states)};  // a row is the states of a part
    };
    source.fold = [&](const std::vector<Loaded>& rows) {
      std::vector<Partials> states;
      for (const Loaded& row : rows) states.push_back(tile.unflatten(row.inputs));
      return tile.merge_all(std::move(states));
    };
    const std::vector<Partials> states = work.fold(source, b.param(params_.parts));
    on_first_warp(b, shape.warps, [&] { put_outputs(tile, work, states, b.param(params_.rows)); });
  }

 private:
  /// What a block works on: a part of the rows, which of the bands or strips, its first row and how
  /// many it has.
  struct Place {
    ValueId part, band, begin, size;
  };
  Place place_of(Builder& b) {
    const ValueId rows = b.param(params_.rows);
    if (!has_parts()) return {kNoValue, b.block(), b.i64(0), rows};
    const std::int64_t each = plan_.columns_per_block();
    const bool one = plan_.segment <= each;
    const ValueId bands =
        one ? b.i64(1) : b.div(b.add(b.param(params_.columns), b.i64(each - 1)), b.i64(each));
    const ValueId part = b.add(b.param(params_.part_begin), b.div(b.block(), bands));
    const ValueId band = one ? b.i64(0) : b.rem(b.block(), bands);
    const ValueId length = b.param(params_.part_length), begin = b.mul(part, length);
    const ValueId size = b.compute(Op::max, {b.i64(0), b.min(length, b.sub(rows, begin))});
    return {part, band, begin, size};
  }

  /// The inputs' rows from `begin` on.
  Band::Source inputs(Builder& b, TileLowering& tile, const Band::Shape& shape, ValueId begin) {
    Band::Source source{.first_row = b.sub(begin, b.param(params_.origin)),
                        .first_index = begin,
                        .packed = !plan_.strided && plan_.segment == shape.columns()};
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      source.strides.push_back(plan_.strided ? tile.stride(i) : b.param(params_.columns));
    source.load = [&tile, width = shape.width](const std::vector<ValueId>& bases,
                                               const std::vector<ValueId>& steps, const Address& at,
                                               ValueId position, ValueId exists, ValueId reads) {
      tile.place(bases, steps);
      Loaded loaded = tile.load(at, width, reads, position, !steps.empty());
      loaded.mask = exists;  // lanes without a column may hold what they like
      loaded.across = true;
      return loaded;
    };
    // Moments of one row are its elements and need no division.
    source.fold = [&tile](const std::vector<Loaded>& rows) {
      return rows.size() == 1 ? tile.fold_elements(rows[0]) : tile.fold_batch(rows);
    };
    return source;
  }

  static ValueId one_if_same(Builder& b, ValueId row, ValueId of) {
    return b.select(b.compute(Op::eq, {row, of}), b.i64(1), b.i64(0));
  }
  /// 1 where a block's rows end with those of the launch, behind which there may be no memory, else
  /// 0.
  ValueId is_last_of_all(Builder& b, const Place& place) {
    const ValueId rows = b.param(params_.rows);
    ValueId end = rows;
    if (has_parts())
      end = b.min(rows, b.mul(b.param(params_.part_end), b.param(params_.part_length)));
    return one_if_same(b, b.add(place.begin, place.size), end);
  }

  /// Rows in phases: how loads at the ends of the input's memory are picked apart. Behind every
  /// other row lies the next one, and before it the one before. Memory that begins on a boundary
  /// has no window that begins before it.
  void let_pick(Builder& b, TileLowering& tile, const Band::Shape& shape, const Place& place,
                Band::Source& source) {
    source.picked_last = is_last_of_all(b, place);
    const int unit = shape.width * size_of(graph_.inputs[0].type);
    if (plan_.base_alignment < unit)
      source.picked_first = one_if_same(b, place.begin, b.param(params_.origin));
    source.pick = [&b, &tile, width = shape.width](const std::vector<ValueId>& bases,
                                                   const Address& at, ValueId position,
                                                   const std::vector<ValueId>& reads) {
      tile.place(bases);
      Loaded all{.inputs = {kNoValue}, .position = position, .width = width, .across = true};
      Builder::Values elements;
      for (int i = 0; i < width && tile.uses_input(0); ++i) {
        const Address one{.base = b.add(at.base, b.i64(i)), .group = 1, .stride = width};
        elements.push_back(
            tile.load(one, 1, reads[static_cast<std::size_t>(i)], position).inputs[0]);
      }
      if (!elements.empty()) all.inputs = {b.concat(elements)};
      return all;
    };
  }

  /// Elements between rows of states: those of phased bands begin on the width of loads.
  ValueId pitch(Builder& b) {
    const ValueId columns = b.param(params_.columns);
    if (plan_.columns.phases == 1) return columns;
    const ValueId width = b.i64(plan_.load_width);
    return b.mul(b.div(b.add(columns, b.i64(plan_.load_width - 1)), width), width);
  }

  /// A lane's column of states, 32 columns side by side.
  Partials load_states(Builder& b, TileLowering& tile, const Address& at, ValueId reads) {
    Partials states;
    int array = first_scratch();
    for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
      Partial state = tile.identity(f);
      for (ValueId& field : state.fields) field = b.load(array++, at, 1, reads);
      states.push_back(std::move(state));
    }
    return states;
  }
  void keep(Builder& b, TileLowering& tile, ValueId at, const Partials& states, ValueId mask) {
    const std::vector<ValueId> fields = tile.flatten(states);
    for (std::size_t i = 0; i < fields.size(); ++i)
      b.store(first_scratch() + static_cast<int>(i), {at}, fields[i], mask);
  }

  [[nodiscard]] bool has_parts() const { return plan_.launches == 2; }
  [[nodiscard]] int first_scratch() const {
    return static_cast<int>(graph_.inputs.size() + graph_.outputs.size());
  }

  void put_outputs(TileLowering& tile, Band& work, const std::vector<Partials>& states,
                   ValueId rows) {
    for (std::size_t run = 0; run < states.size(); ++run) {
      const std::vector<ValueId> outputs = tile.finish(states[run], rows);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        work.store(static_cast<int>(graph_.inputs.size() + i), kNoValue, static_cast<int>(run),
                   outputs[i], false);
      }
    }
  }

  void put_states(TileLowering& tile, Band& work, const std::vector<Partials>& states, ValueId row,
                  int width) {
    for (std::size_t run = 0; run < states.size(); ++run) {
      const std::vector<ValueId> fields = tile.flatten(states[run], width);
      for (std::size_t i = 0; i < fields.size(); ++i) {
        work.store(first_scratch() + static_cast<int>(i), row, static_cast<int>(run), fields[i],
                   true);
      }
    }
  }

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  ColumnParams params_;
};

}  // namespace

Program lower_columns(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "fold_columns";
  declare_graph(program, graph, plan, target);
  if (plan.columns.phases > 1) {  // memory that begins anywhere does
    int& alignment = program.buffers[0].alignment;
    alignment = std::min(alignment, std::max(plan.base_alignment, size_of(graph.inputs[0].type)));
  }
  auto declare = [&](const char* name, ParamRole role) {
    return add_param(program, name, DType::i64, role);
  };
  const bool parts = plan.launches == 2;
  ColumnParams params{.columns = declare("columns", ParamRole::segments),
                      .rows = declare("rows", ParamRole::rows),
                      .origin = declare("origin", ParamRole::origin)};
  const auto param = [&](int index) { return param_size(program, index); };
  const Band::Shape shape{.width = plan.load_width,
                          .group = kWarpWidth / plan.lanes_per_segment,
                          .runs = plan.rows,
                          .depth = plan.depth,
                          .warps = plan.warps,
                          .ahead = plan.load_rows_first,
                          .far = plan.hints.streams > 1,
                          .phases = plan.columns.phases};
  SizeExpr grid = ceil_div(param(params.columns), plan.columns_per_block());
  SizeExpr merges = 0;
  if (parts) {
    params.part_begin = declare("part_begin", ParamRole::part_begin);
    params.part_end = declare("part_end", ParamRole::part_end);
    params.parts = declare("parts", ParamRole::parts);
    params.part_length = declare("part_length", ParamRole::part_length);
    grid = grid * (param(params.part_end) - param(params.part_begin));
    merges = plan.columns.strip > 0 ? SizeExpr(1) : min(param(params.parts) - 1, 1);
    const SizeExpr pitch = plan.columns.phases > 1
                               ? ceil_div(param(params.columns), plan.load_width) * plan.load_width
                               : param(params.columns);
    const SizeExpr states = pitch * param(params.parts);
    declare_states(program, graph, plan.columns.strip > 0 ? states : states * merges,
                   plan.load_width > 1 ? 16 : 1);
  }
  ColumnsLowering lowering(program, graph, plan, params);
  program.launches.reserve(2);
  program.launches.push_back(
      {.name = "fold_columns", .grid = grid, .warps = plan.warps, .min_blocks = plan.occupancy});
  if (plan.columns.strip > 0) {
    lowering.lower_sweep(shape);
  } else {
    lowering.lower_fold(shape);
  }
  if (parts) {
    // States are merged a column a lane: the more blocks, the better.
    Band::Shape merge{.depth = state_loads(plan), .warps = merge_warps(plan, target)};
    while (merge.group / 2 >= plan.segment) merge.group /= 2;
    program.launches.push_back(
        {.name = "merge_columns",
         .grid = plan.columns.strip > 0 ? ceil_div(param(params.columns), merge.columns())
                                        : ceil_div(param(params.columns), merge.columns()) * merges,
         .warps = merge.warps,
         .grain = target.max_warps > 1 ? 1 : merge_grain(plan)});
    lowering.lower_merge(merge);
  }
  return program;
}

}  // namespace chainfold::codegen
