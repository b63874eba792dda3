#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>

#include "chainfold/bench/gpu_case.hpp"
#include "chainfold/bench/suite.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/runtime/device/module.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::bench {
namespace {

constexpr std::int64_t kDefaultElements = std::int64_t{1} << 30;  // f16: 2 GiB

/// Cases that share their inputs, so that their repeats can be interleaved.
using Batch = std::vector<Case>;

std::vector<Batch> batches(std::int64_t elements) {
  const std::int64_t bytes = elements * size_of(DType::f16);
  std::vector<Batch> result(5);
  for (const std::int64_t s :
       {8, 16, 24, 32, 64, 100, 128, 256, 500, 512, 1000, 1024, 2048, 4096, 16384, 1 << 20}) {
    result[0].push_back(make_case(Op::sum, DType::f16, DType::f16, elements, s));
  }
  result[0].push_back(make_case(Op::sum, DType::f16, DType::f32, elements, 0));
  result[0].push_back(make_case(Op::mean_rms, DType::f16, DType::f32, elements, 64));
  result[0].push_back(make_case(Op::max, DType::f16, DType::f16, elements, 64));
  for (const std::int64_t s : {16, 64, 256, 1000, 1024, 16384, 0})
    result[1].push_back(make_case(Op::sum, DType::f32, DType::f32, bytes / 4, s));
  for (const std::int64_t s : {64, 0})
    result[2].push_back(make_case(Op::sum, DType::f64, DType::f64, bytes / 8, s));
  for (const std::int64_t s : {64, 1024})
    result[3].push_back(make_case(Op::sum, DType::i8, DType::i64, bytes, s));
  result[4].push_back(make_case(Op::q6, DType::i64, DType::i64, bytes / 28, 0));
  return result;
}

/// A case ready to be launched: it owns its kernel and outputs; inputs belong to the batch.
class Prepared {
 public:
  Prepared(const Case& test, const runtime::Context& context, const runtime::Stream& stream,
           const std::vector<runtime::DeviceBuffer>& inputs, const SuiteOptions& options)
      : test_(test),
        memory_(test, inputs, 1, context, stream),
        kernel_(compile(test.computation, options.compile_options("gpu", test.elements))),
        args_(memory_.args(0)) {
    const std::int64_t bytes = kernel_.scratch_bytes(args_);
    scratch_ = runtime::DeviceBuffer(context, static_cast<std::size_t>(bytes));
    args_.scratch = {scratch_.data(), bytes};
  }

  void launch() const { kernel_.launch(args_); }
  /// Runs once and checks a sample.
  [[nodiscard]] double check() const {
    return memory_
        .check(Checker(test_), kernel_.plan_facts().error_bound_u, false, [&] { launch(); })
        .units;
  }
  [[nodiscard]] const Case& test() const noexcept { return test_; }
  [[nodiscard]] const Kernel& kernel() const noexcept { return kernel_; }

 private:
  const Case& test_;
  GpuCase memory_;
  Kernel kernel_;
  LaunchArgs args_;
  runtime::DeviceBuffer scratch_;
};

void run_batch(const Batch& batch, const SuiteOptions& options, const GpuKernels& kernels,
               GpuCeilings& ceilings, const runtime::Context& context, Report& report) {
  const runtime::Stream& stream = ceilings.stream();
  std::int64_t elements = 0;
  for (const Case& test : batch) elements = std::max(elements, test.elements);
  const std::vector<runtime::DeviceBuffer> inputs =
      make_inputs(batch.front(), elements, kernels, context, stream.handle());
  std::vector<std::unique_ptr<Prepared>> rows;
  std::vector<double> errors;
  for (const Case& test : batch) {
    progress(fmt::format("  {}: compiling and checking", test.name()));
    rows.push_back(std::make_unique<Prepared>(test, context, stream, inputs, options));
    errors.push_back(rows.back()->check());
  }
  std::vector<std::function<void()>> round = {[&] { ceilings.read(); }, [&] { ceilings.copy(); }};
  for (const auto& row : rows) round.push_back([&row] { row->launch(); });
  const double slowest = [&] {
    double ms = 0;
    for (const auto& times : ceilings.time_rounds(round, 3)) ms = std::max(ms, median(times));
    return ms;
  }();
  const std::size_t repeats = repeats_for(options, slowest);
  progress(fmt::format("  timing {} rows, {} interleaved repeats", rows.size(), repeats));
  const auto times = ceilings.time_rounds(round, repeats);
  const Ceilings local(ceilings.bytes(), median(times[0]), median(times[1]));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row row = make_row(rows[i]->test(), "chainfold", median(times[i + 2]), repeats, local);
    set_plan(row, rows[i]->kernel());
    row.plan = rows[i]->kernel().plan() + ": " + row.plan;
    if (is_float(rows[i]->test().out)) row.max_err_u = errors[i];
    report.rows.push_back(std::move(row));
  }
}

