// Launches that begin while the kernel before them on the stream still runs read what it wrote.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chainfold/runtime/device/module.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

using Words = std::vector<std::uint32_t>;

/// Lets the next kernel start at once, and writes much later.
constexpr const char* kLateWriter = R"(
extern "C" __global__ void write_late(unsigned* data, unsigned long long n, unsigned long long first,
                                      unsigned long long cycles) {
  asm volatile("griddepcontrol.launch_dependents;" : : :);
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    data[i] = (unsigned)first + (unsigned)i * 40503u;
}
)";

auto x() { return cf::input<std::uint32_t>("x"); }

// What the programs below do, on the host.
void scan(Words& words, std::size_t segment, bool backward = false) {
  for (std::size_t begin = 0; begin < words.size(); begin += segment) {
    for (std::size_t i = 1; i < segment; ++i) {
      const std::size_t at = backward ? begin + segment - 1 - i : begin + i;
      words[at] ^= words[backward ? at + 1 : at - 1];
    }
  }
}
Words folds(const Words& words, std::size_t segment) {
  Words results(words.size() / segment);
  for (std::size_t i = 0; i < words.size(); ++i) results[i / segment] ^= words[i];
  return results;
}
Words columns(const Words& words, std::size_t count) {
  Words results(count);
  for (std::size_t i = 0; i < words.size(); ++i) results[i % count] ^= words[i];
  return results;
}

/// A kernel of x, and its launches on one stream.
class Step {
 public:
  Step(const runtime::Context& context, const Computation& computation, const DeviceArray& in,
       void* stream, const std::string& plan = "")
      : kernel_([&] {
          Options options;
          options.target = cf::target("gpu");
          options.plan = plan;
          return cf::compile(computation, options);
        }()) {
    args_ = {.elements = static_cast<std::int64_t>(in.bytes() / sizeof(std::uint32_t)),
             .inputs = {{"x", static_cast<const std::uint32_t*>(in.data())}},
             .stream = stream};
    const std::int64_t bytes = kernel_.scratch_bytes(args_);
    scratch_ = runtime::DeviceBuffer(context, static_cast<std::size_t>(bytes));
    args_.scratch = {scratch_.data(), bytes};
  }
  /// Into `out` from result `first` on.
  void launch(const DeviceArray& out, std::size_t first = 0) {
    const std::size_t results = out.bytes() / sizeof(std::uint32_t) - first;
    args_.outputs = {
        {static_cast<std::uint32_t*>(out.data()) + first, static_cast<std::int64_t>(results)}};
    kernel_.launch(args_);
  }

 private:
  Kernel kernel_;
  LaunchArgs args_;
  runtime::DeviceBuffer scratch_;
};

/// Launches of the kernel that writes late: word i becomes first + 40503 i.
class LateWriter {
 public:
  explicit LateWriter(const runtime::Context& context)
      : module_(context,
                runtime::compile_cubin(kLateWriter, {.arch = context.device().arch()}).image,
                std::vector<std::string>{"write_late"}) {}
  void launch(const DeviceArray& words, std::uint32_t first, const runtime::Stream& stream) const {
    constexpr std::uint64_t kCycles = 200'000;
    const std::uint64_t slots[] = {reinterpret_cast<std::uintptr_t>(words.data()),
                                   words.bytes() / sizeof(std::uint32_t), first, kCycles};
    module_.launch_in_scope(0, {.x = 64}, 256, 0, stream.handle(), slots, std::size(slots));
  }
  static void write(Words& words, std::uint32_t first) {
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = first + static_cast<std::uint32_t>(i) * 40503U;
  }

 private:
  runtime::CudaModule module_;
};

class GpuOverlap : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
    context_ = &runtime::Context::of(0);
    if (!cf::target("gpu").overlaps) GTEST_SKIP() << "launches do not overlap before sm_90";
  }
  [[nodiscard]] DeviceArray words(std::size_t count) const {
    return {*context_, count * sizeof(std::uint32_t)};
  }
  const runtime::Context* context_ = nullptr;
};

