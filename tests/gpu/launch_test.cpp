// launch() on device memory: addresses, streams, graphs, memory of the wrong kind, repeatability.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>

#include "chainfold/tests/support/expect_error.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

class GpuLaunch : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
    context_ = &runtime::Context::of(0);
  }
  static Kernel compiled(const Computation& computation) {
    Options options;
    options.target = cf::target("gpu");
    return cf::compile(computation, options);
  }
  const runtime::Context* context_ = nullptr;
};

TEST_F(GpuLaunch, InputsThatBeginAnywhere) {
  for (const char* name :
       {"sum_f16", "sum_i8", "sum_f32", "sum_f64", "frames", "mixed_types", "flags_bool"}) {
    for (const std::int64_t segment :
         {std::int64_t{16}, std::int64_t{64}, std::int64_t{257}, std::int64_t{0}}) {
      for (const int shift : {1, 3}) {
        const DeviceCase what{.segment = segment,
                              .elements = segment > 0 ? segment * 41 : 20'011,
                              .shift = shift,
                              .through_run = false};
        const Verdict verdict = check_on_device(program(name), what);
        EXPECT_EQ(verdict.problems, "") << name << ": " << words(what);
      }
    }
  }
}

/// A launch waits for the work before it in its stream, whose results it reads.
TEST_F(GpuLaunch, KeepsTheOrderOfItsStream) {
  const runtime::ContextScope scope(*context_);
  constexpr std::int64_t kCount = 1 << 24;
  const Kernel kernel =
      compiled(cf::over(cf::segments(4096), cf::sum(cf::input<std::uint8_t>("b"))));
  const DeviceArray in(*context_, kCount), out(*context_, kCount / 4096 * sizeof(std::uint64_t));
  const LaunchArgs base{.elements = kCount,
                        .inputs = {{"b", static_cast<const std::uint8_t*>(in.data())}},
                        .outputs = {{static_cast<std::uint64_t*>(out.data()), kCount / 4096}}};
  kernel.prepare(base);
  const runtime::Stream mine(*context_);
  for (const bool own : {true, false}) {
    LaunchArgs args = base;
    args.stream = own ? mine.handle() : nullptr;
    const auto stream = static_cast<runtime::StreamHandle>(args.stream);
    const auto pointer =
        static_cast<runtime::DevicePtr>(reinterpret_cast<std::uintptr_t>(in.data()));
    std::vector<std::uint64_t> sums(kCount / 4096);
    for (int round = 1; round <= 20; ++round) {
      runtime::fill_bytes(*context_, pointer, static_cast<std::uint8_t>(round), kCount, stream);
      kernel.launch(args);
    }
    runtime::synchronize(*context_, stream);
    out.download(sums.data());
    EXPECT_EQ(sums, std::vector<std::uint64_t>(sums.size(), 20 * 4096));
  }
}

/// Modules are unloaded with their last kernel: not before what was queued has run.
TEST_F(GpuLaunch, AKernelMayGoBeforeItsWorkIsDone) {
  const runtime::ContextScope scope(*context_);
  constexpr std::int64_t kCount = 1 << 28;
  const DeviceArray in(*context_, kCount);
  const runtime::Stream stream(*context_);
  runtime::fill_bytes(*context_, reinterpret_cast<runtime::DevicePtr>(in.data()), 1, kCount,
                      stream.handle());
  std::vector<std::unique_ptr<DeviceArray>> outs;
  const std::int64_t sizes[] = {1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  for (const std::int64_t size : sizes) {
    outs.push_back(std::make_unique<DeviceArray>(*context_, kCount / size * sizeof(std::uint64_t)));
    LaunchArgs args{.elements = kCount,
                    .inputs = {{"b", static_cast<const std::uint8_t*>(in.data())}},
                    .outputs = {{static_cast<std::uint64_t*>(outs.back()->data()), kCount / size}},
                    .stream = stream.handle(),
                    .scratch = {}};
    auto kernel = std::make_unique<Kernel>(
        compiled(cf::over(cf::segments(size), cf::sum(cf::input<std::uint8_t>("b")))));
    kernel->prepare(args);
    for (int i = 0; i < 20; ++i) kernel->launch(args);
    kernel.reset();
  }
  stream.synchronize();
  for (std::size_t i = 0; i < outs.size(); ++i) {
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(kCount / sizes[i]));
    outs[i]->download(sums.data());
    for (const std::uint64_t sum : sums) ASSERT_EQ(sum, static_cast<std::uint64_t>(sizes[i]));
  }
}

