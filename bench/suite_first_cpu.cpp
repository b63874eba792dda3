#include <fmt/format.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "chainfold/bench/peers_openmp.hpp"
#include "chainfold/bench/suite.hpp"
#include "chainfold/runtime/jit_llvm.hpp"

namespace chainfold::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kDefaultElements = std::int64_t{1} << 28;  // f16: 512 MiB

/// Host memory in large pages where the system has them.
class Buffer {
 public:
  explicit Buffer(std::int64_t bytes)
      : bytes_(bytes),
        data_(std::aligned_alloc(kPage, static_cast<std::size_t>((bytes + kPage) / kPage * kPage)),
              &std::free) {
    if (!data_)
      throw std::runtime_error(fmt::format("no memory for {} bytes; try --elements", bytes));
    ::madvise(data_.get(), static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // a wish
    std::memset(data_.get(), 0xff, static_cast<std::size_t>(bytes));
  }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_.get());
  }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::int64_t kPage = 1 << 21;
  std::int64_t bytes_;
  std::unique_ptr<void, void (*)(void*)> data_;
};

template <class T>
T element(Source source, std::uint64_t i) {
  const std::int64_t k = value_of(source, i);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(k);
  } else {
    return T(static_cast<float>(k) / static_cast<float>(1 << scale_of(source)));
  }
}

template <class T>
void fill(Source source, T* out, std::int64_t count) {
  const std::int64_t workers = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (std::int64_t w = 0; w < workers; ++w) {
    threads.emplace_back([=] {
      for (std::int64_t i = count * w / workers; i < count * (w + 1) / workers; ++i)
        out[i] = element<T>(source, static_cast<std::uint64_t>(i));
    });
  }
}

Buffer make_input(const Case::Input& input, std::int64_t count) {
  Buffer buffer(count * size_of(input.type));
  switch (input.type) {
    case DType::f16: fill(input.source, buffer.as<f16>(), count); break;
    case DType::f32: fill(input.source, buffer.as<float>(), count); break;
    case DType::i32: fill(input.source, buffer.as<std::int32_t>(), count); break;
    case DType::i64: fill(input.source, buffer.as<std::int64_t>(), count); break;
    default: throw std::logic_error("an input type that the CPU's suite does not have");
  }
  return buffer;
}