/// Each kernel reads all that the one before it wrote, in memory that others have read shortly
/// before: nothing old may be left in a cache, and nothing may be written too early.
TEST_F(GpuOverlap, AChainOfKernelsSeesEachStep) {
  const runtime::ContextScope scope(*context_);
  constexpr std::size_t kSteps = 60, kGroup = 64;
  for (const std::size_t count : {6'400, 128'000, 1'600'000}) {
    SCOPED_TRACE(fmt::format("{} elements", count));
    Words host(count);
    for (std::size_t i = 0; i < count; ++i)
      host[i] = static_cast<std::uint32_t>((i + 1) * 2'654'435'761U ^ i >> 7U);
    const std::size_t groups = count / kGroup;
    const DeviceArray a = words(count), b = words(count), sums = words(kSteps * groups);
    a.upload(host.data());
    const runtime::Stream stream(*context_);
    Step within(*context_, cf::over(cf::segments(16), cf::inclusive(cf::bit_xor(x()))), a,
                stream.handle());
    Step of_groups(*context_, cf::over(cf::segments(kGroup), cf::bit_xor(x())), a, stream.handle());
    Step all(*context_, cf::over(cf::whole(), cf::inclusive(cf::bit_xor(x()))), a, stream.handle());
    Step back(*context_, cf::over(cf::segments(400), cf::inclusive(cf::bit_xor(x()), cf::backward)),
              b, stream.handle());
    Words expected;
    for (std::size_t k = 0; k < kSteps; ++k) {
      within.launch(a);  // in place
      of_groups.launch(sums, k * groups);
      all.launch(b);
      back.launch(a);
      scan(host, 16);
      const Words step = folds(host, kGroup);
      expected.insert(expected.end(), step.begin(), step.end());
      scan(host, count);
      scan(host, 400, true);
    }
    stream.synchronize();
    Words got(expected.size()), last(count);
    sums.download(got.data());
    a.download(last.data());
    const auto wrong = std::mismatch(expected.begin(), expected.end(), got.begin()).first;
    EXPECT_TRUE(wrong == expected.end())
        << "first in step " << static_cast<std::size_t>(wrong - expected.begin()) / groups;
    EXPECT_TRUE(last == host);
    EXPECT_EQ(a.damage() + b.damage() + sums.damage(), "");
  }
}

/// A kernel before the launch may let it start and write only then what the launch reads.
TEST_F(GpuOverlap, AForeignKernelThatLetsItStartIsWaitedFor) {
  const runtime::ContextScope scope(*context_);
  const LateWriter writer(*context_);
  struct Program {
    const char* what;
    Computation computation;
    std::size_t count;
    std::function<Words(const Words&)> reference;
    const char* plan = "";
  };
  const auto segments_of = [](std::size_t size) {
    return [size](const Words& words) { return folds(words, size); };
  };
  const auto scans_of = [](std::size_t size) {
    return [size](Words words) { return scan(words, size), words; };
  };
  const Computation total = cf::over(cf::whole(), cf::bit_xor(x()));
  const Computation running = cf::over(cf::whole(), cf::inclusive(cf::bit_xor(x())));
  const Program programs[] = {
      {"rows", cf::over(cf::segments(64), cf::bit_xor(x())), 64'000, segments_of(64)},
      {"staged", cf::over(cf::segments(37), cf::bit_xor(x())), 37 * 5000, segments_of(37)},
      {"elements", cf::over(cf::segments(1), cf::bit_xor(x())), 40'001, segments_of(1)},
      {"cluster", total, 50'000, segments_of(50'000)},
      {"parts", total, 3'000'017, segments_of(3'000'017)},
      {"columns", cf::over(cf::columns(1000), cf::bit_xor(x())), 300'000,
       [](const Words& words) { return columns(words, 1000); }},
      {"tiles", cf::over(cf::segments(32), cf::inclusive(cf::bit_xor(x()))), 64'000, scans_of(32)},
      {"few tiles", running, 70'000, scans_of(70'000)},
      {"look-back", running, 3'000'017, scans_of(3'000'017)},
      {"look-ahead", running, 400'003, scans_of(400'003),
       "look_ahead warps=4 depth=2 stages=4 blocks=2 bytes=16 simt"},
      {"propagate", running, 400'003, scans_of(400'003),
       "propagate warps=4 depth=2 tile=0 blocks=2 bytes=16 simt"},
  };
  for (const Program& program : programs) {
    SCOPED_TRACE(program.what);
    Words host(program.count);
    const DeviceArray in = words(program.count);
    const DeviceArray out = words(program.reference(host).size());
    const runtime::Stream stream(*context_);
    Step step(*context_, program.computation, in, stream.handle(), program.plan);
    step.launch(out);  // compiles
    for (std::uint32_t round = 1; round <= 6; ++round) {
      const std::uint32_t first = round * 2'246'822'519U;
      writer.launch(in, first, stream);
      step.launch(out);
      stream.synchronize();
      LateWriter::write(host, first);
      const Words expected = program.reference(host);
      Words got(expected.size());
      out.download(got.data());
      ASSERT_TRUE(expected == got) << "round " << round;
    }
    EXPECT_EQ(in.damage() + out.damage(), "");
  }
}

