#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <functional>

#include "chainfold/bench/cpu_memory.hpp"
#include "chainfold/bench/machines.hpp"
#include "chainfold/bench/peers_openmp.hpp"
#include "chainfold/bench/reference.hpp"
#include "chainfold/bench/suite.hpp"

namespace chainfold::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kDefaultElements = std::int64_t{1} << 28;  // f16: 512 MiB

/// One way to compute a case: ours or a peer's.
struct Implementation {
  std::string name;
  double bound_u = 0;
  std::function<void()> run;
};

std::vector<Implementation> peers(const Case& test, const std::vector<Buffer>& inputs,
                                  const Buffer& output) {
  const std::int64_t segments = test.segments(), length = test.elements / segments;
  const auto serial = static_cast<double>(length);  // what adding one by one may err by
  std::vector<Implementation> result;
  const auto add = [&](const char* name, std::function<void()> run) {
    result.push_back({.name = name, .bound_u = serial, .run = std::move(run)});
  };
  float* out = output.as<float>();
  if (test.op == Op::q6) {
    add("openmp-simd", [&, n = test.elements] {
      *output.as<std::int64_t>() =
          openmp::q6(inputs[0].as<std::int32_t>(), inputs[1].as<std::int64_t>(),
                     inputs[2].as<std::int64_t>(), inputs[3].as<std::int64_t>(), n);
    });
  } else if (test.in == DType::f32 && test.segment == 0) {
    const float* in = inputs[0].as<float>();
    add("openmp-simd", [=, n = test.elements] { *out = openmp::sum_all_f32(in, n); });
  } else if (test.in == DType::f32) {
    const float* in = inputs[0].as<float>();
    add("openmp", [=] { openmp::sum_f32(in, segments, length, out); });
    add("openmp-simd", [=] { openmp::sum_f32_simd(in, segments, length, out); });
  } else if (test.in == DType::f16 && test.segment > 0 && openmp::has_f16()) {
    const void* in = inputs[0].as<void>();
    add("openmp", [=] { openmp::sum_f16(in, segments, length, out); });
    add("openmp-simd", [=] { openmp::sum_f16_simd(in, segments, length, out); });
  }
  return result;
}

double check(const Case& test, const Checker& checker, const Implementation& implementation,
             const Buffer& output) {
  const auto size = static_cast<std::size_t>(size_of(test.out));
  std::memset(output.as<char>(), 0xff, static_cast<std::size_t>(output.bytes()));
  implementation.run();
  const auto value_of_segment = [&](std::int64_t segment) {
    std::vector<std::byte> value(size);
    std::memcpy(value.data(), output.as<char>() + static_cast<std::size_t>(segment) * size, size);
    return std::vector<std::vector<std::byte>>{std::move(value)};
  };
  return checker.check(value_of_segment, implementation.bound_u).units;
}

void run_case(const Case& test, const SuiteOptions& options, const CpuCeilings& ceilings,
              Report& report) {
  progress(fmt::format("{}: filling, compiling and checking", test.name()));
  const std::vector<Case::Input> names = test.inputs();
  std::vector<Buffer> inputs;
  LaunchArgs args{.elements = test.elements};
  for (const Case::Input& input : names) {
    inputs.push_back(make_input(input, test.elements));
    args.inputs.push_back(Binding(input.name, inputs.back().as<void>(), input.type));
  }
  const Buffer output(test.segments() * size_of(test.out));
  args.outputs.push_back(OutputBinding(output.as<void>(), test.out, test.segments()));
  const Kernel kernel = compile(test.computation, options.compile_options("cpu", test.elements));
  const Buffer scratch(kernel.scratch_bytes(args));
  args.scratch = {scratch.as<void>(), scratch.bytes()};
  kernel.prepare(args);

  std::vector<Implementation> ways = {{.name = "chainfold",
                                       .bound_u = kernel.plan_facts().error_bound_u,
                                       .run = [&] { kernel.launch(args); }}};
  for (Implementation& peer : peers(test, inputs, output)) ways.push_back(std::move(peer));
  std::vector<double> errors;
  std::vector<std::function<void()>> round = {[&] { ceilings.read(); }, [&] { ceilings.copy(); }};
  const Checker checker(test);
  for (const Implementation& way : ways) {
    errors.push_back(check(test, checker, way, output));
    round.push_back(way.run);
  }
  const auto wash = [&] { ceilings.wash(); };
  double slowest = 0;
  for (const auto& times : time_rounds(round, 2, wash)) slowest = std::max(slowest, times.back());
  const std::size_t repeats = repeats_for(options, slowest);
  progress(fmt::format("  timing {} ways, {} interleaved repeats", ways.size(), repeats));
  const auto times = time_rounds(round, repeats, wash);
  const Ceilings local(ceilings.bytes(), median(times[0]), median(times[1]));
  for (std::size_t i = 0; i < ways.size(); ++i) {
    Row row = make_row(test, ways[i].name, median(times[i + 2]), repeats, local);
    if (i == 0) set_plan(row, kernel);  // the peers have none
    if (is_float(test.out)) row.max_err_u = errors[i];
    report.rows.push_back(std::move(row));
  }
}

void measure_launch(Report& report) {
  constexpr int kRounds = 15, kLaunches = 200;
  const Case test = make_case(Op::sum, DType::f16, DType::f32, 4096, 64);
  const std::vector<f16> x(4096);
  std::vector<float> out(64);
  const Kernel kernel = compile(test.computation, {.target = target("cpu")});
  const LaunchArgs args{.elements = 4096, .inputs = {{"x", x}}, .outputs = {{out.data(), 64}}};
  kernel.prepare(args);
  std::vector<double> times;
  for (int r = -1; r < kRounds; ++r) {
    const auto start = Clock::now();
    for (int i = 0; i < kLaunches; ++i) kernel.launch(args);
    const std::chrono::duration<double, std::milli> spent = Clock::now() - start;
    if (r >= 0) times.push_back(spent.count() / kLaunches);
  }
  report.rows.push_back(make_plain_row("run 4096 f16", "chainfold", median(times), times.size()));
}

}  // namespace

void run_first_cpu(const SuiteOptions& options, Report& report) {
  describe_cpu(report);
  const std::int64_t elements = options.elements > 0 ? options.elements : kDefaultElements;
  const std::int64_t bytes = elements * size_of(DType::f16);
  std::vector<Case> cases;
  for (const std::int64_t s : {64, 8, 16, 37, 1000, 0})
    cases.push_back(make_case(Op::sum, DType::f32, DType::f32, bytes / 4, s));
  cases.push_back(make_case(Op::sum, DType::f16, DType::f32, elements, 64));
  cases.push_back(make_case(Op::q6, DType::i64, DType::i64, bytes / 28, 0));

  progress("ceilings");
  const CpuCeilings ceilings(bytes);
  report.before = ceilings.measure(11);
  progress(fmt::format("  read {:.1f} GB/s in {} streams a thread, copy {:.1f} GB/s{}",
                       report.before.read_gbps, ceilings.streams(), report.before.copy_gbps,
                       ceilings.past_caches() ? " past the caches" : ""));
  for (const Case& test : cases) {
    if (std::regex_search(test.name() + " cpu", options.only))
      run_case(test, options, ceilings, report);
  }
  if (std::regex_search("run 4096 f16 cpu", options.only)) measure_launch(report);
  if (std::regex_search("compile cpu", options.only)) {
    progress("cold compiles");
    measure_compile(target("cpu"), "orc", report);
  }
  report.after = ceilings.measure(11);
}

}  // namespace chainfold::bench