TEST_F(GpuLaunch, CanBeCapturedInAGraph) {
  const runtime::ContextScope scope(*context_);
  const runtime::DriverApi& api = runtime::driver();
  struct Captured {
    std::int64_t segment, elements;
  };
  for (const char* name : {"sum_f16", "frames", "basics_f32"}) {
    // One launch, that of a cluster, and two.
    for (const auto [segment, elements] :
         {Captured{64, 64'000}, Captured{0, 64'000}, Captured{0, 3'000'000}}) {
      const Computation computation = program(name).over(segment > 0 ? segments(segment) : whole());
      const codegen::Graph& graph = computation.graph();
      const Kernel kernel = compiled(computation);
      const std::int64_t count = segment > 0 ? elements / segment : 1;
      const std::vector<Column> inputs = make_inputs(graph, elements, Fill::normal, 4);
      DeviceLaunch launch(kernel, graph, inputs, {}, elements, count);
      const runtime::Stream stream(*context_);
      launch.args().stream = stream.handle();
      kernel.prepare(launch.args());

      runtime::GraphHandle captured = nullptr;
      runtime::GraphExecHandle executable = nullptr;
      runtime::check(api.stream_begin_capture(stream.handle(), runtime::kCaptureThreadLocal),
                     "cuStreamBeginCapture");
      EXPECT_TRUE(runtime::is_capturing(*context_, stream.handle()));
      EXPECT_NO_THROW(kernel.launch(launch.args()));
      runtime::check(api.stream_end_capture(stream.handle(), &captured), "cuStreamEndCapture");
      runtime::check(api.graph_instantiate(&executable, captured, 0),
                     "cuGraphInstantiateWithFlags");
      stream.synchronize();
      for (const DeviceArray& output : launch.outputs())
        EXPECT_EQ(output.damage(true), "") << "the capture itself has run something";

      kernel.launch(launch.args());
      std::string problems;
      const std::vector<Column> direct = launch.results(problems);
      for (int repeat = 0; repeat < 3; ++repeat) {
        launch.poison_outputs();
        runtime::check(api.graph_launch(executable, stream.handle()), "cuGraphLaunch");
        const std::vector<Column> replayed = launch.results(problems);
        for (std::size_t o = 0; o < direct.size(); ++o) {
          EXPECT_EQ(std::memcmp(direct[o].data(), replayed[o].data(), direct[o].bytes()), 0)
              << name << " output " << o;
        }
      }
      EXPECT_EQ(problems, "");
      api.graph_exec_destroy(executable);
      api.graph_destroy(captured);
    }
  }
}

TEST_F(GpuLaunch, RefusesOrdinaryHostMemory) {
  const runtime::ContextScope scope(*context_);
  auto x = cf::input<float>("x");
  const Kernel kernel = compiled(cf::over(cf::whole(), cf::sum(x), cf::max(x)));
  constexpr std::int64_t kCount = 1 << 20;  // several parts, in two launches
  const std::vector<float> host_in(kCount, 1.0F);
  std::vector<float> host_out(2, -7);
  const DeviceArray in(*context_, kCount * sizeof(float)), sum(*context_, sizeof(float)),
      most(*context_, sizeof(float));
  in.upload(host_in.data());
  const std::int64_t bytes = kernel.scratch_bytes({.elements = kCount});
  ASSERT_GT(bytes, 0);
  const DeviceArray scratch(*context_, static_cast<std::size_t>(bytes));
  std::vector<std::byte> host_scratch(static_cast<std::size_t>(bytes) + 16);
  std::byte* aligned = host_scratch.data();
  while (reinterpret_cast<std::uintptr_t>(aligned) % 16 != 0) ++aligned;
  const LaunchArgs right{
      .elements = kCount,
      .inputs = {{"x", static_cast<const float*>(in.data())}},
      .outputs = {{static_cast<float*>(sum.data()), 1}, {static_cast<float*>(most.data()), 1}},
      .scratch = {scratch.data(), bytes}};
  const auto refused = [&](const LaunchArgs& args, const char* name) {
    expect_error<UserError>([&] { kernel.launch(args); }, ErrorCode::wrong_memory, name,
                            {name, "ordinary host memory", "run()"});
    runtime::synchronize(*context_, nullptr);
    EXPECT_EQ(sum.damage(true), "");
    EXPECT_EQ(most.damage(true), "");
    EXPECT_EQ(scratch.damage(true), "");
    EXPECT_EQ(host_out, std::vector<float>(2, -7));
  };
  LaunchArgs args = right;
  args.inputs = {{"x", host_in}};
  expect_error<UserError>([&] { kernel.launch(args); }, ErrorCode::wrong_memory, "x",
                          {"input 'x'", "run()"});
  EXPECT_EQ(sum.damage(true), "");
  args = right;
  args.outputs = {{static_cast<float*>(sum.data()), 1}, {host_out.data(), 1}};
  refused(args, "output 1");
  args = right;
  args.scratch = {aligned, bytes};
  refused(args, "scratch");
  // And what else a launch refuses.
  args = right;
  args.scratch = {scratch.data(), bytes - 1};
  expect_error<UserError>([&] { kernel.launch(args); }, ErrorCode::too_small, "scratch",
                          {"scratch_bytes()"});
  args = right;
  args.outputs = {{static_cast<float*>(sum.data()), 1}, {static_cast<float*>(most.data()), 0}};
  expect_error<UserError>([&] { kernel.launch(args); }, ErrorCode::too_small, "output 1",
                          {"1 are needed"});
  runtime::synchronize(*context_, nullptr);
  EXPECT_EQ(sum.damage(true), "");

  // Pinned host memory is memory that a kernel reaches.
  const runtime::PinnedBuffer pinned(*context_, kCount * sizeof(float));
  std::memcpy(pinned.data(), host_in.data(), pinned.bytes());
  args = right;
  args.inputs = {{"x", reinterpret_cast<const float*>(pinned.data()), kCount}};
  kernel.launch(args);
  runtime::synchronize(*context_, nullptr);
  float total = 0;
  sum.download(&total);
  EXPECT_EQ(total, kCount);
}