/// A graph keeps that a launch may start before the kernel in front of it has ended, and what it
/// waits for; behind a copy or a fill it is ordinary.
TEST_F(GpuOverlap, GraphsKeepIt) {
  const runtime::ContextScope scope(*context_);
  const runtime::DriverApi& api = runtime::driver();
  const LateWriter writer(*context_);
  constexpr std::size_t kCount = 64'000;
  constexpr std::uint32_t kFirst = 77;
  for (const bool filled : {false, true}) {
    const DeviceArray in = words(kCount), out = words(kCount / 64), total = words(1);
    const runtime::Stream stream(*context_);
    Step groups(*context_, cf::over(cf::segments(64), cf::bit_xor(x())), in, stream.handle());
    Step all(*context_, cf::over(cf::whole(), cf::bit_xor(x())), in, stream.handle());
    groups.launch(out);  // compiles
    all.launch(total);
    stream.synchronize();

    runtime::GraphHandle captured = nullptr;
    runtime::GraphExecHandle executable = nullptr;
    runtime::check(api.stream_begin_capture(stream.handle(), runtime::kCaptureThreadLocal),
                   "cuStreamBeginCapture");
    writer.launch(in, kFirst, stream);
    if (filled)
      runtime::fill_bytes(*context_, reinterpret_cast<runtime::DevicePtr>(in.data()), 0x55,
                          kCount * sizeof(std::uint32_t), stream.handle());
    groups.launch(out);
    all.launch(total);
    runtime::check(api.stream_end_capture(stream.handle(), &captured), "cuStreamEndCapture");
    runtime::check(api.graph_instantiate(&executable, captured, 0), "cuGraphInstantiateWithFlags");

    Words host(kCount, 0x55555555U);
    if (!filled) LateWriter::write(host, kFirst);
    for (int replay = 0; replay < 4; ++replay) {
      for (const DeviceArray* array : {&in, &out, &total}) array->poison();
      runtime::check(api.graph_launch(executable, stream.handle()), "cuGraphLaunch");
      stream.synchronize();
      Words got(kCount / 64), sum(1);
      out.download(got.data());
      total.download(sum.data());
      EXPECT_TRUE(got == folds(host, 64)) << "replay " << replay << (filled ? ", filled" : "");
      EXPECT_TRUE(sum == folds(host, kCount)) << "replay " << replay;
    }
    api.graph_exec_destroy(executable);
    api.graph_destroy(captured);
  }
}

}  // namespace
}  // namespace chainfold::test
