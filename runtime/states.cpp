#include "chainfold/runtime/states.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/states.hpp"

namespace chainfold {

static_assert(std::endian::native == std::endian::little, "states are little-endian");

namespace {

constexpr std::uintptr_t kAlignment = 8;
constexpr std::uint32_t kMagic = 0x54534643;  // "CFST"
constexpr std::uint32_t kVersion = 1;

struct Header {
  std::uint32_t magic = kMagic, version = kVersion;
  std::uint64_t hash = 0, bytes = 0, count = 0;
};
static_assert(sizeof(Header) == 32);

void check_memory(const void* states, std::int64_t count, const char* name) {
  if (count < 0)
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("{} states; the number of states is not negative", count), name);
  if (count > 0 && states == nullptr)
    throw UserError(ErrorCode::null_pointer,
                    fmt::format("'{}' is null; give it memory of States::bytes() a state", name),
                    name);
  if (reinterpret_cast<std::uintptr_t>(states) % kAlignment != 0)
    throw UserError(ErrorCode::misaligned,
                    fmt::format("'{}' is not aligned to 8 bytes, as states are", name), name);
}

[[noreturn]] void refuse(const std::string& what) {
  throw UserError(ErrorCode::invalid_argument, what + "; serialise it anew", "serialised");
}

}  // namespace

struct States::Shared {
  codegen::Graph graph;
  codegen::StateLayout layout;
  codegen::StateMerge merge;
  Options options;
  std::vector<std::string> names{};  ///< of the fields, as inputs
  std::vector<bool> read{};          ///< which of them the outputs read

  Shared(codegen::Graph of, codegen::StateLayout lies, codegen::StateMerge merges, Options with)
      : graph(std::move(of)),
        layout(std::move(lies)),
        merge(std::move(merges)),
        options(std::move(with)) {}

  /// A kernel that is compiled when it is first asked for.
  struct Lazy {
    mutable std::once_flag once;
    mutable std::optional<Kernel> kernel;
    template <class Make>
    const Kernel& get(const Options& options, const Make& make) const {
      std::call_once(once, [&] { kernel = compile(Computation(make()), options); });
      return *kernel;
    }
  };
  Lazy folding, merging, finishing;

  const Kernel& fold_kernel() const {
    return folding.get(options, [&] { return codegen::to_states(graph); });
  }
  /// Of two states each.
  const Kernel& merge_kernel() const {
    return merging.get(options, [&] {
      return codegen::merge_states(graph, {.kind = codegen::Partition::Kind::segments, .size = 2});
    });
  }
};

States::States(const Computation& computation, const Options& options) {
  if (!options.plan.empty())
    throw UserError(ErrorCode::unsupported,
                    "a pinned plan serves one kernel, and partial states have three; leave "
                    "Options::plan empty",
                    "plan");
  const codegen::Graph& graph = computation.graph();
  auto shared = std::make_shared<Shared>(graph, codegen::state_layout(graph),
                                         codegen::StateMerge(graph), options);
  const codegen::Graph from = codegen::from_states(shared->graph);
  for (std::size_t f = 0; f < shared->layout.fields.size(); ++f) {
    const std::string& name = shared->names.emplace_back(fmt::format("state_{}", f));
    shared->read.push_back(
        std::any_of(from.inputs.begin(), from.inputs.end(),
                    [&](const codegen::GraphInput& input) { return input.name == name; }));
  }
  shared_ = std::move(shared);
}

std::int64_t States::bytes() const { return shared_->layout.bytes; }
std::uint64_t States::hash() const { return shared_->layout.hash; }

std::int64_t States::rows(const void* state) const {
  check_memory(state, 1, "state");
  std::int64_t rows = 0;
  std::memcpy(&rows, state, sizeof rows);
  return rows;
}

States::Columns::Columns(const States& of, const void* states, std::int64_t count) : count_(count) {
  const codegen::StateLayout& layout = of.shared_->layout;
  for (const auto& field : layout.fields) {
    const auto size = static_cast<std::size_t>(size_of(field.type));
    std::vector<std::byte>& column = columns_.emplace_back(static_cast<std::size_t>(count) * size);
    if (states == nullptr) continue;
    const auto* from = static_cast<const std::byte*>(states) + field.offset;
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(column.data() + static_cast<std::size_t>(i) * size, from + i * layout.bytes,
                  size);
  }
}

