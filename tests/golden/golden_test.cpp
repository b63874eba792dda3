// Golden prints: the stages of some kernels, as text files beside this one. All cases have their
// expression, graph and plan; the short ones that show every strategy, unit and operation (kShown)
// also their program and kernels, and of the others digest.txt has a line.
//
//     chainfold_golden_tests --update-golden      # or CHAINFOLD_UPDATE_GOLDEN=1
//     chainfold_golden_tests --write-texts FOLDER
//
// The first writes the files anew; read the difference before you commit it. The second writes all
// stages of all cases, so that the texts of two commits can be compared. A case that does not match
// leaves its texts in build/golden/.
// With a filter --update-golden leaves digest.txt as it is, unless GoldenFiles.* is among them.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
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
#include "chainfold/tests/support/golden_digest.hpp"
#include "chainfold/tests/support/look_back.hpp"

namespace chainfold::test {
namespace {

namespace fs = std::filesystem;

bool update_golden = false;
constexpr const char* kDigests = "digest.txt";

fs::path folder() { return fs::path(CHAINFOLD_SOURCE_DIR) / "tests" / "golden"; }

/// The stages of a case: what people read of every one, and what is long.
struct Stages {
  std::string head;  ///< expression, graph and plan
  codegen::Program program{};
  std::string text{}, kernels{};

