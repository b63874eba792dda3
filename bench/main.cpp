// chainfold_bench: what the library reaches beside the limits of the machine and its peers, all
// measured in one run.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "chainfold/bench/machines.hpp"
#include "chainfold/bench/papers_cases.hpp"
#include "chainfold/bench/plans_cases.hpp"
#include "chainfold/bench/suite.hpp"
#include "chainfold/bench/suite_reduce.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/text.hpp"

namespace {

/// OpenMP's threads spin for a while after a loop and take the cores from whoever is measured next.
/// They read how to wait before main(), so the program starts itself anew with that set.
void make_openmp_wait_passively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
  // They spin for less than a millisecond, so that a loop right behind another finds them awake.
  if (setenv("GOMP_SPINCOUNT", "20000", 0) != 0) return;
  execv("/proc/self/exe", argv);  // returns only where /proc is missing: then the peers spin
}

/// The cache of this run alone: cold compiles are cold, and warm ones find what they left.
class TemporaryCache {
 public:
  TemporaryCache() {
    std::string name = (std::filesystem::temp_directory_path() / "chainfold_bench.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return;
    folder_ = name;
    setenv("CHAINFOLD_CACHE_DIR", name.c_str(), 1);
  }
  ~TemporaryCache() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryCache(const TemporaryCache&) = delete;
  TemporaryCache& operator=(const TemporaryCache&) = delete;

 private:
  std::filesystem::path folder_;
};

constexpr const char* kAbout =
    "Measures Chainfold's kernels, their peers and the ceilings of the machine in one run.\n\n"
    "Every result is checked against an exact reference on a sample of its segments before it is "
    "timed. Times are medians of interleaved repeats after a warm-up. The ratio is the least time "
    "that the bytes need (reads at the rate of a read-only kernel, writes at the rate left in a "
    "copy, both measured between the repeats) over the row's time. err (u) is the largest error in "
    "units of rounding of the output's type times the sum of absolute values.";

struct Arguments {
  std::string suite = "first", target = "gpu", only, impl, plans;
  std::optional<std::string> out, energy;
  std::vector<std::string> also;
  std::int64_t elements = 0;
  std::optional<double> seconds, void_above;
  double budget = 0;
  bool tune = false, resume_dirty = false, list = false;
};

void add_options(CLI::App& app, Arguments& a) {
  app.add_option(
         "--suite", a.suite,
         "what to measure: first (folds of every kind, compile, launch), reduce (folds of every "
         "size and type by every strategy, and the peers), scan (running folds, likewise), "
         "folds (folds and scans other than sums, on a line of memory and off), "
         "ragged (sums and running sums over segments that data tell), "
         "papers (what others published about "
         "sums and scans by tensor cores, once more) or plans (what --plans lists)")
      ->check(CLI::IsMember({"first", "reduce", "scan", "folds", "ragged", "papers", "plans"}))
      ->capture_default_str();
  app.add_option("--target", a.target, "gpu (device 0) or cpu")
      ->check(CLI::IsMember({"gpu", "cpu"}))
      ->capture_default_str();
  app.add_option("--out", a.out,
                 "write head and rows as JSON to this file; all but first go on where it ends");
  app.add_option(
      "--only", a.only,
      "regular expression: only rows whose name it is found in: 'sum f16->f16 S=64 gpu', "
      "'compile gpu' (first), 'sum/f16/64', 'axis0/f32/1024' (reduce), 'scan/f16/64' (scan), "
      "'argmax/f16/64$' (folds), 'ragged/zipf/f32' (ragged), 'split/' (papers)");
  app.add_option("--elements", a.elements,
                 "f16 elements; other types get as many bytes (default: 2^30 on a GPU; on a CPU "
                 "2^28, the others 2^27)")
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 36));
  app.add_option("--seconds", a.seconds,
                 "time spent on the repeats of a row; at least 9 are made, 3 of what takes 20 ms "
                 "(default: 0.3, all but first on a GPU 0.02)")
      ->check(CLI::Range(0.001, 600.0));
  app.add_flag("--tune", a.tune, "tuned plans: instead of the default ones (first), beside them");
  CLI::Option_group& reduce = *app.add_option_group("reduce", "For all suites but first:");
  reduce.add_option("--impl", a.impl,
                    "regular expression: only these ways, such as 'chainfold chosen', 'forced "
                    "parts', 'cub'");
  reduce
      .add_option("--plans", a.plans,
                  "of the suite plans: a file with a line 'OP IN OUT SEGMENT ELEMENTS [WAY]' for "
                  "each row, such as 'sum f16 f16 64 0 rows warps=8 depth=8'")
      ->check(CLI::ExistingFile);
  reduce.add_option("--also", a.also,
                    "a plan to measure beside the others in every row, such as 'merge_path depth=4 "
                    "rows=1 parts=4096'; may be given several times");
  reduce.add_option("--energy", a.energy,
                    "regular expression: measure energy, too, where it is found in case and way, "
                    "such as 'sum/f16/64 (cub$|chainfold chosen)'; 2 s a row");
  reduce.add_option("--budget", a.budget, "stop after so many seconds; the same call goes on")
      ->check(CLI::Range(1.0, 1e6));
  reduce
      .add_option("--void-above", a.void_above,
                  "rows are void if the ceilings before and after them differ by more than this "
                  "(default: 0.01, on a CPU 0.1)")
      ->check(CLI::Range(0.0, 1e6));
  reduce.add_flag("--resume-dirty", a.resume_dirty,
                  "go on with a file although the tree has changes: they are the same");
  reduce.add_flag("--list", a.list, "print the names that --only matches and measure nothing");
}

