#include "chainfold/bench/gpu_case.hpp"

#include <algorithm>

namespace chainfold::bench {
namespace {

/// Several times what the second-level cache of any GPU so far holds.
constexpr std::int64_t kBeyondCaches = std::int64_t{256} << 20;

/// From one set to the next: sets are as well aligned as buffers are.
std::int64_t stride_of(std::int64_t bytes) {
  constexpr std::int64_t kAligned = 256;
  return (bytes + kAligned - 1) / kAligned * kAligned;
}

}  // namespace

std::vector<runtime::DeviceBuffer> make_inputs(const Case& test, std::int64_t elements,
                                               const GpuKernels& kernels,
                                               const runtime::Context& context,
                                               runtime::StreamHandle stream) {
  std::vector<runtime::DeviceBuffer> inputs;
  for (const Case::Input& input : test.inputs()) {
    inputs.emplace_back(context, static_cast<std::size_t>(elements * size_of(input.type)));
    kernels.fill(input.source, inputs.back().pointer(), elements, stream);
  }
  return inputs;
}

GpuCase::GpuCase(const Case& test, const std::vector<runtime::DeviceBuffer>& inputs,
                 std::int64_t most_sets, const runtime::Context& context,
                 const runtime::Stream& stream)
    : test_(test), names_(test.inputs()), inputs_(inputs), context_(context), stream_(stream) {
  slices_ = most_sets;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    slice_strides_.push_back(stride_of((test.elements + test.offset) * size_of(names_[i].type)));
    const auto fit = static_cast<std::int64_t>(inputs[i].bytes()) / slice_strides_[i];
    slices_ = std::clamp<std::int64_t>(fit, 1, slices_);
  }
  if (test.ragged) {
    told_ = runtime::DeviceBuffer(context, static_cast<std::size_t>(test.ragged->bytes()));
    runtime::copy_to_device(context, told_.pointer(), test.ragged->data(), told_.bytes(),
                            stream.handle());
    const std::vector<std::int32_t> keys = test.ragged->keys();
    if (!keys.empty()) {
      keys_ = runtime::DeviceBuffer(context, keys.size() * sizeof(keys[0]));
      runtime::copy_to_device(context, keys_.pointer(), keys.data(), keys_.bytes(),
                              stream.handle());
    }
    stream.synchronize();
  }
  copies_ = std::clamp<std::int64_t>(kBeyondCaches / test.bytes_written(), 2, 16);
  copies_ = std::min(copies_, most_sets);
  sets_ = std::max(slices_, copies_);
  for (std::size_t i = 0; i < test.computation.outputs(); ++i) {
    const std::int64_t size = size_of(test.computation.output_type(i));
    const std::int64_t bytes = (test.output_size() + test.offset) * size;
    strides_.push_back(stride_of(bytes));
    outputs_.emplace_back(context, static_cast<std::size_t>(copies_ * strides_.back()));
  }
}

void* GpuCase::input(std::size_t i, std::int64_t set) const {
  if (test_.in_place) return output(i, set);
  return static_cast<char*>(inputs_[i].data()) + set % slices_ * slice_strides_[i] +
         test_.offset * size_of(names_[i].type);
}

void* GpuCase::output(std::size_t i, std::int64_t set) const {
  return static_cast<char*>(outputs_[i].data()) + set % copies_ * strides_[i] +
         test_.offset * size_of(test_.computation.output_type(i));
}

void GpuCase::restore(std::int64_t set) const {
  if (!test_.in_place) return;
  const std::int64_t bytes = test_.bytes_read();
  const auto to = outputs_[0].pointer() + static_cast<std::uint64_t>(set % copies_ * strides_[0]);
  const auto from =
      inputs_[0].pointer() + static_cast<std::uint64_t>(set % slices_ * slice_strides_[0]);
  runtime::copy_on_device(context_, to, from, static_cast<std::size_t>(bytes), stream_.handle());
}

LaunchArgs GpuCase::args(std::int64_t set) const {
  LaunchArgs args{.elements = test_.elements};
  args.stream = stream_.handle();
  for (std::size_t i = 0; i < names_.size(); ++i)
    args.inputs.push_back(Binding(names_[i].name, input(i, set), names_[i].type));
  if (test_.ragged) args.inputs.push_back(test_.ragged->binding(told()));
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    args.outputs.push_back(
        OutputBinding(output(i, set), test_.computation.output_type(i), test_.output_size()));
  }
  return args;
}

Deviation GpuCase::check(const Checker& checker, double bound_u, bool may_overflow,
                         const std::function<void()>& run) const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    runtime::fill_bytes(context_, outputs_[i].pointer(), 0xff,
                        static_cast<std::size_t>(strides_[i]), stream_.handle());
  }
  restore(0);
  run();
  stream_.synchronize();
  const auto values_of = [&](std::int64_t segment) {
    std::vector<std::vector<std::byte>> values;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto size = static_cast<std::size_t>(size_of(test_.computation.output_type(i)));
      values.emplace_back(size);
      const std::size_t place = static_cast<std::size_t>(segment + test_.offset) * size;
      runtime::copy_to_host(context_, values.back().data(), outputs_[i].pointer() + place, size,
                            stream_.handle());
    }
    stream_.synchronize();
    return values;
  };
  return checker.check(values_of, bound_u, may_overflow);
}

}  // namespace chainfold::bench
