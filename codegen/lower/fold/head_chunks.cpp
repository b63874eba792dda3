#include "chainfold/codegen/lower/fold/head_chunks.hpp"

#include <array>
#include <cstdint>

#include "chainfold/codegen/lower/fold/head_condition.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"

namespace chainfold::codegen {

namespace {

/// Rows of elements, and of counts, that a warp has under way.
constexpr int kRows = 4;

ValueId is_first_lane(Builder& b) { return b.compute(Op::eq, {b.lane(), b.i32(0)}); }

/// The same in all lanes.
ValueId over_lanes(Builder& b, Op op, ValueId value) {
  for (int mask = 1; mask < kWarpWidth; mask *= 2)
    value = b.compute(op, {value, b.shuffle_xor(value, mask)});
  return value;
}

}  // namespace

ValueId sum_so_far(Builder& b, ValueId value) {
  const DType type = b.type(value).elem;
  for (int distance = 1; distance < kWarpWidth; distance *= 2) {
    const ValueId reaches = b.compute(Op::ge, {b.lane(), b.i32(distance)});
    value = b.add(value, b.select(reaches, b.shuffle_up(value, distance), b.constant(type, 0)));
  }
  return value;
}

ValueId largest_so_far(Builder& b, ValueId value) {
  // Lanes without one so far below them receive what they have.
  for (int distance = 1; distance < kWarpWidth; distance *= 2)
    value = b.compute(Op::max, {value, b.shuffle_up(value, distance)});
  return value;
}

HeadChunks::HeadChunks(Program& program, const Graph& graph, int elements, int length, int chunks,
                       bool places)
    : program_(program),
      graph_(graph),
      elements_(elements),
      length_(length),
      chunks_(chunks),
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
  if (!places) return;
  firsts_ = of_chunks("first_head");
  lasts_ = of_chunks("last_head");
  last_before_ = of_chunks("last_head_before");
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
  const ValueId lane = b.convert(b.lane(), DType::i64), none = b.splat(b.i64(-1));
  Builder::Values start = {b.i64(0)};
  if (places_) start.insert(start.end(), 2, none);
  const Builder::Values found =
      b.loop(chunk.begin, chunk.end, b.i64(kWarpWidth * kRows), start,
             [&](ValueId at, const Builder::Values& carried) -> Builder::Values {
               Builder::Values next = carried;
               std::array<HeadCondition, kRows> rows = {
                   HeadCondition(b, graph_), HeadCondition(b, graph_), HeadCondition(b, graph_),
                   HeadCondition(b, graph_)};
               const auto place = [&](std::size_t row) {
                 return b.add(at, b.i64(static_cast<std::int64_t>(row) * kWarpWidth));
               };
               for (std::size_t i = 0; i < rows.size(); ++i) {
                 rows[i].begin(place(i), b.lt(b.add(place(i), lane), chunk.end));
                 rows[i].load();
               }
               for (std::size_t i = 0; i < rows.size(); ++i) {
                 const ValueId heads = rows[i].heads();
                 next[0] = b.add(next[0], b.convert(b.count(heads), DType::i64));
                 if (!places_) continue;
                 const ValueId own = b.add(place(i), lane);
                 const ValueId is_first = b.both(heads, b.lt(next[1], b.i64(0)));
                 next[1] = b.select(is_first, own, next[1]);
                 next[2] = b.select(heads, own, next[2]);
               }
               return next;
             });
  b.store(counts_, {b.block()}, found[0], is_first_lane(b));
  if (!places_) return;
  const ValueId far = b.param(elements_);
  const ValueId first = b.select(b.lt(found[1], b.i64(0)), far, found[1]);
  const ValueId least = over_lanes(b, Op::min, first);
  b.store(firsts_, {b.block()}, b.select(b.lt(least, far), least, b.i64(-1)), is_first_lane(b));
  b.store(lasts_, {b.block()}, over_lanes(b, Op::max, found[2]), is_first_lane(b));
}

void HeadChunks::lower_place() {
  Builder b(program_);
  const ValueId chunks = b.param(chunks_), lane = b.convert(b.lane(), DType::i64);
  const ValueId last = b.splat(b.i32(kWarpWidth - 1));
  Builder::Values start = {b.splat(b.i64(0))};
  if (places_) start.push_back(b.splat(b.i64(-1)));
  const ValueId total = b.loop(
      b.i64(0), chunks, b.i64(kWarpWidth * kRows), start,
      [&](ValueId first, const Builder::Values& carried) -> Builder::Values {
        Builder::Values next = carried, at, exists, counts, lasts;
        for (int i = 0; i < kRows; ++i) {
          at.push_back(b.add(first, b.i64(std::int64_t{i} * kWarpWidth)));
          exists.push_back(b.lt(lane, b.sub(chunks, at.back())));
          counts.push_back(b.load(counts_, {at.back()}, 1, exists.back()));
          if (places_) lasts.push_back(b.load(lasts_, {at.back()}, 1, exists.back()));
        }
        for (std::size_t i = 0; i < kRows; ++i) {
          const ValueId sum = sum_so_far(b, counts[i]);
          b.store(before_, {at[i]}, b.add(next[0], b.sub(sum, counts[i])), exists[i]);
          next[0] = b.add(next[0], b.shuffle_from(sum, last));
          if (!places_) continue;
          const ValueId place = b.select(exists[i], lasts[i], b.i64(-1));
          const ValueId largest = largest_so_far(b, place);
          const ValueId others = b.select(is_first_lane(b), b.i64(-1), b.shuffle_up(largest, 1));
          b.store(last_before_, {at[i]}, b.compute(Op::max, {next[1], others}), exists[i]);
          next[1] = b.compute(Op::max, {next[1], b.shuffle_from(largest, last)});
        }
        return next;
      })[0];
  b.store(total_, {b.i64(0)}, total, is_first_lane(b));
}

}  // namespace chainfold::codegen