[[noreturn]] void fail_to_match(const char* option, const std::string& expression,
                                const std::string& hint) {
  throw CLI::ValidationError(option, fmt::format("'{}' matches nothing; {}", expression, hint));
}

int run_first(const Arguments& a) {
  using namespace chainfold::bench;
  SuiteOptions options;
  options.only = std::regex(a.only);
  options.elements = a.elements;
  options.seconds = a.seconds.value_or(0.3);
  options.tune = a.tune;
  Report report;
  report.suite = a.suite;
  report.target = a.target;
  describe_build(report);
  if (a.out) check_writable(*a.out);
  if (a.target == "gpu") {
    run_first_gpu(options, report);
  } else {
    run_first_cpu(options, report);
  }
  if (report.rows.empty()) {
    fail_to_match("--only", a.only,
                  fmt::format("rows have names such as 'sum f32->f32 S=64 {}'", a.target));
  }
  if (a.out) write_json(report, *a.out);
  fmt::print("{}", table(report));
  return 0;
}

std::vector<chainfold::bench::NamedCase> made_cases_of(const Arguments& a, std::int64_t bytes) {
  using namespace chainfold::bench;
  if (a.suite == "papers") return papers_cases(bytes, chainfold::target(a.target));
  if (a.suite == "scan") return scan_cases(bytes);
  if (a.suite == "folds") return folds_cases(bytes);
  if (a.suite == "reduce") return reduce_cases(bytes, a.target == "gpu" ? 0 : cpu_cached_bytes());
  if (a.plans.empty()) throw std::runtime_error("the suite plans needs --plans FILE");
  std::ifstream list(a.plans);
  return plans_cases(list, bytes, a.target == "gpu");
}

std::vector<chainfold::bench::LazyCase> cases_of(const Arguments& a, std::int64_t bytes) {
  using namespace chainfold::bench;
  if (a.suite == "ragged") return ragged_cases(bytes);
  std::vector<LazyCase> cases;
  for (NamedCase& named : made_cases_of(a, bytes))
    cases.push_back({named.name, [named = std::move(named)] { return named; }});
  return cases;
}

