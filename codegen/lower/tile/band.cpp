#include "chainfold/codegen/lower/tile/band.hpp"

#include <algorithm>

namespace chainfold::codegen {

namespace {
constexpr int kWidestAccess = 16;

/// Elements of a value that one access takes.
int piece_width(const Type& type) {
  return std::min<int>(type.width, std::max(1, kWidestAccess / size_of(type.elem)));
}
}  // namespace

Band::Band(Builder& builder, TileLowering& tile, const Shape& shape, std::int64_t columns,
           ValueId band, ValueId count)
    : b_(builder), tile_(tile), shape_(shape), columns_(columns), count_(count) {
  const std::int64_t own = shape.columns();
  if (shape.phased()) {
    first_ = b_.mul(band, b_.i64(own));
    ragged_ = columns % own != 0;
    return;
  }
  if (columns <= own) {  // the only band
    first_ = b_.i64(0);
    if (columns < own) {
      const ValueId lane = shape.group == kWarpWidth
                               ? b_.lane()
                               : b_.compute(Op::bit_and, {b_.lane(), b_.i32(shape.group - 1)});
      lane_reads_ =
          b_.lt(b_.mul(lane, b_.i32(shape.width)), b_.i32(static_cast<std::int32_t>(columns)));
    }
    return;
  }
  const ValueId begin = b_.mul(band, b_.i64(own));
  first_ = begin;
  if (columns % own == 0) return;
  // The last band reaches back over columns of the one before, and leaves their results to that.
  first_ = b_.min(begin, b_.sub(count, b_.i64(own)));
  skip_ = b_.sub(begin, first_);
}

Band::Band(Builder& builder, TileLowering& tile, const Shape& shape, ValueId first, ValueId reads)
    : b_(builder), tile_(tile), shape_(shape), first_(first), lane_reads_(reads) {}

Band::Band(const Band& of, TileLowering& tile)
    : b_(of.b_),
      tile_(tile),
      shape_(of.shape_),
      columns_(of.columns_),
      count_(of.count_),
      first_(of.first_),
      skip_(of.skip_),
      lane_reads_(of.lane_reads_),
      ragged_(of.ragged_),
      one_by_one_(true) {}

std::vector<Partials> Band::identities() {
  return std::vector<Partials>(static_cast<std::size_t>(shape_.runs), tile_.identities());
}

Builder::Values Band::flatten(std::vector<Partials> runs) {
  Builder::Values fields;
  for (Partials& run : runs) {
    for (const ValueId field : tile_.flatten(tile_.lift(std::move(run)), shape_.width))
      fields.push_back(field);
  }
  return fields;
}

std::vector<Partials> Band::unflatten(const Builder::Values& fields) {
  std::vector<Partials> runs;
  const auto each =
      static_cast<std::ptrdiff_t>(fields.size() / static_cast<std::size_t>(shape_.runs));
  for (int run = 0; run < shape_.runs; ++run) {
    const auto first = fields.begin() + run * each;
    runs.push_back(tile_.unflatten(Builder::Values(first, first + each), true));
  }
  return runs;
}

std::vector<Partials> Band::merge(const std::vector<Partials>& a, const std::vector<Partials>& b) {
  std::vector<Partials> merged;
  for (std::size_t run = 0; run < a.size(); ++run) merged.push_back(tile_.merge(a[run], b[run]));
  return merged;
}

/// Depth first: few states are alive at once.
std::vector<Partials> Band::merge_tree(int from, int count, const Leaf& leaf) {
  if (count == 1) return leaf(from);
  const std::vector<Partials> left = merge_tree(from, count / 2, leaf);
  return merge(left, merge_tree(from + count / 2, count / 2, leaf));
}

/// Pairs, one after the other. Besides the runs' states two values each are alive. A CPU has
/// registers for these where it has none for a tree's.
std::vector<Partials> Band::merge_pairs(int count, const Leaf& leaf) {
  const int pair = std::min(2, count);
  std::vector<Partials> all = merge_tree(0, pair, leaf);
  for (int from = pair; from < count; from += pair) all = merge(all, merge_tree(from, pair, leaf));
  return all;
}

std::vector<Partials> Band::batch(const Source& source, ValueId at, int loads, ValueId limit) {
  const int rows = shape_.rows_a_load();
  const bool groups = rows > 1;
  // In order a lane's rows follow each other, else the rows of a load do.
  const bool in_runs = tile_.ordered() && groups && loads > 1;
  const int load_rows = shape_.phased() ? shape_.phases : in_runs ? 1 : rows;
  const int lane_rows = in_runs ? loads : 1;
  const ValueId left = shape_.phased() ? window_ : first_;
  ValueId lane_row = kNoValue;
  if (groups) {
    lane_row =
        wide(b_.mul(b_.compute(Op::div, {b_.lane(), b_.i32(shape_.group)}), b_.i32(lane_rows)));
  }
  const bool gaps = groups && !(source.packed && lane_rows == 1);
  std::vector<ValueId> bases, steps;
  for (const ValueId stride : source.strides) {
    bases.push_back(b_.add(left, b_.mul(b_.add(source.first_row, at), stride)));
    if (gaps) steps.push_back(b_.mul(stride, b_.i64(lane_rows)));
  }
  auto load = [&](int i) {
    auto times_apart = [&](int n) {
      return source.apart == kNoValue ? b_.i64(std::int64_t{n} * load_rows)
                                      : b_.mul(source.apart, b_.i64(n));
    };
    const ValueId first = b_.add(at, times_apart(i));
    for (std::size_t k = 0; k < bases.size() && i > 0; ++k)
      bases[k] = b_.add(bases[k], b_.mul(source.strides[k], times_apart(1)));
    ValueId exists = kNoValue;
    if (limit != kNoValue && groups) exists = b_.lt(lane_row, b_.sub(limit, first));
    if (limit != kNoValue && shape_.phased()) exists = b_.lt(first, limit);
    ValueId position = kNoValue;
    if (tile_.uses_index()) {
      position = b_.add(source.first_index, first);
      if (groups) position = b_.add(position, lane_row);
    }
    std::vector<Loaded> runs;
    for (int run = 0; run < shape_.runs; ++run) {
      Address place{.base = b_.i64(std::int64_t{run} * kWarpWidth * shape_.width)};
      if (gaps) place.group = shape_.group;
      runs.push_back(
          source.load(bases, steps, place, position, exists, b_.both(exists, reads(run))));
    }
    return runs;
  };

  const bool together = tile_.has_moments();  // which gain from seeing all of a column's elements
  std::vector<std::vector<Loaded>> loaded;
  for (int i = 0; (shape_.ahead || together) && i < loads; ++i) loaded.push_back(load(i));
  std::vector<Partials> merged;
  if (together) {
    for (std::size_t run = 0; run < loaded[0].size(); ++run) {
      std::vector<Loaded> of_run;
      for (const std::vector<Loaded>& row : loaded) of_run.push_back(row[run]);
      merged.push_back(source.fold(of_run));
    }
  } else {
    const Leaf leaf = [&](int i) {
      std::vector<Partials> runs;
      for (const Loaded& run : shape_.ahead ? loaded[static_cast<std::size_t>(i)] : load(i))
        runs.push_back(source.fold({run}));
      return runs;
    };
    merged = shape_.ahead ? merge_tree(0, loads, leaf) : merge_pairs(loads, leaf);
  }
  for (Partials& run : merged) run = tile_.reduce_ordered(std::move(run), shape_.group);
  return merged;
}

std::vector<Partials> Band::fold(const Source& source, ValueId rows, const SourceOf& by_elements) {
  Builder::Values fields = fold_rows(source, rows);
  if (by_elements && tile_.has_guards()) {
    fields = mended(std::move(fields), [&](Band& band, TileLowering& tile) {
      return band.fold_rows(by_elements(tile), rows);
    });
  }
  std::vector<Partials> states = unflatten(fields);
  if (shape_.phased()) return merge_warps(std::move(states));
  for (Partials& run : states) run = tile_.reduce_lanes(std::move(run), shape_.group, kWarpWidth);
  return merge_warps(std::move(states));
}

Builder::Values Band::add_batch(const Builder::Values& carried, const Source& source, ValueId at,
                                int loads, ValueId limit) {
  if (!one_by_one_ || loads == 1)
    return flatten(merge(unflatten(carried), batch(source, at, loads, limit)));
  const int rows = shape_.phased() ? shape_.phases : shape_.rows_a_load();
  const ValueId apart = source.apart == kNoValue ? b_.i64(rows) : source.apart;
  return b_.loop(b_.i64(0), b_.i64(loads), b_.i64(1), carried,
                 [&](ValueId i, const Builder::Values& sum) {
                   const ValueId row = b_.add(at, b_.mul(i, apart));
                   return flatten(merge(unflatten(sum), batch(source, row, 1, limit)));
                 });
}

std::vector<Partials> Band::batch_safely(const Source& source, ValueId at, int loads,
                                         const SourceOf& by_elements) {
  std::vector<Partials> fresh = batch(source, at, loads, kNoValue);
  if (!tile_.has_guards()) return fresh;
  const auto slow = [&](Band& band, TileLowering& tile) {
    return band.add_batch(band.flatten(band.identities()), by_elements(tile), at, loads, kNoValue);
  };
  return unflatten(mended(flatten(fresh), slow));
}

Builder::Values Band::mended(Builder::Values quick, const Slow& slow) {
  const std::vector<Partials> runs = unflatten(quick);
  ValueId any = kNoValue;
  for (const Partials& run : runs) {
    const ValueId exceeds = tile_.exceeds(run);
    any = any == kNoValue ? exceeds : b_.compute(Op::bit_or, {any, exceeds});
  }
  return b_.branch(
      b_.any(any),
      [&] {
        TileByElements elements(b_, tile_);
        Band band(*this, elements.tile());
        Builder::Values fields = slow(band, elements.tile());
        // Other columns keep what they have: it does not depend on these.
        const std::size_t each = fields.size() / runs.size();
        for (std::size_t run = 0; run < runs.size(); ++run) {
          ValueId wanted = tile_.exceeding(runs[run]);
          for (int mask = shape_.group; mask < kWarpWidth; mask *= 2)
            wanted = b_.compute(Op::bit_or, {wanted, b_.shuffle_xor(wanted, mask)});
          for (std::size_t i = run * each; i < (run + 1) * each; ++i) {
            const bool is_one = b_.type(fields[i]).width < b_.type(wanted).width;
            if (is_one) continue;  // a count, which is the same
            fields[i] = b_.select(wanted, fields[i], quick[i]);
          }
        }
        return fields;
      },
      [&] { return quick; });
}

Builder::Values Band::fold_rows(const Source& source, ValueId rows) {
  if (shape_.phased()) return move_to_band(fold_phases(source, rows));
  const int load = shape_.rows_a_load(), warps = shape_.warps;
  const std::int64_t chunk = std::int64_t{shape_.depth} * load;
  const ValueId size = b_.i64(chunk), warp = wide(b_.warp());
  const ValueId batches = b_.div(rows, size), rest = b_.mul(batches, size);
  Source rows_apart = source;
  auto add = [&](const Source& from, int loads, ValueId limit) {
    return [&, loads, limit](ValueId at, const Builder::Values& carried) {
      return add_batch(carried, from, at, loads, limit);
    };
  };
  Builder::Values sum = flatten(identities());
  if (tile_.ordered()) {  // one run of batches a warp; the rest is the last one's
    const ValueId each = b_.div(b_.add(batches, b_.i64(warps - 1)), b_.i64(warps));
    const ValueId begin = b_.min(b_.mul(warp, each), batches);
    const ValueId end = b_.min(b_.add(begin, each), batches);
    sum = b_.loop(b_.mul(begin, size), b_.mul(end, size), size, sum,
                  add(source, shape_.depth, kNoValue));
    const ValueId last = b_.compute(Op::eq, {warp, b_.i64(warps - 1)});
    sum = b_.loop(b_.select(last, rest, rows), rows, b_.i64(load), sum, add(source, 1, rows));
  } else {  // batches in turn, and what is left load by load
    if (shape_.far) {
      rows_apart.apart = b_.mul(batches, b_.i64(load));
      sum = b_.loop(b_.i64(0), rows_apart.apart, b_.i64(load), sum,
                    add(rows_apart, shape_.depth, kNoValue));
    } else {
      sum = b_.loop(b_.mul(warp, size), rest, b_.i64(chunk * warps), sum,
                    add(source, shape_.depth, kNoValue));
    }
    sum = b_.loop(b_.add(rest, b_.mul(warp, b_.i64(load))), rows,
                  b_.i64(std::int64_t{load} * warps), sum, add(source, 1, rows));
  }
  return sum;
}

/// A tree over the warps: of each pair the upper one hands its states to the lower one and is done.
std::vector<Partials> Band::merge_warps(std::vector<Partials> mine) {
  if (shape_.warps == 1) return mine;
  Builder::Values fields = flatten(std::move(mine));
  const ValueId warp = b_.warp();
  auto slot = [&](ValueId of) { return wide(b_.compute(Op::shr, {of, b_.i32(1)})); };
  for (int half = 1; half < shape_.warps; half *= 2) {
    const ValueId place = b_.compute(Op::bit_and, {warp, b_.i32(2 * half - 1)});
    b_.branch(
        b_.compute(Op::eq, {place, b_.i32(half)}),
        [&] {
          hand_over(fields, slot(warp));
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
    b_.barrier();
    fields = b_.branch(
        b_.compute(Op::eq, {place, b_.i32(0)}),
        [&] {
          const Builder::Values other = take_over(fields, slot(b_.add(warp, b_.i32(half))));
          return flatten(merge(unflatten(fields), unflatten(other)));
        },
        [&] { return fields; });
  }
  return unflatten(fields);
}

void Band::hand_over(const Builder::Values& fields, ValueId slot) {
  auto& shared = b_.shared();
  const int slots = shape_.warps / 2;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Type type = b_.type(fields[i]);
    if (shared.size() <= i) {
      shared.push_back({"state_" + std::to_string(i), type.elem, slots * kWarpWidth * type.width});
    }
    const int piece = piece_width(type);
    const ValueId base = b_.mul(slot, b_.i64(std::int64_t{kWarpWidth} * type.width));
    for (int from = 0; from < type.width; from += piece) {
      b_.shared_store(static_cast<int>(i), {b_.add(base, b_.i64(std::int64_t{kWarpWidth} * from))},
                      b_.extract(fields[i], from, piece));
    }
  }
}

Builder::Values Band::take_over(const Builder::Values& like, ValueId slot) {
  Builder::Values fields;
  for (std::size_t i = 0; i < like.size(); ++i) {
    const Type type = b_.type(like[i]);
    const int piece = piece_width(type);
    const ValueId base = b_.mul(slot, b_.i64(std::int64_t{kWarpWidth} * type.width));
    Builder::Values pieces;
    for (int from = 0; from < type.width; from += piece) {
      pieces.push_back(b_.shared_load(
          static_cast<int>(i), {b_.add(base, b_.i64(std::int64_t{kWarpWidth} * from))}, piece));
    }
    fields.push_back(b_.concat(std::move(pieces)));
  }
  return fields;
}

ValueId Band::column_of(int run) {
  return b_.add(first_, b_.i64(std::int64_t{run} * kWarpWidth * shape_.width));
}

ValueId Band::lane_column(int element) {
  const ValueId first = b_.mul(b_.lane(), b_.i32(shape_.width));
  return element == 0 ? first : b_.add(first, b_.i32(element));
}

ValueId Band::owners(int run, int element) {
  const std::int64_t before = std::int64_t{run} * kWarpWidth * shape_.width;
  if (shape_.phased()) {
    if (!ragged_ && run + 1 < shape_.runs) return kNoValue;
    ValueId own = b_.i64(shape_.columns());
    if (ragged_) own = b_.min(own, b_.sub(count_, first_));
    return b_.lt(lane_column(element), b_.convert(b_.sub(own, b_.i64(before)), DType::i32));
  }
  const ValueId column = b_.mul(b_.lane(), b_.i32(shape_.width));
  if (columns_ < std::int64_t{kWarpWidth} * shape_.width)
    return b_.lt(column, b_.i32(static_cast<std::int32_t>(columns_)));
  if (skip_ == kNoValue) return kNoValue;
  return b_.compute(Op::ge, {wide(column), b_.sub(skip_, b_.i64(before))});
}

void Band::store(int buffer, ValueId row, int run, ValueId value, bool aligned) {
  ValueId base = column_of(run);
  if (row != kNoValue) base = b_.add(base, row);
  const ValueId mask = owners(run);
  value = b_.widen(value, shape_.width);
  const int width = b_.type(value).width, most = piece_width(b_.type(value));
  auto pieces = [&](int piece) {
    return [&, piece] {
      for (int from = 0; from < width; from += piece) {
        Address at{.base = b_.add(base, b_.i64(from))};
        if (piece < width) at = {.base = at.base, .group = 1, .stride = width};
        const bool alone = shape_.phased() && piece == 1;
        b_.store(buffer, at, b_.extract(value, from, piece), alone ? owners(run, from) : mask);
      }
      return Builder::Values{};
    };
  };
  if (aligned || most == 1 || b_.program().accesses_anywhere) {
    pieces(most)();
  } else if (b_.constant_of(base)) {  // the only band: few values
    pieces(1)();
  } else {
    ValueId wide = b_.compute(Op::eq, {b_.misalignment(buffer, base, kWidestAccess), b_.i64(0)});
    if (ragged_) {  // the last band's last vector is not all its own
      const ValueId end = b_.add(first_, b_.i64(shape_.columns()));
      wide = b_.both(wide, b_.compute(Op::le, {end, count_}));
    }
    b_.branch(wide, pieces(most), pieces(1));
  }
}

}  // namespace chainfold::codegen
