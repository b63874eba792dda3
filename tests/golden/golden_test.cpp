// Golden prints: every stage of some kernels, as text files beside this one.
//
//     chainfold_golden_tests --update-golden      # or CHAINFOLD_UPDATE_GOLDEN=1
//
// writes the files anew; read the difference before you commit it.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/emit/cuda/cuda.hpp"
#include "chainfold/codegen/emit/llvm/llvm.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/tests/golden/golden_cases.hpp"
#include "chainfold/tests/support/look_back.hpp"

namespace chainfold::test {
namespace {

namespace fs = std::filesystem;

bool update_golden = false;

fs::path folder() { return fs::path(CHAINFOLD_SOURCE_DIR) / "tests" / "golden"; }

std::string stages(const GoldenCase& golden) {
  const Computation computation = golden.computation();
  const codegen::Target target = golden.home();
  const codegen::Graph graph = codegen::legalize(computation.graph(), target);
  const codegen::Compiled compiled =
      codegen::compile_plan(graph, target, golden.plan_on(target).value());
  return fmt::format(
      "--- expression\n{}\n--- graph\n{}--- plan for {}\n{}--- program\n{}--- kernels\n{}",
      codegen::print_expression(graph), print(graph), golden.target, print(compiled.plan, graph),
      print(compiled.program), codegen::emit(compiled.program, target).kernels);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The first place where two texts part, with its stage and some lines around it.
std::string difference(const std::string& golden, const std::string& now) {
  constexpr std::size_t kContext = 3, kShown = 12;
  const std::vector<std::string> a = lines_of(golden), b = lines_of(now);
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  // What both end with does not matter.
  std::size_t end_a = a.size(), end_b = b.size();
  while (end_a > at && end_b > at && a[end_a - 1] == b[end_b - 1]) --end_a, --end_b;
  std::string stage = "the beginning";
  for (std::size_t i = 0; i < std::min(at + 1, a.size()); ++i) {
    if (a[i].rfind("--- ", 0) == 0) stage = a[i].substr(4);
  }
  std::string text = fmt::format("first difference in line {}, in stage \"{}\":\n", at + 1, stage);
  for (std::size_t i = at > kContext ? at - kContext : 0; i < at; ++i) text += "    " + a[i] + "\n";
  auto show = [&](char sign, const std::vector<std::string>& lines, std::size_t end) {
    for (std::size_t i = at; i < std::min(end, at + kShown); ++i) {
      text += fmt::format("  {} {}\n", sign, lines[i]);
    }
    if (end > at + kShown) text += fmt::format("  {} ... {} more lines\n", sign, end - at - kShown);
  };
  show('-', a, end_a);
  show('+', b, end_b);
  return text;
}

/// Programs that no plan makes: written by hand.
struct WrittenCase {
  const char* name;
  LookBack shape;
  int arch;  ///< 0: the CPU
};
constexpr WrittenCase kWrittenCases[] = {
    {"look_back_sm_90", {.levels = 2}, 90},
    {"look_back_in_place_sm_75", {.warps = 4, .levels = 2, .in_place = true}, 75},
    {"look_back_cpu", {.levels = 2}, 0},
};

std::string stages(const WrittenCase& written) {
  const codegen::Program program = look_back_program(written.shape);
  return fmt::format("--- program\n{}--- kernels\n{}", print(program),
                     written.arch == 0 ? codegen::emit_llvm(program).text
                                       : codegen::emit_cuda(program, written.arch).kernels_text);
}

void expect_golden(const std::string& name, const std::string& now) {
  const fs::path file = folder() / (name + ".txt");
  if (update_golden) {
    std::ofstream(file, std::ios::binary) << now;
    ASSERT_TRUE(fs::exists(file)) << "could not write " << file;
    return;
  }
  std::ifstream stream(file, std::ios::binary);
  ASSERT_TRUE(stream) << file << " is missing; write it with --update-golden";
  const std::string golden((std::istreambuf_iterator<char>(stream)),
                           std::istreambuf_iterator<char>());
  EXPECT_TRUE(golden == now) << file.filename() << ": " << difference(golden, now)
                             << "if this is meant, write it anew with --update-golden";
}

class Golden : public testing::TestWithParam<GoldenCase> {};

TEST_P(Golden, Matches) { expect_golden(GetParam().name(), stages(GetParam())); }

TEST_P(Golden, CompilingTwiceGivesTheSameText) {
  EXPECT_EQ(stages(GetParam()), stages(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Stages, Golden, testing::ValuesIn(kGoldenCases),
                         [](const auto& info) { return info.param.name(); });

class GoldenWritten : public testing::TestWithParam<WrittenCase> {};

TEST_P(GoldenWritten, Matches) { expect_golden(GetParam().name, stages(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Programs, GoldenWritten, testing::ValuesIn(kWrittenCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GoldenFiles, NoneIsLeftOver) {
  std::set<std::string> known;
  for (const GoldenCase& golden : kGoldenCases) known.insert(golden.name() + ".txt");
  for (const WrittenCase& written : kWrittenCases) known.insert(std::string(written.name) + ".txt");
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() != ".txt") continue;
    EXPECT_TRUE(known.count(entry.path().filename().string()) == 1)
        << entry.path() << " belongs to no case of golden_cases.hpp; delete it";
  }
}

TEST(GoldenDifference, NamesTheStageAndBothVersions) {
  const std::string text = difference("--- graph\na\nb\nc\n", "--- graph\na\nx\ny\nc\n");
  EXPECT_EQ(text,
            "first difference in line 3, in stage \"graph\":\n    --- graph\n    a\n  - b\n  + x\n "
            " + y\n");
}

}  // namespace
}  // namespace chainfold::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* environment = std::getenv("CHAINFOLD_UPDATE_GOLDEN");
  chainfold::test::update_golden = environment && std::strcmp(environment, "1") == 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--update-golden") == 0) {
      chainfold::test::update_golden = true;
    } else {
      std::cerr << "unknown argument " << argv[i]
                << "; known: --update-golden and GoogleTest's own\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
