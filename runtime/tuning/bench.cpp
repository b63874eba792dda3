#include "chainfold/runtime/tuning/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/runtime/device/memory.hpp"

namespace chainfold::runtime {

namespace {

using codegen::Bits;

/// Elements after which the input repeats: an odd number, so that segments differ.
constexpr std::int64_t kPeriod = (std::int64_t{1} << 20) + 1;
constexpr std::uint8_t kPoison = 0xff;
/// Launches of a GPU timed together. Results that one leaves in the second-level cache are written
/// while the next one runs. So scattered results look free in a launch that is timed alone
/// (docs/decisions/0058-tuner.md).
constexpr int kLaunches = 3;
/// Bytes of results that launches write in turn, so that none overwrites what is still in a cache;
/// the most turns.
constexpr std::int64_t kBytesOfTurns = std::int64_t{256} << 20, kMostTurns = 64;
/// Bytes behind a page at which a host's inputs and outputs begin, as a large std::vector's do.
/// Where rows end within a line of memory, plans that store whole lines differ from plans that do
/// not.
constexpr std::size_t kHostOffset = 16;

/// Whole numbers from -8 to 8 (unsigned: 0 to 16; bool: 0 and 1), for floats without 0. The product
/// of 0 and an overflow would be NaN for some orders of the factors and not for others.
std::vector<std::byte> pattern(DType type, std::int64_t elements, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto size = static_cast<std::size_t>(size_of(type));
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * size);
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto draw = static_cast<int>(random() % 17);
    Bits bits = static_cast<Bits>(draw);
    if (type == DType::boolean) {
      bits = static_cast<Bits>(draw & 1);
    } else if (is_float(type)) {
      bits = codegen::bits_of_double(type, draw < 8 ? draw - 8 : draw == 16 ? 1 : draw - 7);
    } else if (is_signed(type)) {
      bits = static_cast<Bits>(static_cast<std::int64_t>(draw - 8));
    }
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * size, &bits, size);
  }
  return bytes;
}

/// Random bits.
std::vector<std::byte> bit_pattern(std::int64_t elements, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements / 8 + 1));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace

struct TuningBench::Device {
  explicit Device(int ordinal)
      : context(Context::of(ordinal)),
        scope(context),
        stream(context),
        begin(context, Event::Timing::on),
        end(context, Event::Timing::on) {}
  const Context& context;
  ContextScope scope;
  Stream stream;
  Event begin, end;
};