void States::write(const Columns& columns, void* states) const {
  const codegen::StateLayout& layout = shared_->layout;
  if (columns.count() == 0) return;
  auto* const to = static_cast<std::byte*>(states);
  std::memset(to, 0, static_cast<std::size_t>(columns.count() * layout.bytes));
  for (std::size_t f = 0; f < layout.fields.size(); ++f) {
    const auto size = static_cast<std::size_t>(size_of(layout.fields[f].type));
    const auto* from = static_cast<const std::byte*>(columns.data(f));
    for (std::int64_t i = 0; i < columns.count(); ++i)
      std::memcpy(to + i * layout.bytes + layout.fields[f].offset,
                  from + static_cast<std::size_t>(i) * size, size);
  }
}

Outputs States::outputs(Columns& columns) const {
  Outputs outputs;
  for (std::size_t f = 0; f < shared_->layout.fields.size(); ++f)
    outputs.push_back(
        OutputBinding(columns.data(f), shared_->layout.fields[f].type, columns.count()));
  return outputs;
}

Bindings States::bindings(const Columns& columns, const Bindings& parameters) const {
  Bindings all = parameters;
  for (std::size_t f = 0; f < shared_->layout.fields.size(); ++f)
    if (shared_->read[f])
      all.push_back(Binding(std::string_view(shared_->names[f]), columns.data(f),
                            shared_->layout.fields[f].type, columns.count()));
  return all;
}

const Kernel& States::finishing() const {
  return shared_->finishing.get(shared_->options,
                                [&] { return codegen::from_states(shared_->graph); });
}

void States::init(void* states, std::int64_t count) const {
  check_memory(states, count, "states");
  auto* to = static_cast<std::byte*>(states);
  for (std::int64_t i = 0; i < count; ++i, to += bytes()) {
    std::memset(to, 0, static_cast<std::size_t>(bytes()));
    for (const auto& field : shared_->layout.fields)
      std::memcpy(to + field.offset, &field.init, static_cast<std::size_t>(size_of(field.type)));
  }
}

std::int64_t States::fold(void* states, std::int64_t capacity, const CallBindings& batch) const {
  check_memory(states, capacity, "states");
  const Kernel& kernel = shared_->fold_kernel();
  Columns columns(*this, nullptr, kernel.output_count(batch));
  const std::int64_t count = kernel.run_into(batch, outputs(columns));
  if (count > capacity)
    throw UserError(
        ErrorCode::too_small,
        fmt::format("'states' has room for {} states, and there are {} segments", capacity, count),
        "states");
  columns.keep(count);  // data may tell that there are fewer
  write(columns, states);
  return count;
}

void States::update(void* state, const CallBindings& batch) const {
  check_memory(state, 1, "state");
  if (shared_->graph.partition.kind != codegen::Partition::Kind::whole)
    throw UserError(ErrorCode::unsupported,
                    "update folds a batch into one state, so the computation is over cf::whole(); "
                    "States::fold gives a state for each segment");
  // Each field is an output of one value.
  const codegen::StateLayout& layout = shared_->layout;
  std::vector<std::uint64_t> one(static_cast<std::size_t>(bytes()) / sizeof(std::uint64_t));
  Outputs fields;
  for (const auto& field : layout.fields)
    fields.push_back(OutputBinding(reinterpret_cast<std::byte*>(one.data()) + field.offset,
                                   field.type, Count(1)));
  shared_->fold_kernel().run_into(batch, fields);
  merge_one(state, one.data());
}

