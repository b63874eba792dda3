// run_staged: host data through a GPU in chunks. While one chunk is computed, the next is copied to
// the device and the one after that into pinned memory. Chunk bounds follow from the sizes alone,
// never from free memory, and parts keep their absolute bounds. So the same data gives the same
// bits every time. Gaps between rows are not copied: data on the device is dense.
//
// Scans go in chunks of whole segments, each a launch of its own with its own scratch. All data is
// on the device at once (host_scans.cpp) where a scan's segment is too long for that. The same
// holds for folds of the whole input by one cluster.
#include "chainfold/runtime/host_staging.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/runtime/device/memory.hpp"
#include "chainfold/runtime/host_scans.hpp"
#include "chainfold/runtime/kernel_state.hpp"
#include "chainfold/runtime/launch/bitmaps.hpp"

namespace chainfold::runtime {

namespace {

using codegen::BufferRole;
using Piece = Kernel::State::Piece;

constexpr std::int64_t kChunkBytes = 64LL << 20;  // of all inputs and outputs together
constexpr int kLanes = 3;                         // chunks in flight

/// One chunk's worth of memory and its stream.
struct StagingLane {
  explicit StagingLane(const Context& context) : stream(context), done(context) {}
  Stream stream;
  Event done;
  std::vector<PinnedBuffer> pinned_in, pinned_out;
  std::vector<DeviceBuffer> device_in, device_out;
  DeviceBuffer scratch;  // of a chunk that is a launch of its own
  bool busy = false;
  // What pinned_out will hold: values of the piece's outputs with one a segment, and one an
  // element.
  struct Values {
    std::int64_t begin = 0, count = 0;
  } of_segments, of_elements;
};

/// Bytes of a unit of `elements` elements. Outputs have one value an element, or else `values`.
std::int64_t bytes_of(const codegen::Graph& graph, std::int64_t elements, std::int64_t values) {
  std::int64_t bytes = 0;
  for (const auto& input : graph.inputs) bytes += bytes_of_input(input, elements);
  for (std::size_t o = 0; o < graph.outputs.size(); ++o)
    bytes +=
        (per_element(graph, o) ? elements : values) * size_of(graph.node(graph.outputs[o]).type);
  return bytes;
}

/// Copies `rows` rows of `width` bytes, `stride` bytes apart, side by side.
void pack_rows(std::byte* to, const std::byte* from, std::int64_t rows, std::int64_t width,
               std::int64_t stride) {
  if (stride == width) {
    std::memcpy(to, from, static_cast<std::size_t>(rows * width));
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(to + row * width, from + row * stride, static_cast<std::size_t>(width));
}

class Staging {
 public:
  Staging(const Context& context, const Piece& piece)
      : context_(context),
        piece_(piece),
        graph_(*piece.graph),
        alone_(codegen::has_scans(*piece.graph)) {
    const codegen::Plan& plan = piece.variant->compiled.plan;
    const bool columns = plan.strategy == codegen::Strategy::columns;
    // Columns whose rows are not cut are cut between columns. Segments of one part or one cluster
    // each are finished by the launch that folds them.
    bands_ = columns && piece.range.parts == 1;
    parts_ = piece.range.parts > 1 && plan.parts.cluster == 0;
    // A unit is not cut. It is a segment, a part, the columns of a block, or the whole input where
    // its plan has no parts.
    const std::int64_t row = columns ? piece.arguments.segment : 1;
    unit_ = parts_                        ? piece.range.part_length * row
            : piece.arguments.segment > 0 ? piece.arguments.segment
                                          : piece.arguments.elements;
    units_ = parts_ ? piece.range.part_end : piece.arguments.segments;
    if (bands_) {
      band_ = std::min(plan.columns_per_block(), piece.arguments.segment);
      unit_ = band_ * piece.arguments.rows;
      units_ = piece.arguments.segment / band_;
    }
    // Results are copied with their chunk; those of parts only once, at the end.
    const std::int64_t unit_bytes = bytes_of(graph_, unit_, parts_ ? 0 : bands_ ? band_ : 1);
    units_per_chunk_ = std::clamp<std::int64_t>(kChunkBytes / std::max<std::int64_t>(1, unit_bytes),
                                                1, std::max<std::int64_t>(1, units_));
  }

  void run() {
    const int lanes = static_cast<int>(
        std::min<std::int64_t>(kLanes, (units_ + units_per_chunk_ - 1) / units_per_chunk_));
    lanes_.reserve(static_cast<std::size_t>(lanes));
    for (int i = 0; i < lanes; ++i) allocate(lanes_.emplace_back(context_));
    // Other folds' scratch has room for all of it: no two chunks share any.
    if (!alone_) {
      const Slots sizes(graph_, piece_.variant->compiled.program, piece_.arguments, piece_.range);
      scratch_ = DeviceBuffer(context_, static_cast<std::size_t>(sizes.scratch_bytes()));
    }
    std::size_t next = 0;
    for (std::int64_t begin = 0; begin < units_; begin += units_per_chunk_) {
      StagingLane& lane = lanes_[next++ % lanes_.size()];
      finish(lane);
      start(lane, begin, std::min(units_, begin + units_per_chunk_));
    }
    for (StagingLane& lane : lanes_) finish(lane);
    if (parts_) merge_parts();
  }

 private:
  [[nodiscard]] int output_size(std::size_t o) const {
    return size_of(graph_.node(graph_.outputs[o]).type);
  }
  /// A chunk of so many segments, as the arguments of a launch of its own.
  [[nodiscard]] Arguments chunk(std::int64_t segments) const {
    Arguments arguments = piece_.arguments;
    arguments.segments = segments;
    arguments.elements = segments * arguments.segment;
    return arguments;
  }
  [[nodiscard]] Slots slots_of(const Arguments& arguments, const Slots::Range& range) const {
    return {graph_, piece_.variant->compiled.program, arguments, range};
  }

  void allocate(StagingLane& lane) {
    std::int64_t elements = units_per_chunk_ * unit_, values = units_per_chunk_;
    if (bands_) {
      values = units_per_chunk_ * band_ + piece_.arguments.segment % band_;
      elements = values * piece_.arguments.rows;
    }
    for (const auto& input : graph_.inputs) {
      const auto bytes = static_cast<std::size_t>(bytes_of_input(input, elements, 7));
      lane.pinned_in.emplace_back(context_, bytes);
      lane.device_in.emplace_back(context_, bytes);
    }
    const bool with_outputs = !parts_ || &lane == &lanes_.front();  // parts are merged on one lane
    for (std::size_t o = 0; with_outputs && o < graph_.outputs.size(); ++o) {
      const std::int64_t room = parts_                   ? piece_.arguments.segments
                                : per_element(graph_, o) ? elements
                                                         : values;
      const auto bytes = static_cast<std::size_t>(room * output_size(o));
      lane.pinned_out.emplace_back(context_, bytes);
      lane.device_out.emplace_back(context_, bytes);
    }
    if (!alone_) return;
    std::int64_t scratch = 0;
    for (const std::int64_t segments : {units_per_chunk_, units_ % units_per_chunk_}) {
      if (segments == 0) continue;
      const Arguments arguments = chunk(segments);
      const Slots slots = slots_of(arguments, range_of(piece_.variant->compiled.plan, arguments));
      scratch = std::max(scratch, slots.scratch_bytes());
    }
    lane.scratch = DeviceBuffer(context_, static_cast<std::size_t>(scratch));
  }

  /// The element at which unit `u` begins; behind the last one, the end of the input.
  [[nodiscard]] std::int64_t element_of(std::int64_t u) const {
    if (!parts_) return u * unit_;
    const std::int64_t length = piece_.arguments.rows == 0 && piece_.arguments.segment > 0
                                    ? piece_.arguments.segment
                                    : piece_.arguments.elements;
    return u / piece_.range.parts * length + std::min(length, u % piece_.range.parts * unit_);
  }

  /// The column at which unit `u` of bands begins; the last one takes what is left.
  [[nodiscard]] std::int64_t column_of(std::int64_t u) const {
    return u == units_ ? piece_.arguments.segment : u * band_;
  }

  /// Elements [first, first + count) of input `i`, counted without gaps.
  void pack(std::size_t i, std::int64_t first, std::int64_t count, std::byte* to) const {
    const std::int64_t size = size_of(graph_.inputs[i].type);
    const std::byte* const from = piece_.arguments.inputs[i];
    const std::int64_t row = piece_.arguments.segment, stride = piece_.arguments.strides[i];
    if (row == 0 || stride == row) {
      std::memcpy(to, from + first * size, static_cast<std::size_t>(count * size));
      return;
    }
    auto place = [&](std::int64_t element) {
      return from + (element / row * stride + element % row) * size;
    };
    const std::int64_t head = std::min(count, (row - first % row) % row);
    const std::int64_t rows = (count - head) / row, tail = count - head - rows * row;
    std::memcpy(to, place(first), static_cast<std::size_t>(head * size));
    pack_rows(to + head * size, place(first + head), rows, row * size, stride * size);
    if (tail > 0) {
      std::memcpy(to + (count - tail) * size, place(first + count - tail),
                  static_cast<std::size_t>(tail * size));
    }
  }

  void start(StagingLane& lane, std::int64_t begin, std::int64_t end) {
    const StreamHandle stream = lane.stream.handle();
    Slots::Range range = piece_.range;
    std::int64_t first = 0, count = 0;
    if (bands_) {
      first = column_of(begin);
      range.segments = column_of(end) - first;
      count = range.segments * piece_.arguments.rows;
    } else {
      first = element_of(begin);
      count = element_of(end) - first;
      range.segments = parts_ ? range.segments : end - begin;
    }
    if (!parts_ && !bands_) range.part_end = range.segments * range.parts;
    if (parts_) {
      range.origin = piece_.arguments.rows > 0 ? first / piece_.arguments.segment : first;
      range.part_begin = begin;
      range.part_end = end;
    }
    Arguments arguments = alone_ ? chunk(end - begin) : piece_.arguments;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const std::int64_t size = size_of(graph_.inputs[i].type);
      if (bands_ || graph_.inputs[i].is_packed()) advance_input(graph_, arguments, i, first);
      const auto bytes = static_cast<std::size_t>(bytes_of_input(graph_, arguments, i, count));
      if (bytes == 0) continue;
      std::byte* const to = lane.pinned_in[i].data();
      if (bands_) {
        pack_rows(to, arguments.inputs[i], piece_.arguments.rows, range.segments * size,
                  piece_.arguments.strides[i] * size);
      } else if (graph_.inputs[i].is_packed()) {
        std::memcpy(to, arguments.inputs[i], bytes);
      } else {
        pack(i, first, count, to);
      }
      copy_to_device(context_, lane.device_in[i].pointer(), lane.pinned_in[i].data(), bytes,
                     stream);
    }
    if (alone_) range = range_of(piece_.variant->compiled.plan, arguments);
    Slots slots = slots_of(arguments, range);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      slots.set_buffer(BufferRole::input, static_cast<int>(i), lane.device_in[i].data());
    for (std::size_t i = 0; i < lane.device_out.size(); ++i)
      slots.set_buffer(BufferRole::output, static_cast<int>(i), lane.device_out[i].data());
    slots.set_scratch(alone_ ? lane.scratch.data() : scratch_.data());
    if (parts_) {  // their merge is the last launch
      piece_.variant->launch(0, slots, stream);
    } else {
      piece_.variant->launch_all(slots, stream);
      lane.of_elements = {first, count};
      download(lane, bands_ ? first : begin, range.segments);
    }
    lane.done.record(stream);
    lane.busy = true;
  }

  [[nodiscard]] const StagingLane::Values& values(const StagingLane& lane, std::size_t o) const {
    return per_element(graph_, o) ? lane.of_elements : lane.of_segments;
  }

  void download(StagingLane& lane, std::int64_t begin, std::int64_t count) {
    lane.of_segments = {begin, count};
    for (std::size_t o = 0; o < graph_.outputs.size(); ++o) {
      copy_to_host(context_, lane.pinned_out[o].data(), lane.device_out[o].pointer(),
                   static_cast<std::size_t>(values(lane, o).count * output_size(o)),
                   lane.stream.handle());
    }
  }

  /// Waits for the lane's chunk and hands its outputs over.
  void finish(StagingLane& lane) {
    if (!lane.busy) return;
    lane.done.synchronize();
    for (std::size_t o = 0; o < graph_.outputs.size() && lane.of_segments.count > 0; ++o) {
      const auto [begin, count] = values(lane, o);
      std::memcpy(piece_.arguments.outputs[o] + begin * output_size(o), lane.pinned_out[o].data(),
                  static_cast<std::size_t>(count * output_size(o)));
    }
    lane.of_segments = lane.of_elements = {};
    lane.busy = false;
  }

  void merge_parts() {
    StagingLane& lane = lanes_[0];
    Slots slots = slots_of(piece_.arguments, piece_.range);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i)
      slots.set_buffer(BufferRole::output, static_cast<int>(i), lane.device_out[i].data());
    slots.set_scratch(scratch_.data());
    piece_.variant->launch(1, slots, lane.stream.handle());
    download(lane, 0, piece_.arguments.segments);
    lane.done.record(lane.stream.handle());
    lane.busy = true;
    finish(lane);
  }