class TuningBench::Memory {
 public:
  /// `offset`: bytes behind a page at which a host's memory begins.
  Memory(const Device* device, std::int64_t bytes, std::size_t offset)
      : device_(device), bytes_(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))) {
    if (device_) {
      buffer_ = DeviceBuffer(device_->context, bytes_);
      return;
    }
    pages_ =
        static_cast<std::byte*>(std::aligned_alloc(kPage, ((bytes_ + offset) / kPage + 1) * kPage));
    if (!pages_)
      throw DeviceError(ErrorCode::out_of_memory,
                        fmt::format("{} bytes for tuning could not be allocated; set "
                                    "Options::tuning_elements to fewer",
                                    bytes_));
    host_ = pages_ + offset;
  }
  ~Memory() { std::free(pages_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] std::byte* data() const {
    return device_ ? static_cast<std::byte*>(buffer_.data()) : host_;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  /// Fills the memory with repetitions of `block`.
  void repeat(const std::vector<std::byte>& block) {
    const std::size_t first = std::min(block.size(), bytes_);
    put(0, block.data(), first);
    for (std::size_t filled = first; filled < bytes_;) {
      const std::size_t more = std::min(filled, bytes_ - filled);
      if (device_) {
        copy_on_device(device_->context, buffer_.pointer() + filled, buffer_.pointer(), more,
                       device_->stream.handle());
      } else {
        std::memcpy(host_ + filled, host_, more);
      }
      filled += more;
    }
    if (device_) device_->stream.synchronize();
  }
  void poison(std::int64_t bytes) {
    const auto count = static_cast<std::size_t>(bytes);
    if (device_) {
      fill_bytes(device_->context, buffer_.pointer(), kPoison, count, device_->stream.handle());
    } else {
      std::memset(host_, kPoison, count);
    }
  }
  void get(void* to, std::size_t bytes) const {
    if (!device_) {
      std::memcpy(to, host_, bytes);
      return;
    }
    copy_to_host(device_->context, to, buffer_.pointer(), bytes, device_->stream.handle());
    device_->stream.synchronize();
  }

 private:
  static constexpr std::size_t kPage = 1 << 12;
  void put(std::size_t at, const void* from, std::size_t bytes) {
    if (device_) {
      copy_to_device(device_->context, buffer_.pointer() + at, from, bytes,
                     device_->stream.handle());
      device_->stream.synchronize();
    } else {
      std::memcpy(host_ + at, from, bytes);
    }
  }
  const Device* device_;
  std::size_t bytes_;
  DeviceBuffer buffer_;
  std::byte *pages_ = nullptr, *host_ = nullptr;  // of a host
};

TuningBench::TuningBench(const TuningTask& task, std::int64_t elements) : task_(task) {
  if (task.device >= 0) device_ = std::make_unique<Device>(task.device);
  const codegen::Graph& graph = *task.graph;
  std::uint64_t seed = 1;
  for (const auto& input : graph.inputs) {
    inputs_.push_back(
        std::make_unique<Memory>(device_.get(), bytes_of_input(input, elements), kHostOffset));
    const std::int64_t period = std::min(elements, kPeriod);
    inputs_.back()->repeat(input.is_packed() ? bit_pattern(period, seed++)
                                             : pattern(input.type, period, seed++));
  }
  const Arguments dense = dense_arguments(graph, elements, task.request.segment);
  constexpr std::int64_t kBoundary = 512;
  std::int64_t bytes = 0;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const std::int64_t values = output_values(graph, dense, o);
    strides_.push_back((values * size_of(graph.node(graph.outputs[o]).type) / kBoundary + 1) *
                       kBoundary);
    bytes += strides_.back();
  }
  if (device_) turns_ = std::clamp<std::int64_t>(kBytesOfTurns / bytes, 1, kMostTurns);
  const auto allocate = [&] {
    for (const std::int64_t stride : strides_)
      outputs_.push_back(std::make_unique<Memory>(device_.get(), stride * turns_, kHostOffset));
  };
  try {
    allocate();
  } catch (const DeviceError& error) {
    if (error.code() != ErrorCode::out_of_memory || turns_ == 1) throw;
    turns_ = 1;
    outputs_.clear();
    allocate();
  }
}

TuningBench::~TuningBench() = default;

void TuningBench::launch(const KernelVariant& variant, std::int64_t elements, std::int64_t turn) {
  const codegen::Graph& graph = *task_.graph;
  Arguments arguments = dense_arguments(graph, elements, task_.request.segment);
  for (std::size_t i = 0; i < inputs_.size(); ++i) arguments.inputs[i] = inputs_[i]->data();
  // Parameters are not known yet: each is 1, in its type.
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const DType type = graph.params[i].type;
    arguments.params[i] = is_float(type) ? codegen::bits_of_double(type, 1) : Bits{1};
  }
  Slots slots(graph, variant.compiled.program, arguments,
              range_of(variant.compiled.plan, arguments));
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    slots.set_buffer(codegen::BufferRole::output, static_cast<int>(i),
                     outputs_[i]->data() + turn * strides_[i]);
  }
  const std::int64_t scratch = slots.scratch_bytes();
  if (scratch > 0 && (!scratch_ || static_cast<std::int64_t>(scratch_->bytes()) < scratch))
    scratch_ = std::make_unique<Memory>(device_.get(), scratch, 0);
  slots.set_scratch(scratch > 0 ? scratch_->data() : nullptr);
  variant.launch_all(slots, device_ ? device_->stream.handle() : nullptr);
}

