#include "chainfold/codegen/lower/fold/head_chunks.hpp"

#include <cstdint>

#include "chainfold/codegen/lower/fold/head_condition.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/lane_scans.hpp"

namespace chainfold::codegen {

namespace {

/// Chunks of a lane, one behind the other: trips wait for memory, and lanes for each other.
constexpr int kCounts = 8;

ValueId is_first_lane(Builder& b) { return b.compute(Op::eq, {b.lane(), b.i32(0)}); }

/// The same in all lanes.
ValueId over_lanes(Builder& b, Op op, ValueId value) {
  for (int mask = 1; mask < kWarpWidth; mask *= 2)
    value = b.compute(op, {value, b.shuffle_xor(value, mask)});
  return value;
}

}  // namespace

HeadChunks::HeadChunks(Program& program, const Graph& graph, int elements, int length, int chunks,
                       bool begun, bool places)
    : program_(program),
      graph_(graph),
      elements_(elements),
      length_(length),
      chunks_(chunks),
      begun_(begun),
      places_(places) {
  for (std::size_t o = 0; o < graph.outputs.size(); ++o)
    rooms_.push_back(add_param(program, "room_" + std::to_string(o), DType::i64, ParamRole::room,
                               static_cast<int>(o)));
  const auto of_chunks = [&](const char* name) {
    return declare_scratch(program, name, DType::i64, param_size(program, chunks));
  };
  counts_ = of_chunks("heads_of");
  before_ = of_chunks("heads_before");
  total_ = declare_scratch(program, "segments", DType::i64, 1);
  if (begun) begun_in_ = of_chunks("begun_in");
  if (!places) return;
  firsts_ = of_chunks("first_head");
  lasts_ = of_chunks("last_head");
}

void HeadChunks::lower() {
  program_.launches.push_back(
      {.name = "count_heads", .grid = param_size(program_, chunks_), .warps = 1});
  lower_count();
  program_.launches.push_back({.name = "place_heads", .grid = 1, .warps = 1});
  lower_place();
}

void HeadChunks::write_status(Builder& b, int status) {
  b.store(status, {b.i64(0)}, b.i64(-1), is_first_lane(b));
  b.store(status, {b.i64(1)}, segments(b), is_first_lane(b));
}

HeadChunks::Chunk HeadChunks::chunk_of(Builder& b) {
  const ValueId begin = b.mul(b.block(), b.param(length_));
  return {begin, b.min(b.add(begin, b.param(length_)), b.param(elements_))};
}

void HeadChunks::lower_count() {
  Builder b(program_);
  const Chunk chunk = chunk_of(b);
  const ValueId size = b.convert(b.sub(chunk.end, chunk.begin), DType::i32);
  const ValueId none = b.splat(b.i32(-1)), zero = b.splat(b.i32(0));
  Builder::Values start = {zero};
  if (places_) start.insert(start.end(), 2, none);
  const Builder::Values found =
      b.loop(b.i32(0), size, b.i32(kWarpWidth * kRows), start,
             [&](ValueId at, const Builder::Values& carried) -> Builder::Values {
               Builder::Values next = carried;
               std::vector<HeadCondition> rows(kRows, HeadCondition(b, graph_));
               const ValueId first = b.add(chunk.begin, b.convert(at, DType::i64));
               const ValueId left = b.sub(size, at);
               for (int i = 0; i < kRows; ++i) {
                 HeadCondition& row = rows[static_cast<std::size_t>(i)];
                 row.begin(b.add(first, b.i64(std::int64_t{i} * kWarpWidth)),
                           b.lt(b.lane(), b.sub(left, b.i32(i * kWarpWidth))));
                 row.load();
               }
               for (int i = 0; i < kRows; ++i) {
                 // The first element of all is one of the first row.
                 HeadCondition& row = rows[static_cast<std::size_t>(i)];
                 const ValueId heads = i == 0 ? row.heads() : row.told();
                 next[0] = b.add(next[0], b.select(heads, b.i32(1), b.i32(0)));
                 if (!places_) continue;
                 const ValueId own = b.add(b.add(at, b.lane()), b.i32(i * kWarpWidth));
                 next[1] = b.select(b.both(heads, b.lt(next[1], b.i32(0))), own, next[1]);
                 next[2] = b.select(heads, own, next[2]);
               }
               return next;
             });
  const ValueId count = over_lanes(b, Op::add, found[0]);
  b.store(counts_, {b.block()}, b.convert(count, DType::i64), is_first_lane(b));
  if (!places_) return;
  const auto tell = [&](int buffer, ValueId place) {
    const ValueId there = b.add(chunk.begin, b.convert(place, DType::i64));
    b.store(buffer, {b.block()}, b.select(b.lt(place, b.i32(0)), b.i64(-1), there),
            is_first_lane(b));
  };
  // Lanes without a head say that theirs is behind all.
  const ValueId first = b.select(b.lt(found[1], b.i32(0)), size, found[1]);
  const ValueId least = over_lanes(b, Op::min, first);
  tell(firsts_, b.select(b.lt(least, size), least, none));
  tell(lasts_, over_lanes(b, Op::max, found[2]));
}

void HeadChunks::lower_place() {
  Builder b(program_);
  const ValueId chunks = b.param(chunks_), last_lane = b.splat(b.i32(kWarpWidth - 1));
  const ValueId own = b.mul(b.convert(b.lane(), DType::i64), b.i64(kCounts));
  const auto at_lane = [&](ValueId first, int i) {
    return Address{.base = b.add(first, b.i64(i)), .group = 1, .stride = kCounts};
  };
  const ValueId none = b.splat(b.i64(-1));
  Builder::Values start = {b.splat(b.i64(0))};
  if (begun_) start.push_back(none);
  const ValueId total =
      b.loop(b.i64(0), chunks, b.i64(kWarpWidth * kCounts), start,
             [&](ValueId first, const Builder::Values& carried) -> Builder::Values {
               Builder::Values exists, counts, numbers, next;
               for (int i = 0; i < kCounts; ++i) {
                 numbers.push_back(b.add(b.add(first, own), b.i64(i)));
                 exists.push_back(b.lt(numbers.back(), chunks));
                 counts.push_back(b.load(counts_, at_lane(first, i), 1, exists.back()));
               }
               ValueId sum = b.i64(0);
               for (const ValueId count : counts) sum = b.add(sum, count);
               const ValueId sums = sum_so_far(b, sum);
               ValueId before = b.add(carried[0], b.sub(sums, sum));
               for (std::size_t i = 0; i < kCounts; ++i) {
                 b.store(before_, at_lane(first, static_cast<int>(i)), before, exists[i]);
                 before = b.add(before, counts[i]);
               }
               next.push_back(b.add(carried[0], b.shuffle_from(sums, last_lane)));
               if (!begun_) return next;
               const auto after = [&](std::size_t i, ValueId last) {
                 return b.select(b.lt(b.i64(0), counts[i]), numbers[i], last);
               };
               ValueId last = none;
               for (std::size_t i = 0; i < kCounts; ++i) last = after(i, last);
               const ValueId lasts = largest_so_far(b, last);
               const ValueId others = b.select(is_first_lane(b), none, b.shuffle_up(lasts, 1));
               ValueId begun = b.compute(Op::max, {carried[1], others});
               for (std::size_t i = 0; i < kCounts; ++i) {
                 b.store(begun_in_, at_lane(first, static_cast<int>(i)), begun, exists[i]);
                 begun = after(i, begun);
               }
               next.push_back(b.compute(Op::max, {carried[1], b.shuffle_from(lasts, last_lane)}));
               return next;
             })[0];
  b.store(total_, {b.i64(0)}, total, is_first_lane(b));
}

ValueId HeadChunks::last_before(Builder& b, ValueId chunk) {
  const ValueId begun = begun_in(b, chunk);
  return b.branch_uniform(
      b.compute(Op::ge, {begun, b.i64(0)}), [&] { return b.load_uniform(lasts_, begun); },
      [&] { return b.i64(-1); });
}

}  // namespace chainfold::codegen