TEST_F(GpuLaunch, AHundredRunsGiveTheSameBits) {
  for (const char* name :
       {"sum_f16", "sum_f32", "sum_f64", "variance_f32", "frames", "filter_f16"}) {
    for (const std::int64_t segment : {std::int64_t{16}, std::int64_t{1000}, std::int64_t{0}}) {
      const Computation computation = program(name).over(segment > 0 ? segments(segment) : whole());
      const codegen::Graph& graph = computation.graph();
      const Kernel kernel = compiled(computation);
      const std::int64_t count = segment > 0 ? 200'000 / segment : 1;
      const std::int64_t elements = segment > 0 ? count * segment : 3'000'017;
      const std::vector<Column> inputs = make_inputs(graph, elements, Fill::normal, 8);
      DeviceLaunch launch(kernel, graph, inputs, {}, elements, count);
      std::string problems;
      std::vector<Column> first;
      for (int repeat = 0; repeat < 100; ++repeat) {
        kernel.launch(launch.args());
        std::vector<Column> outputs;
        for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
          outputs.emplace_back(graph.node(graph.outputs[o]).type, count);
          runtime::synchronize(*context_, nullptr);
          launch.outputs()[o].download(outputs.back().data());
        }
        if (first.empty()) first = std::move(outputs);
        for (std::size_t o = 0; o < outputs.size(); ++o) {
          ASSERT_EQ(std::memcmp(first[o].data(), outputs[o].data(), first[o].bytes()), 0)
              << name << " S=" << segment << " output " << o << " in run " << repeat;
        }
      }
      launch.results(problems);
      EXPECT_EQ(problems, "");
    }
  }
}

TEST_F(GpuLaunch, ThreadsShareAKernel) {
  auto x = cf::input<std::int32_t>("x");
  const Kernel kernel = compiled(cf::over(cf::segments(cf::param<std::int64_t>("S")), cf::sum(x)));
  const std::vector<std::int32_t> data(1 << 16, 3);
  std::vector<std::thread> threads;
  std::vector<int> wrong(8);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (const std::int64_t size : {16, 64, 1024, 65536}) {
        const auto [sums] = kernel.run<std::int64_t>({{"x", data}, {"S", size}});
        for (std::int64_t sum : sums) wrong[t] += sum != 3 * size;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
  EXPECT_EQ(kernel.stats().compiled + kernel.stats().reused,
            4);  // one variant a size, not a thread
}

/// 2^31 elements and more in one launch.
TEST_F(GpuLaunch, MoreThanTwoToThe31Elements) {
  const runtime::ContextScope scope(*context_);
  constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 64 * 3;
  std::size_t free = 0, total = 0;
  runtime::check(runtime::driver().mem_get_info(&free, &total), "cuMemGetInfo");
  if (free < static_cast<std::size_t>(kCount) * 2)
    GTEST_SKIP() << "needs 4 GB of device memory, free are " << free;
  const runtime::DeviceBuffer in(*context_, static_cast<std::size_t>(kCount));
  runtime::fill_bytes(*context_, in.pointer(), 1, in.bytes(), nullptr);
  runtime::fill_bytes(*context_, in.pointer() + in.bytes() - 1, 9, 1, nullptr);
  auto b = cf::input<std::uint8_t>("b");
  for (const std::int64_t size : {std::int64_t{64}, std::int64_t{0}}) {
    const Kernel kernel =
        compiled(cf::over(size > 0 ? cf::segments(size) : cf::whole(), cf::sum(b)));
    const std::int64_t count = size > 0 ? kCount / size : 1;
    const DeviceArray out(*context_, static_cast<std::size_t>(count) * sizeof(std::uint64_t));
    const std::int64_t bytes = kernel.scratch_bytes({.elements = kCount});
    const DeviceArray scratch(*context_, static_cast<std::size_t>(bytes));
    kernel.launch({.elements = kCount,
                   .inputs = {{"b", static_cast<const std::uint8_t*>(in.data())}},
                   .outputs = {{static_cast<std::uint64_t*>(out.data()), count}},
                   .scratch = {scratch.data(), bytes}});
    runtime::synchronize(*context_, nullptr);
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(count));
    out.download(sums.data());
    EXPECT_EQ(sums.back(), static_cast<std::uint64_t>(size > 0 ? 64 : kCount) + 8);
    for (std::size_t s = 0; s + 1 < sums.size(); ++s) ASSERT_EQ(sums[s], 64u) << s;
  }
}

}  // namespace
}  // namespace chainfold::test