  const Context& context_;
  const Piece& piece_;
  const codegen::Graph& graph_;
  const bool alone_;  // chunks have scratch of their own: the slots of scans' tiles
  bool parts_ = false, bands_ = false;
  std::int64_t unit_ = 0, units_ = 0, units_per_chunk_ = 1;
  std::int64_t band_ = 0;  // columns of a unit
  std::vector<StagingLane> lanes_;
  DeviceBuffer scratch_;
};

}  // namespace

LaunchStatus run_staged(Kernel::State& state, const Kernel::State::Pieces& pieces) {
  LaunchStatus status;
  const Context& context = Context::of(state.device);
  const ContextScope scope(context);
  for (const Piece& piece : pieces) {
    const std::int64_t segment = piece.arguments.segment;
    const bool fits =
        segment > 0 && segment <= kChunkBytes && bytes_of(*piece.graph, segment, 1) <= kChunkBytes;
    // A band of columns begins at any bit of each row.
    const bool whole = (piece.variant->compiled.plan.parts.cluster > 0 && segment == 0) ||
                       (codegen::has_packed(*piece.graph) && codegen::has_columns(*piece.graph));
    if (codegen::is_ragged(*piece.graph)) {
      status = run_on_device(context, piece);
      check_status(*piece.graph, piece.arguments, status);
    } else if (whole || (codegen::has_scans(*piece.graph) && !fits)) {
      run_on_device(context, piece);
    } else {
      Staging(context, piece).run();
    }
  }
  return status;
}

}  // namespace chainfold::runtime