TuningBench::Results TuningBench::results(const KernelVariant& variant, std::int64_t elements) {
  const codegen::Graph& graph = *task_.graph;
  const Arguments dense = dense_arguments(graph, elements, task_.request.segment);
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    outputs_[o]->poison(output_values(graph, dense, o) *
                        size_of(graph.node(graph.outputs[o]).type));
  }
  launch(variant, elements, 0);
  Results results;
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const auto size = static_cast<std::size_t>(size_of(graph.node(graph.outputs[o]).type));
    const auto count = static_cast<std::size_t>(output_values(graph, dense, o));
    std::vector<std::byte> bytes(count * size);
    outputs_[o]->get(bytes.data(), bytes.size());
    std::vector<Bits> values(count);
    for (std::size_t i = 0; i < values.size(); ++i)
      std::memcpy(&values[i], bytes.data() + i * size, size);
    results.push_back(std::move(values));
  }
  return results;
}

namespace {

/// Whether every plan must give the same bits on whole numbers: floats are not added, or only
/// inputs are.
bool is_exact(const codegen::Graph& graph) {
  for (const codegen::Node& node : graph.nodes) {
    if (node.kind != codegen::NodeKind::fold && node.kind != codegen::NodeKind::scan) continue;
    const codegen::Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    if (!fold.tile) return false;
    if (!fold.linear || !is_float(fold.result())) continue;
    const codegen::Node* operand = &graph.node(node.operands[0]);
    while (operand->kind == codegen::NodeKind::compute && operand->op == codegen::Op::convert)
      operand = &graph.node(operand->operands[0]);
    if (operand->kind != codegen::NodeKind::input) return false;
  }
  return true;
}

}  // namespace

std::string TuningBench::difference(const Results& expected, const Results& actual,
                                    std::int64_t elements) const {
  const codegen::Graph& graph = *task_.graph;
  const auto length =
      static_cast<double>(elements) /
      static_cast<double>(dense_arguments(graph, elements, task_.request.segment).segments);
  const bool exact = is_exact(graph) && length * 8 < 0x1p23;
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const DType type = graph.node(graph.outputs[o]).type;
    // Errors are relative to the sum of absolute values. A sum of n addends of both signs is about
    // sqrt(n) times smaller. `last` is the rounding of the output itself.
    const double unit = type == DType::f64 ? 0x1p-53 : 0x1p-24;
    const double last = type == DType::f16 ? 0x1p-10 : type == DType::bf16 ? 0x1p-7 : 2 * unit;
    double largest = 0;
    for (const Bits bits : expected[o]) {
      const double value = is_float(type) ? std::abs(codegen::double_of_bits(type, bits)) : 0;
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    const double allowed = (64 * unit * std::sqrt(length) + last) * largest;
    for (std::size_t i = 0; i < expected[o].size(); ++i) {
      const Bits a = expected[o][i], b = actual[o][i];
      if (a == b) continue;
      if (is_float(type)) {
        const double x = codegen::double_of_bits(type, a), y = codegen::double_of_bits(type, b);
        if (std::isnan(x) && std::isnan(y)) continue;
        if (!exact && std::abs(x - y) <= allowed) continue;
      }
      return fmt::format("output {} differs at {} {}: {} instead of {}", o,
                         per_element(graph, o) ? "element" : "segment", i,
                         codegen::text_of_bits(type, b), codegen::text_of_bits(type, a));
    }
  }
  return {};
}

int TuningBench::launches() const { return device_ ? kLaunches : 1; }

double TuningBench::time(const KernelVariant& variant, std::int64_t elements) {
  if (!device_) {
    const auto start = std::chrono::steady_clock::now();
    launch(variant, elements, 0);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }
  device_->begin.record(device_->stream.handle());
  for (int i = 0; i < kLaunches; ++i) {
    launch(variant, elements, turn_);
    turn_ = (turn_ + 1) % turns_;
  }
  device_->end.record(device_->stream.handle());
  device_->stream.synchronize();
  return device_->end.milliseconds_since(device_->begin) / kLaunches;
}

}  // namespace chainfold::runtime