/// Times in milliseconds of calls, interleaved; result i belongs to call i. `wash` runs before each
/// call, untimed: neither what one call leaves in the caches, to be read again or written back, nor
/// threads that it leaves awake may count for the next one.
std::vector<std::vector<double>> time_rounds(const std::vector<std::function<void()>>& round,
                                             std::size_t repeats,
                                             const std::function<void()>& wash) {
  std::vector<std::vector<double>> times(round.size());
  for (std::size_t r = 0; r < repeats; ++r) {
    for (std::size_t i = 0; i < round.size(); ++i) {
      wash();
      const auto start = Clock::now();
      round[i]();
      times[i].push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
  }
  return times;
}

/// The ceilings' own data: every word is its index, so its sum is known.
class CpuCeilings {
 public:
  explicit CpuCeilings(std::int64_t bytes) : data_(bytes), target_(bytes) {
    for (std::int64_t i = 0; i < words(); ++i)
      data_.as<std::uint64_t>()[i] = static_cast<std::uint64_t>(i) * kStep;
    copy();
    if (std::memcmp(data_.as<char>(), target_.as<char>(), static_cast<std::size_t>(bytes)) != 0) {
      throw std::runtime_error("the ceiling is no ceiling: the copy differs from its source");
    }
    std::vector<std::function<void()>> round;
    for (const int streams : kStreams) round.push_back([this, streams] { read(streams); });
    const auto times = time_rounds(round, 7, [this] { wash(); });
    std::size_t best = 0;
    for (std::size_t i = 1; i < times.size(); ++i)
      if (median(times[i]) < median(times[best])) best = i;
    streams_ = kStreams[best];
  }
  /// Throws std::runtime_error if a byte was not read.
  void read() const { read(streams_); }
  void read(int streams) const {
    const openmp::ReadResult result = openmp::read(data_.as<std::uint64_t>(), words(), streams);
    const auto n = static_cast<std::uint64_t>(words());
    const std::uint64_t sum = (n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n) * kStep;
    if (result.words != n || result.sum != sum) {
      throw std::runtime_error("the ceiling is no ceiling: the read loop missed words");
    }
  }
  /// Takes the place of all else in the caches, and waits until every pool's threads sleep.
  void wash() const {
    openmp::read(target_.as<std::uint64_t>(), words(), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  void copy() const { openmp::copy(data_.as<char>(), target_.as<char>(), bytes()); }
  [[nodiscard]] std::int64_t bytes() const noexcept { return data_.bytes(); }
  /// Places that every thread reads at once: what was fastest.
  [[nodiscard]] int streams() const noexcept { return streams_; }

 private:
  static constexpr int kStreams[] = {1, 2, 4, 8};
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ull;
  [[nodiscard]] std::int64_t words() const noexcept { return data_.bytes() / 8; }
  Buffer data_, target_;
  int streams_ = 1;
};

/// One way to compute a case: ours or a peer's.
struct Implementation {
  std::string name, plan;
  double bound_u = 0;
  std::function<void()> run;
};

std::vector<Implementation> peers(const Case& test, const std::vector<Buffer>& inputs,
                                  const Buffer& output) {
  const std::int64_t segments = test.segments(), length = test.elements / segments;
  const auto serial = static_cast<double>(length);  // what adding one by one may err by
  std::vector<Implementation> result;
  const auto add = [&](const char* name, std::function<void()> run) {
    result.push_back({.name = name, .plan = {}, .bound_u = serial, .run = std::move(run)});
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

double check(const Case& test, const Implementation& implementation, const Buffer& output) {
  const auto size = static_cast<std::size_t>(size_of(test.out));
  std::memset(output.as<char>(), 0xff, static_cast<std::size_t>(output.bytes()));
  implementation.run();
  Checker checker(test, implementation.bound_u);
  for (const std::int64_t segment : checker.sample()) {
    std::vector<std::byte> value(size);
    std::memcpy(value.data(), output.as<char>() + static_cast<std::size_t>(segment) * size, size);
    checker.check(segment, {value});
  }
  return checker.max_error_u();
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

  std::vector<Implementation> ways = {{.name = "chainfold",
                                       .plan = kernel.plan_summary(),
                                       .bound_u = bound_of_plan(kernel.plan_summary()),
                                       .run = [&] { kernel.launch(args); }}};
  for (Implementation& peer : peers(test, inputs, output)) ways.push_back(std::move(peer));
  std::vector<double> errors;
  std::vector<std::function<void()>> round = {[&] { ceilings.read(); }, [&] { ceilings.copy(); }};
  for (const Implementation& way : ways) {
    errors.push_back(check(test, way, output));
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
    if (!ways[i].plan.empty()) set_plan(row, ways[i].plan);
    if (is_float(test.out)) row.max_err_u = errors[i];
    report.rows.push_back(std::move(row));
  }
}

Ceilings measure(const CpuCeilings& ceilings) {
  const auto times = time_rounds({[&] { ceilings.read(); }, [&] { ceilings.copy(); }}, 11,
                                 [&] { ceilings.wash(); });
  return {ceilings.bytes(), median(times[0]), median(times[1])};
}

void measure_launch(Report& report) {
  constexpr int kRounds = 15, kLaunches = 200;
  const Case test = make_case(Op::sum, DType::f16, DType::f32, 4096, 64);
  const std::vector<f16> x(4096);
  std::vector<float> out(64);
  const Kernel kernel = compile(test.computation, {.target = target("cpu")});
  const LaunchArgs args{.elements = 4096, .inputs = {{"x", x}}, .outputs = {{out.data(), 64}}};
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
  const chainfold_cpu_plugin& plugin = runtime::cpu_plugin();
  report.device = fmt::format("CPU {}, {} threads, {}-bit vectors", plugin.host_cpu, plugin.threads,
                              plugin.vector_bits);
  report.driver = fmt::format("LLVM {}", plugin.llvm_version);
  report.cuda = "none";
  openmp::set_threads(plugin.threads);

  const std::int64_t elements = options.elements > 0 ? options.elements : kDefaultElements;
  const std::int64_t bytes = elements * size_of(DType::f16);
  std::vector<Case> cases;
  for (const std::int64_t s : {64, 8, 16, 37, 1000, 0})
    cases.push_back(make_case(Op::sum, DType::f32, DType::f32, bytes / 4, s));
  cases.push_back(make_case(Op::sum, DType::f16, DType::f32, elements, 64));
  cases.push_back(make_case(Op::q6, DType::i64, DType::i64, bytes / 28, 0));

  progress("ceilings");
  const CpuCeilings ceilings(bytes / 8 * 8);
  report.before = measure(ceilings);
  progress(fmt::format("  read {:.1f} GB/s in {} streams a thread, copy {:.1f} GB/s",
                       report.before.read_gbps, ceilings.streams(), report.before.copy_gbps));
  for (const Case& test : cases) {
    if (std::regex_search(test.name() + " cpu", options.only))
      run_case(test, options, ceilings, report);
  }
  if (std::regex_search("run 4096 f16 cpu", options.only)) measure_launch(report);
  if (std::regex_search("compile cpu", options.only)) {
    progress("cold compiles");
    measure_compile(target("cpu"), "orc", report);
  }
  report.after = measure(ceilings);
}

}  // namespace chainfold::bench