/// What a call of `launch`, which queues a small kernel, costs the host.
void measure_host(const char* impl, const runtime::Stream& stream, Report& report,
                  const std::function<void()>& launch) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 15, kLaunches = 200;
  std::vector<double> times;
  for (int r = -1; r < kRounds; ++r) {
    const auto start = Clock::now();
    for (int i = 0; i < kLaunches; ++i) launch();
    const std::chrono::duration<double, std::milli> spent = Clock::now() - start;
    stream.synchronize();
    if (r >= 0) times.push_back(spent.count() / kLaunches);
  }
  report.rows.push_back(make_plain_row("launch (host)", impl, median(times), times.size()));
}

/// What a launch costs the host, once everything is compiled, and what of it the driver does: the
/// launch of a kernel without parameters.
void measure_launch(const runtime::Context& context, const runtime::Stream& stream,
                    Report& report) {
  const Case test = make_case(Op::sum, DType::f16, DType::f16, 4096, 64);
  std::vector<runtime::DeviceBuffer> inputs;
  inputs.emplace_back(context, 4096 * 2);
  runtime::fill_bytes(context, inputs[0].pointer(), 0, inputs[0].bytes(), stream.handle());
  const Prepared prepared(test, context, stream, inputs, {});
  measure_host("chainfold", stream, report, [&] { prepared.launch(); });
  const std::vector<std::string> names{"nothing"};
  const runtime::CudaModule module(
      context,
      runtime::compile_cubin("extern \"C\" __global__ void nothing() {}",
                             {.arch = context.device().arch()})
          .image,
      names);
  measure_host("driver", stream, report, [&] {
    module.launch_in_scope(0, {.x = 1}, codegen::kWarpWidth, 0, stream.handle(), nullptr, 0);
  });
}

}  // namespace

void run_first_gpu(const SuiteOptions& options, Report& report) {
  const runtime::Context& context = runtime::Context::of(0);
  const runtime::ContextScope scope(context);
  const auto version = [](int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); };
  report.device = fmt::format("{} (sm_{})", context.device().name, context.device().arch());
  report.driver = version(context.device().driver_version);
  report.cuda = "NVRTC " + version(runtime::nvrtc_version());

  const std::int64_t elements = options.elements > 0 ? options.elements : kDefaultElements;
  std::vector<Batch> chosen;
  for (const Batch& batch : batches(elements)) {
    Batch kept;
    for (const Case& test : batch) {
      if (std::regex_search(test.name() + " gpu", options.only)) kept.push_back(test);
    }
    if (!kept.empty()) chosen.push_back(std::move(kept));
  }
  const GpuKernels kernels(context);
  progress("ceilings: finding the fastest way to read and to copy");
  GpuCeilings ceilings(context, kernels, elements * size_of(DType::f16));
  report.before = ceilings.measure();
  progress(fmt::format("  read {:.0f} GB/s, copy {:.0f} GB/s ({})", report.before.read_gbps,
                       report.before.copy_gbps, ceilings.description()));
  for (const Batch& batch : chosen) {
    progress(fmt::format("batch of {} inputs:", chainfold::name_of(batch.front().in)));
    run_batch(batch, options, kernels, ceilings, context, report);
  }
  if (std::regex_search("launch (host) gpu", options.only)) {
    measure_launch(context, ceilings.stream(), report);
  }
  if (std::regex_search("compile gpu", options.only)) {
    progress("cold compiles");
    measure_compile(target("gpu"), "nvrtc", report);
  }
  report.after = ceilings.measure();
}

}  // namespace chainfold::bench