/// Throws where --impl leaves nothing to be measured.
void check_impl(const Arguments& a, const std::regex& impl,
                const std::vector<chainfold::bench::NamedCase>& cases,
                chainfold::bench::Machine& machine) {
  constexpr std::size_t kMostNames = 12;
  std::set<std::string> names;
  for (const chainfold::bench::NamedCase& named : cases) {
    for (const auto& way : named.ways.empty() ? machine.ways(named.test) : named.ways) {
      if (std::regex_search(way.name(), impl)) return;
      if (names.size() < kMostNames) names.insert(way.name());
    }
  }
  fail_to_match("--impl", a.impl,
                fmt::format("ways to compute these cases are such as: {}", fmt::join(names, ", ")));
}

int run_contests(const Arguments& a) {
  using namespace chainfold::bench;
  const bool gpu = a.target == "gpu";
  const std::int64_t elements = a.elements > 0 ? a.elements : std::int64_t{1} << (gpu ? 30 : 27);
  const std::int64_t bytes = elements * 2;
  ReduceOptions options{.only = std::regex(a.only),
                        .impl = std::regex(a.impl),
                        .energy = {},
                        .seconds = a.seconds.value_or(gpu ? 0.02 : 0.3),
                        .budget = a.budget,
                        .void_above = a.void_above.value_or(gpu ? 0.01 : 0.1)};
  if (a.energy) options.energy = std::regex(*a.energy);
  std::vector<LazyCase> lazy = cases_of(a, bytes);
  std::erase_if(
      lazy, [&](const LazyCase& named) { return !std::regex_search(named.name, options.only); });
  if (lazy.empty())
    fail_to_match("--only", a.only, "--list without --only prints the names that there are");
  if (a.list) {
    for (const LazyCase& named : lazy) fmt::print("{}\n", named.name);
    return 0;
  }
  if (a.out) ResultsFile::check_writable(*a.out);
  Report head;
  head.suite = a.suite;
  head.target = a.target;
  for (const std::string_view name : chainfold::codegen::strategy_names()) {
    const auto strategy = chainfold::codegen::parse_choice(name).strategy;
    if (a.suite == "papers" || a.suite == "plans" || a.suite == "folds" || a.suite == "ragged" ||
        chainfold::codegen::is_scan(strategy) == (a.suite == "scan"))
      head.strategies.emplace_back(name);
  }
  describe_build(head);
  const std::unique_ptr<Machine> machine =
      gpu ? make_gpu_machine(bytes, a.tune, head) : make_cpu_machine(bytes, a.tune, head);
  const auto print = [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  print(heading(head));
  std::optional<std::filesystem::path> path;
  if (a.out) path = *a.out;
  ResultsFile file(path, head, a.resume_dirty);
  if (!file.note().empty()) print(file.note());
  ReduceSummary summary;
  const auto made = [&](const LazyCase& one) {
    NamedCase named = one.make();
    if (a.also.empty()) return named;
    if (named.ways.empty()) named.ways = machine->ways(named.test);
    for (const std::string& plan : a.also) named.ways.push_back(pinned_way(plan));
    return named;
  };
  if (a.suite == "ragged") {
    for (const LazyCase& one : lazy) {
      const std::vector<NamedCase> cases = {made(one)};
      if (&one == &lazy.front()) check_impl(a, options.impl, cases, *machine);
      summary.add(run_reduce(*machine, cases, options, file, print));
    }
  } else {
    std::vector<NamedCase> cases;
    for (const LazyCase& one : lazy) cases.push_back(made(one));
    check_impl(a, options.impl, cases, *machine);
    summary = run_reduce(*machine, cases, options, file, print);
  }
  print(text_of(summary));
  return summary.wrong.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  make_openmp_wait_passively(argv);
  setenv("CUDA_CACHE_DISABLE", "1", 1);  // NVRTC would not compile what it has compiled before
  const TemporaryCache cache;
  Arguments arguments;
  CLI::App app(kAbout);
  add_options(app, arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    return arguments.suite == "first" ? run_first(arguments) : run_contests(arguments);
  } catch (const CLI::Error& error) {
    return app.exit(error);
  } catch (const std::regex_error& error) {
    fmt::print(stderr, "chainfold_bench: error: a regular expression: {}\n", error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "chainfold_bench: error: {}\n", error.what());
  }
  return 1;
}
