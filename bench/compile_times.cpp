// chainfold_compile_times: how long the first result of each of some expressions takes.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chainfold/bench/compile_cases.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/runtime/device/device.hpp"
#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"

namespace {

using namespace chainfold;
using chainfold::bench::CompileCase;
using Clock = std::chrono::steady_clock;

struct Times {
  double compile_ms = 0;      ///< cf::compile()
  double first_ms = 0;        ///< and the first launch, or what it would wait for
  double in_compiler_ms = 0;  ///< of both, within NVRTC or LLVM
  double full_speed_ms = 0;   ///< and until launches are as fast as they get
  std::int64_t compiled = 0;  ///< variants
};

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Array {
  Array(DType type, std::int64_t count)
      : type(type), count(count), bytes(static_cast<std::size_t>(count * size_of(type)) + 64) {}
  DType type;
  std::int64_t count;
  std::vector<char> bytes;
};

/// The elements of a first launch.
std::int64_t elements_of(const CompileCase& what, std::int64_t about) {
  const std::int64_t unit = std::max({what.segment, what.columns, std::int64_t{1}});
  return std::max<std::int64_t>(1, about / unit) * unit;
}

/// cf::compile() and a launch on a processor, on zeros.
Times on_cpu(const CompileCase& what, std::int64_t about) {
  const codegen::Graph& graph = what.computation.graph();
  const std::int64_t n = elements_of(what, about);
  std::vector<Array> inputs, outputs;
  for (const auto& input : graph.inputs) inputs.emplace_back(input.type, n);
  for (const auto output : graph.outputs) {
    const codegen::Node& node = graph.node(output);
    const bool element = node.level == Level::element;
    outputs.emplace_back(node.type, element            ? n
                                    : what.columns > 0 ? what.columns
                                    : what.segment > 0 ? n / what.segment
                                                       : 1);
  }
  Times times;
  const auto start = Clock::now();
  const Kernel kernel = compile(what.computation, {.target = target("cpu")});
  times.compile_ms = since(start);
  LaunchArgs args{.elements = n};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    args.inputs.push_back(Binding(
        graph.inputs[i].name, static_cast<const void*>(inputs[i].bytes.data()), inputs[i].type, n));
  for (Array& output : outputs)
    args.outputs.push_back(OutputBinding(output.bytes.data(), output.type, output.count));
  std::vector<char> scratch(static_cast<std::size_t>(kernel.scratch_bytes(args)) + 1);
  args.scratch = {scratch.data(), static_cast<std::int64_t>(scratch.size())};
  kernel.launch(args);
  times.first_ms = since(start);
  times.in_compiler_ms = kernel.stats().compile_ms;
  times.compiled = kernel.stats().compiled;
  kernel.prepare(args);
  times.full_speed_ms = since(start);
  return times;
}

/// cf::compile() and prepare() for device 0; nothing is launched.
Times on_gpu(const CompileCase& what, std::int64_t about) {
  const codegen::Graph& graph = what.computation.graph();
  const std::int64_t n = elements_of(what, about);
  // Addresses as those of the device's memory, which nobody looks behind.
  constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
  std::uint64_t next = kApart;
  const auto place = [&] { return reinterpret_cast<void*>(std::exchange(next, next + kApart)); };
  const auto start = Clock::now();
  const Kernel kernel = compile(what.computation, {.target = target("gpu")});
  Times times;
  times.compile_ms = since(start);
  LaunchArgs args{.elements = n};
  for (const auto& input : graph.inputs)
    args.inputs.push_back(Binding(input.name, static_cast<const void*>(place()), input.type, n));
  for (const auto output : graph.outputs)
    args.outputs.push_back(OutputBinding(place(), graph.node(output).type, n));
  kernel.prepare(args);
  times.first_ms = times.full_speed_ms = since(start);
  times.in_compiler_ms = kernel.stats().compile_ms;
  times.compiled = kernel.stats().compiled;
  return times;
}

/// What NVRTC takes for the code of a launch; no device is needed.
Times by_nvrtc(const CompileCase& what, int arch, std::int64_t about) {
  const codegen::Target gpu = codegen::gpu_target(arch);
  const std::int64_t segment = what.columns > 0 ? what.columns : what.segment;
  const auto start = Clock::now();
  const codegen::Graph graph = codegen::legalize(what.computation.graph(), gpu);
  const codegen::Compiled compiled = codegen::compile_graph(
      graph, gpu,
      {.segment = segment,
       .size_limit = codegen::size_class_of(graph, gpu, segment, elements_of(what, about))});
  const codegen::Source source = codegen::emit(compiled.program, gpu);
  const runtime::Cubin cubin = runtime::compile_cubin(source.text, {.arch = arch});
  Times times;
  times.compile_ms = times.first_ms = times.full_speed_ms = since(start);
  times.in_compiler_ms = cubin.compile_ms;
  times.compiled = 1;
  return times;
}

/// The times of one expression; on a CPU in a process of its own, since compilers there make what
/// they need once and keep it.
Times timed(const CompileCase& what, const std::string& on, int arch, std::int64_t elements) {
  if (on == "gpu")
    return runtime::device_count() > 0 ? on_gpu(what, elements) : by_nvrtc(what, arch, elements);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("there is no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("there is no further process");
  if (child == 0) {
    int status = 1;
    try {
      // The compiler is loaded.
      const CompileCase first{"first", over(whole(), sum(input<std::int16_t>("first"))), 0, 0};
      static_cast<void>(on_cpu(first, 1000));
      const Times times = on_cpu(what, elements);
      status = write(ends[1], &times, sizeof times) == sizeof times ? 0 : 1;
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}: {}\n", what.name, error.what());
    }
    _exit(status);
  }
  close(ends[1]);
  Times times;
  const bool whole_there = read(ends[0], &times, sizeof times) == sizeof times;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!whole_there || status != 0) throw std::runtime_error(what.name + " failed");
  return times;
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double at_share(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

int run(const std::string& cases, const std::string& on, int arch, const std::string& only,
        int repeats, std::int64_t elements, const std::string& out, bool list) {
  const std::regex wanted(only);
  if (on == "gpu" && !list) {  // the compiler is loaded
    const CompileCase first{"first", over(whole(), sum(input<std::int16_t>("first"))), 0, 0};
    static_cast<void>(timed(first, on, arch, 1000));
  }
  nlohmann::json rows = nlohmann::json::array();
  std::vector<double> firsts;
  for (const CompileCase& what : cases == "grid" ? bench::compile_grid() : bench::compile_cases()) {
    if (!std::regex_search(what.name, wanted)) continue;
    if (list) {
      fmt::print("{}\n", what.name);
      continue;
    }
    std::vector<double> compile_ms, first_ms, in_compiler_ms, full_speed_ms;
    Times times;
    for (int i = 0; i < repeats; ++i) {
      times = timed(what, on, arch, elements);
      compile_ms.push_back(times.compile_ms);
      first_ms.push_back(times.first_ms);
      in_compiler_ms.push_back(times.in_compiler_ms);
      full_speed_ms.push_back(times.full_speed_ms);
    }
    firsts.push_back(middle(first_ms));
    fmt::print(
        "{:32} compile() {:8.1f} ms, first result {:8.1f} ms, {:8.1f} ms in the compiler, {} "
        "variants, full speed {:8.1f} ms\n",
        what.name, middle(compile_ms), middle(first_ms), middle(in_compiler_ms), times.compiled,
        middle(full_speed_ms));
    std::fflush(stdout);
    rows.push_back({{"name", what.name},
                    {"compile_ms", middle(compile_ms)},
                    {"first_ms", middle(first_ms)},
                    {"in_compiler_ms", middle(in_compiler_ms)},
                    {"full_speed_ms", middle(full_speed_ms)},
                    {"variants", times.compiled}});
  }
  if (list) return 0;
  if (firsts.empty()) {
    fmt::print(stderr,
               "chainfold_compile_times: --only matches no expression; --list names them\n");
    return 1;
  }
  fmt::print("{} expressions: median {:.1f} ms, ninth tenth {:.1f} ms, most {:.1f} ms\n",
             firsts.size(), middle(firsts), at_share(firsts, 0.9), at_share(firsts, 1));
  if (!out.empty()) {
    std::ofstream file(out);
    file << nlohmann::json{{"target", on},
                           {"cases", cases},
                           {"processor", on == "cpu" ? runtime::cpu_text(runtime::cpu_plugin())
                                         : runtime::device_count() > 0
                                             ? runtime::device_info(0).name
                                             : fmt::format("NVRTC alone, sm_{}", arch)},
                           {"repeats", repeats},
                           {"elements", elements},
                           {"rows", rows}}
                .dump(1)
         << '\n';
    if (!file) {
      fmt::print(stderr, "chainfold_compile_times: {} cannot be written\n", out);
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  setenv("CHAINFOLD_CACHE", "off", 1);  // what is compiled once is compiled again
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  std::string cases = "kinds";
  std::string on = "cpu", only = ".", out;
  int repeats = 3, arch = 90;
  std::int64_t elements = 100'000;
  bool list = false;
  CLI::App app(
      "Times the first result of each of some expressions, with nothing in any cache: "
      "cf::compile() and a\n"
      "launch on a processor, or cf::compile() and prepare() for the first GPU, or, where there "
      "is\n"
      "none, what NVRTC takes for the launch's code.");
  app.add_option("--cases", cases, "kinds of everything, or a grid of folds, types and sizes")
      ->check(CLI::IsMember({"kinds", "grid"}))
      ->capture_default_str();
  app.add_option("--target", on, "cpu or gpu")
      ->check(CLI::IsMember({"cpu", "gpu"}))
      ->capture_default_str();
  app.add_option("--arch", arch, "the GPU's architecture")->capture_default_str();
  app.add_option("--only", only, "regular expression: expressions in whose name it is found");
  app.add_option("--repeats", repeats, "medians of so many")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--elements", elements, "of the launch, about")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
      ->capture_default_str();
  app.add_option("--out", out, "write rows as JSON to this file");
  app.add_flag("--list", list, "print the expressions' names and time nothing");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(cases, on, arch, only, repeats, elements, out, list);
  } catch (const std::exception& error) {
    fmt::print(stderr, "chainfold_compile_times: error: {}\n", error.what());
  }
  return 1;
}