void States::merge_one(void* into, const void* later) const {
  const codegen::StateLayout& layout = shared_->layout;
  const auto read = [&](const void* state) {
    std::vector<codegen::Bits> values(layout.fields.size());
    for (std::size_t f = 0; f < values.size(); ++f)
      std::memcpy(&values[f], static_cast<const std::byte*>(state) + layout.fields[f].offset,
                  static_cast<std::size_t>(size_of(layout.fields[f].type)));
    return values;
  };
  std::vector<codegen::Bits> values = read(into);
  shared_->merge(values, read(later));
  for (std::size_t f = 0; f < values.size(); ++f)
    std::memcpy(static_cast<std::byte*>(into) + layout.fields[f].offset, &values[f],
                static_cast<std::size_t>(size_of(layout.fields[f].type)));
}

void States::merge(void* into, const void* later, std::int64_t count) const {
  check_memory(into, count, "into");
  check_memory(later, count, "later");
  if (count == 0) return;
  if (count == 1) return merge_one(into, later);
  const codegen::StateLayout& layout = shared_->layout;
  // Pairs side by side.
  Columns both(*this, nullptr, 2 * count), merged(*this, nullptr, count);
  const Columns first(*this, into, count), second(*this, later, count);
  Bindings inputs;
  for (std::size_t f = 0; f < layout.fields.size(); ++f) {
    const auto size = static_cast<std::size_t>(size_of(layout.fields[f].type));
    auto* to = static_cast<std::byte*>(both.data(f));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      for (const Columns* from : {&first, &second}) {
        std::memcpy(to, static_cast<const std::byte*>(from->data(f)) + i * size, size);
        to += size;
      }
    inputs.push_back(Binding(std::string_view(shared_->names[f]), both.data(f),
                             layout.fields[f].type, 2 * count));
  }
  shared_->merge_kernel().run_into(inputs, outputs(merged));
  write(merged, into);
}

std::vector<std::byte> States::serialise(const void* states, std::int64_t count) const {
  check_memory(states, count, "states");
  const Header header{.hash = hash(),
                      .bytes = static_cast<std::uint64_t>(bytes()),
                      .count = static_cast<std::uint64_t>(count)};
  const auto payload = static_cast<std::size_t>(count * bytes());
  std::vector<std::byte> serialised(sizeof header + payload);
  std::memcpy(serialised.data(), &header, sizeof header);
  // Field by field: what lies between them is not the caller's to give away.
  if (count > 0) write(Columns(*this, states, count), serialised.data() + sizeof header);
  return serialised;
}

std::int64_t States::count_of(std::span<const std::byte> serialised) const {
  Header header;
  if (serialised.size() < sizeof header)
    refuse(
        fmt::format("{} bytes are fewer than the header of serialised states", serialised.size()));
  std::memcpy(&header, serialised.data(), sizeof header);
  if (header.magic != kMagic) refuse("the bytes are no serialised states");
  if (header.version != kVersion)
    refuse(fmt::format("the states are of format {}, and this library reads {}", header.version,
                       kVersion));
  if (header.hash != hash() || header.bytes != static_cast<std::uint64_t>(bytes()))
    refuse("the states are of other folds");
  const std::uint64_t room = serialised.size() - sizeof header;
  if (header.count > room / header.bytes || header.count * header.bytes != room)
    refuse(fmt::format("the header says {} states of {} bytes, and {} bytes follow", header.count,
                       header.bytes, room));
  return static_cast<std::int64_t>(header.count);
}

void States::deserialise(std::span<const std::byte> serialised, void* states,
                         std::int64_t capacity) const {
  check_memory(states, capacity, "states");
  const std::int64_t count = count_of(serialised);
  if (count > capacity)
    throw UserError(ErrorCode::too_small,
                    fmt::format("'states' has room for {} states of {}", capacity, count),
                    "states");
  if (count == 0) return;
  Columns columns(*this, serialised.data() + sizeof(Header), count);
  // A byte that is neither 0 nor 1 would be no boolean.
  for (std::size_t f = 0; f < shared_->layout.fields.size(); ++f) {
    if (shared_->layout.fields[f].type != DType::boolean) continue;
    auto* const flags = static_cast<std::byte*>(columns.data(f));
    std::transform(flags, flags + count, flags,
                   [](std::byte flag) { return std::byte{flag != std::byte{0}}; });
  }
  write(columns, states);
}

}  // namespace chainfold
