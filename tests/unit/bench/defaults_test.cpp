// bench/defaults.txt: the default plan of every benchmark case, on machines that tell each other
// apart. A changed constant is a difference that can be read.
//
//     CHAINFOLD_UPDATE_DEFAULTS=1 chainfold_unit_tests --gtest_filter='BenchDefaults*'
//
// writes the file anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "chainfold/bench/compile_cases.hpp"
#include "chainfold/bench/suite_reduce.hpp"
#include "chainfold/codegen/choose/choose.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::bench {
namespace {

std::vector<std::pair<std::string, codegen::Target>> machines() {
  return {{"sm_80", codegen::parse_target("sm_80")},
          {"sm_90", codegen::parse_target("sm_90")},
          {"znver4", codegen::cpu_target(8, "znver4")},
          {"sapphirerapids", codegen::cpu_target(64, "sapphirerapids")},
          {"cpu", codegen::cpu_target(8)}};
}

std::string lines_of(const std::string& name, const Computation& computation, std::int64_t size,
                     std::int64_t elements) {
  std::string text = name + "\n";
  for (const auto& [machine, target] : machines()) {
    const codegen::Graph graph = codegen::legalize(computation.graph(), target);
    const codegen::PlanRequest request{
        .segment = size,
        .size_limit = elements > 0 ? size_class_of(graph, target, size, elements) : 0};
    text += fmt::format("  {:14} {}\n", machine, to_text(default_choice(graph, target, request)));
  }
  return text;
}

std::string all_defaults() {
  constexpr std::int64_t kBytes = std::int64_t{1} << 31;
  std::string text =
      "# The default plan of each benchmark case: of the suites reduce and scan by 2 GiB, and of\n"
      "# the cases of compile times by any number of elements. A test holds this file against the\n"
      "# rules; what it writes anew is to be read before it is committed.\n";
  for (const auto& cases : {reduce_cases(kBytes), scan_cases(kBytes)}) {
    for (const NamedCase& named : cases) {
      text +=
          lines_of(named.name, named.test.computation, named.test.plan_size(), named.test.elements);
    }
  }
  for (const CompileCase& what : compile_cases())
    text += lines_of(what.name, what.computation, what.segment + what.columns, 0);
  return text;
}

TEST(BenchDefaults, AreWhatTheFileSays) {
  const std::string path = std::string(CHAINFOLD_SOURCE_DIR) + "/bench/defaults.txt";
  const std::string now = all_defaults();
  if (std::getenv("CHAINFOLD_UPDATE_DEFAULTS") != nullptr) {
    std::ofstream(path) << now;
    GTEST_SKIP() << "wrote " << path;
  }
  std::ifstream file(path);
  std::ostringstream before;
  before << file.rdbuf();
  std::istringstream a(before.str()), b(now);
  std::string line_a, line_b, name;
  int different = 0;
  for (;;) {
    const bool more_a = static_cast<bool>(std::getline(a, line_a));
    const bool more_b = static_cast<bool>(std::getline(b, line_b));
    if (!more_a && !more_b) break;
    if (!line_b.starts_with(' ')) name = line_b;
    if (more_a && more_b && line_a == line_b) continue;
    if (++different <= 10) ADD_FAILURE() << name << "\n- " << line_a << "\n+ " << line_b;
  }
  EXPECT_EQ(different, 0) << "if these plans are meant, write the file anew: "
                             "CHAINFOLD_UPDATE_DEFAULTS=1";
}

}  // namespace
}  // namespace chainfold::bench
