// run_on_device: scans of host data whose segments are too long for chunks, and folds of the whole
// input by one cluster, folds over segments that offsets tell, and bitmaps of columns. All inputs
// and outputs of a piece are on the device at once. Only the copies go through pinned buffers: one
// is filled while the one before it is on its way.
#include "chainfold/runtime/host_scans.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/runtime/device/memory.hpp"
#include "chainfold/runtime/kernel_state.hpp"

namespace chainfold::runtime {

namespace {

constexpr std::size_t kPinnedBytes = std::size_t{16} << 20;

/// Copies between ordinary host memory and the device, in the order of one stream.
class Transfer {
 public:
  Transfer(const Context& context, std::size_t longest)
      : context_(context),
        stream_(context),
        bytes_(std::min(kPinnedBytes, std::max<std::size_t>(longest, 1))),
        lanes_{Lane(context, bytes_), Lane(context, bytes_)} {}

  [[nodiscard]] StreamHandle stream() const { return stream_.handle(); }

  void upload(const DeviceBuffer& to, const std::byte* from) {
    upload_rows(to, from, to.bytes(), to.bytes());
  }
  /// Rows of `row` bytes, `stride` bytes apart, one behind the other.
  void upload_rows(const DeviceBuffer& to, const std::byte* from, std::size_t row,
                   std::size_t stride) {
    for (std::size_t at = 0; at < to.bytes(); at += bytes_) {
      Lane& lane = next();
      const std::size_t count = std::min(bytes_, to.bytes() - at);
      for (std::size_t done = 0; done < count;) {
        const std::size_t within = (at + done) % row;
        const std::size_t some = std::min(row - within, count - done);
        std::memcpy(lane.memory.data() + done, from + (at + done) / row * stride + within, some);
        done += some;
      }
      copy_to_device(context_, to.pointer() + at, lane.memory.data(), count, stream());
      lane.send(stream());
    }
  }
  /// `to` may be read after finish().
  void download(std::byte* to, const DeviceBuffer& from) { download(to, from, from.bytes()); }
  /// The same of the first so many bytes.
  void download(std::byte* to, const DeviceBuffer& from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += bytes_) {
      Lane& lane = next();
      const std::size_t count = std::min(bytes_, bytes - at);
      copy_to_host(context_, lane.memory.data(), from.pointer() + at, count, stream());
      lane.send(stream());
      lane.to = to + at;
      lane.count = count;
    }
  }
  void finish() {
    for (std::size_t i = 0; i < lanes_.size(); ++i) next();
    stream_.synchronize();
  }

 private:
  struct Lane {
    Lane(const Context& context, std::size_t bytes) : memory(context, bytes), done(context) {}
    void send(StreamHandle stream) {
      done.record(stream);
      busy = true;
    }
    PinnedBuffer memory;
    Event done;
    bool busy = false;
    std::byte* to = nullptr;  // where the memory's contents belong when they are there
    std::size_t count = 0;
  };
  /// The lane that was used longest ago, free again.
  Lane& next() {
    Lane& lane = lanes_[turn_++ % lanes_.size()];
    if (lane.busy) lane.done.synchronize();
    if (lane.to != nullptr) std::memcpy(lane.to, lane.memory.data(), lane.count);
    lane.busy = false;
    lane.to = nullptr;
    return lane;
  }

  const Context& context_;
  Stream stream_;
  std::size_t bytes_;
  std::array<Lane, 2> lanes_;
  std::size_t turn_ = 0;
};

}  // namespace

LaunchStatus run_on_device(const Context& context, const Kernel::State::Piece& piece) {
  const codegen::Graph& graph = *piece.graph;
  Slots slots(graph, piece.variant->compiled.program, piece.arguments, piece.range);
  // The elements of full segments, or of the whole: those of a tail are a piece of their own.
  const std::int64_t segment = piece.arguments.segment;
  const std::int64_t segments = piece.arguments.segments;
  const bool columns = codegen::has_columns(graph);
  const std::int64_t elements =
      segment > 0 && !columns ? segments * segment : piece.arguments.elements;
  const bool ragged = codegen::is_ragged(graph);
  const auto values = [&](std::size_t o) {
    return ragged                  ? output_values(graph, piece.arguments, o)
           : per_element(graph, o) ? elements
                                   : segments;
  };
  std::vector<DeviceBuffer> inputs, outputs;
  std::size_t longest = 0;
  auto allocate = [&](std::vector<DeviceBuffer>& buffers, codegen::BufferRole role,
                      std::int64_t bytes) {
    buffers.emplace_back(context, static_cast<std::size_t>(bytes));
    slots.set_buffer(role, static_cast<int>(buffers.size()) - 1, buffers.back().data());
    longest = std::max(longest, buffers.back().bytes());
  };
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    allocate(inputs, codegen::BufferRole::input,
             bytes_of_input(graph, piece.arguments, i, elements));
  for (const auto& bound : graph.partition.bounds)
    allocate(inputs, codegen::BufferRole::input,
             bound_values(graph, piece.arguments) * size_of(bound.type));
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    allocate(outputs, codegen::BufferRole::output,
             values(o) * size_of(graph.node(graph.outputs[o]).type));
  }
  const DeviceBuffer scratch(context, static_cast<std::size_t>(slots.scratch_bytes()));
  slots.set_scratch(scratch.data());
  LaunchStatus status;
  const DeviceBuffer told(context, ragged ? sizeof status : 0);
  if (told.bytes() > 0) slots.set_status(told.data());
  Transfer transfer(context, longest);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::byte* const from = piece.arguments.inputs[i];
    const bool has_gaps =
        i < graph.inputs.size() && piece.arguments.strided && piece.arguments.strides[i] != segment;
    const auto size = static_cast<std::size_t>(has_gaps ? size_of(graph.inputs[i].type) : 1);
    if (has_gaps)
      transfer.upload_rows(inputs[i], from, static_cast<std::size_t>(segment) * size,
                           static_cast<std::size_t>(piece.arguments.strides[i]) * size);
    else
      transfer.upload(inputs[i], from);
  }
  // Elements of no segment keep what their outputs hold.
  for (std::size_t o = 0; o < outputs.size() && has_offsets(graph); ++o)
    if (per_element(graph, o)) transfer.upload(outputs[o], piece.arguments.outputs[o]);
  piece.variant->launch_all(slots, transfer.stream());
  transfer.download(reinterpret_cast<std::byte*>(&status), told);
  if (ragged) transfer.finish();
  if (status.wrong_offset >= 0) return status;  // nothing was written
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const std::int64_t there = codegen::has_heads(graph) && !per_element(graph, o)
                                   ? std::min(values(o), status.segments)
                                   : values(o);
    transfer.download(piece.arguments.outputs[o], outputs[o],
                      static_cast<std::size_t>(there * size_of(graph.node(graph.outputs[o]).type)));
  }
  transfer.finish();
  return status;
}

}  // namespace chainfold::runtime