  [[nodiscard]] std::string all() const {
    return fmt::format("{}--- program\n{}--- kernels\n{}", head, text, kernels);
  }
  [[nodiscard]] std::string in_short() const { return digest(program, text, kernels); }
};

Stages stages(const GoldenCase& golden) {
  const Computation computation = golden.computation();
  const codegen::Target target = golden.home();
  const codegen::Graph graph = codegen::legalize(computation.graph(), target);
  codegen::Compiled compiled = codegen::compile_plan(graph, target, golden.plan_on(target).value());
  const std::string head = fmt::format("--- expression\n{}\n--- graph\n{}--- plan for {}\n{}",
                                       codegen::print_expression(graph), print(graph),
                                       golden.target, print(compiled.plan, graph));
  std::string text = print(compiled.program),
              kernels = codegen::emit(compiled.program, target).kernels;
  return {head, std::move(compiled.program), std::move(text), std::move(kernels)};
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

Stages stages(const WrittenCase& written) {
  codegen::Program program = look_back_program(written.shape);
  std::string text = print(program);
  std::string kernels = written.arch == 0 ? codegen::emit_llvm(program).text
                                          : codegen::emit_cuda(program, written.arch).kernels_text;
  return {"", std::move(program), std::move(text), std::move(kernels)};
}

bool is_shown(std::string_view name) {
  return std::find(std::begin(kShown), std::end(kShown), name) != std::end(kShown);
}

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  ASSERT_EQ(read(file), text) << "could not write " << file;
}

/// The lines of digest.txt, by case.
std::map<std::string, std::string> read_digests() {
  std::map<std::string, std::string> digests;
  for (const std::string& line : lines_of(read(folder() / kDigests)))
    if (const std::size_t colon = line.find(": "); colon != std::string::npos)
      digests[line.substr(0, colon)] = line.substr(colon + 2);
  return digests;
}

/// What a case's own file holds.
std::string file_of(const std::string& name, const Stages& now) {
  return is_shown(name) ? now.all() : now.head;
}

void expect_golden(const std::string& name, const Stages& now) {
  const fs::path file = folder() / (name + ".txt");
  const std::string text = file_of(name, now);
  if (update_golden) {
    if (!text.empty()) write(file, text);
    return;
  }
  if (!text.empty()) {
    ASSERT_TRUE(fs::exists(file)) << file << " is missing; write it with --update-golden";
  }
  const std::string golden = text.empty() ? "" : read(file);
  const auto digests = read_digests();
  const auto found = digests.find(name);
  const std::string line = found == digests.end() ? "" : found->second;
  const std::string line_now = is_shown(name) ? "" : now.in_short();
  if (golden == text && line == line_now) return;
  const fs::path texts = fs::path(CHAINFOLD_SOURCE_DIR) / "build" / "golden";
  write(texts / (name + ".now.txt"), now.all());
  if (is_shown(name)) write(texts / (name + ".golden.txt"), golden);
  ADD_FAILURE() << name << ": "
                << (golden == text
                        ? fmt::format("the digest differs\n  - {}\n  + {}\n", line, line_now)
                        : difference(golden, text))
                << "all stages are in " << texts
                << "; --write-texts at another commit writes what they were. If this is meant, "
                   "write it anew with --update-golden";
}

class Golden : public testing::TestWithParam<GoldenCase> {};

TEST_P(Golden, Matches) { expect_golden(GetParam().name(), stages(GetParam())); }

TEST_P(Golden, CompilingTwiceGivesTheSameText) {
  EXPECT_EQ(stages(GetParam()).all(), stages(GetParam()).all());
}

INSTANTIATE_TEST_SUITE_P(Stages, Golden, testing::ValuesIn(kGoldenCases),
                         [](const auto& info) { return info.param.name(); });

class GoldenWritten : public testing::TestWithParam<WrittenCase> {};

TEST_P(GoldenWritten, Matches) { expect_golden(GetParam().name, stages(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Programs, GoldenWritten, testing::ValuesIn(kWrittenCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Calls `each` with the name and the stages of every case.
template <class Each>
void for_all_cases(const Each& each) {
  for (const GoldenCase& golden : kGoldenCases) each(golden.name(), stages(golden));
  for (const WrittenCase& written : kWrittenCases) each(std::string(written.name), stages(written));
}

TEST(GoldenFiles, NoneIsLeftOver) {
  std::set<std::string> known{kDigests}, digests;
  for_all_cases([&](const std::string& name, const Stages& now) {
    if (!file_of(name, now).empty()) known.insert(name + ".txt");
    if (!is_shown(name)) digests.insert(name);
  });
  if (update_golden) {
    std::string text;
    for_all_cases([&](const std::string& name, const Stages& now) {
      if (!is_shown(name)) text += name + ": " + now.in_short() + "\n";
    });
    write(folder() / kDigests, text);
  }
  for (const auto& [name, line] : read_digests())
    EXPECT_TRUE(digests.contains(name)) << kDigests << " has a line for no case: " << name;
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() != ".txt") continue;
    EXPECT_TRUE(known.contains(entry.path().filename().string()))
        << entry.path() << " belongs to no case of golden_cases.hpp; delete it";
  }
}

/// Those whose programs stand in full are short, and together show whatever a short one has.
TEST(GoldenFiles, WhatIsShownIsShortAndShowsAllThereIs) {
  constexpr std::size_t kMostLines = 500;
  std::set<std::string> shown, there;
  std::map<std::string, std::string> where;
  std::set<std::string> names;
  for_all_cases([&](const std::string& name, const Stages& now) {
    names.insert(name);
    const std::size_t lines = lines_of(now.all()).size();
    const std::set<std::string> features = features_of(now.head, now.text);
    if (is_shown(name)) {
      EXPECT_LT(lines, kMostLines) << name;
      shown.insert(features.begin(), features.end());
    } else if (lines < kMostLines) {
      for (const std::string& feature : features) where.emplace(feature, name);
      there.insert(features.begin(), features.end());
    }
  });
  for (const std::string_view name : kShown) EXPECT_TRUE(names.contains(std::string(name))) << name;
  for (const std::string& feature : there)
    EXPECT_TRUE(shown.contains(feature)) << feature << " is shown by none, but " << where[feature];
}

TEST(GoldenDigest, TellsWhatAReaderAsks) {
  const std::string text =
      "launch fold: grid 1 {\n  %0 = load x[%9] : lane<f32>\n  %1 = load x[%8] : lane<f32>\n"
      "  %2 = add %0, %1 : lane<f32>\n  %3 = load x[%2] : lane<f32>\n  store y[%3], %3\n}\n";
  const std::string line = digest({}, text, "one\n");
  EXPECT_NE(line.find("(7 lines), kernels"), std::string::npos) << line;
  EXPECT_NE(line.find("(1 lines); add 1, load 3, store 1; 2 loads in flight; 0 bytes shared"),
            std::string::npos)
      << line;
  EXPECT_NE(digest({}, text + "\n", "one\n"), line);
  EXPECT_NE(digest({}, text, "two\n"), line);
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
    } else if (std::strcmp(argv[i], "--write-texts") == 0 && i + 1 < argc) {
      const std::filesystem::path folder(argv[i + 1]);
      chainfold::test::for_all_cases([&](const std::string& name, const auto& now) {
        chainfold::test::write(folder / (name + ".txt"), now.all());
      });
      return testing::Test::HasFailure() ? 1 : 0;
    } else {
      std::cerr << "unknown argument " << argv[i]
                << "; known: --update-golden, --write-texts FOLDER and GoogleTest's own\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
