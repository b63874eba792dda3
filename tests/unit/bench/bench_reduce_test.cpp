// The suite `reduce` of the benchmark on a machine that is made up: what is measured, measured
// again, kept and told.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "chainfold/bench/suite_reduce.hpp"

namespace chainfold::bench {
namespace {

using Json = nlohmann::json;

Ceilings rates(double read, double copy) {
  Ceilings c;
  c.read_gbps = read;
  c.copy_gbps = copy;
  c.write_gbps = 4000;
  return c;
}

/// Plays back ceilings (the last one for ever) and counts what is asked of it.
class FakeMachine final : public Machine {
 public:
  std::deque<Ceilings> played{rates(4600, 4200)};
  double our_ms = 1, peer_ms = 2;
  std::optional<Energy> energy;
  std::string peer_problem, unprepared;
  bool peer_wrong = false;
  int prepared = 0, timed = 0, ceilings_taken = 0;

  Ceilings ceilings(const Case&) override {
    ++ceilings_taken;
    const Ceilings now = played.front();
    if (played.size() > 1) played.pop_front();
    return now;
  }
  std::vector<Way> ways(const Case&) override {
    return {{"chainfold", "chosen", ""}, {"chainfold", "forced", "parts"}, {"peer", "", ""}};
  }
  std::unique_ptr<Contest> prepare(const Case& test, const std::vector<Way>& ways) override {
    if (!unprepared.empty() && test.segment > 0) throw std::runtime_error(unprepared);
    ++prepared;
    return std::make_unique<FakeContest>(*this, ways);
  }

 private:
  class FakeContest final : public Contest {
   public:
    FakeContest(FakeMachine& machine, const std::vector<Way>& ways) : machine_(machine) {
      for (const Way& way : ways) {
        Entrant entrant{.way = way, .plan = way.ours() ? way.strategy + " warps=8" : "call"};
        if (way.kind == "pinned") entrant.plan = way.strategy;
        entrant.off = Deviation{.units = 0.5, .percent = 0.25};
        if (!way.ours()) entrant.missing = machine.peer_problem;
        entrant.wrong = !way.ours() && machine.peer_wrong;
        entrants_.push_back(entrant);
      }
    }
    [[nodiscard]] const std::vector<Entrant>& entrants() const override { return entrants_; }
    std::vector<Timing> time(double) override {
      ++machine_.timed;
      std::vector<Timing> result;
      for (const Entrant& entrant : entrants_)
        result.push_back({entrant.way.ours() ? machine_.our_ms : machine_.peer_ms, 9});
      return result;
    }
    std::optional<Energy> energy(std::size_t) override { return machine_.energy; }

   private:
    FakeMachine& machine_;
    std::vector<Entrant> entrants_;
  };
};

/// A folder of the test's own.
class BenchReduce : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("chainfold_bench_" + std::string(info->name()) + std::to_string(::getpid()));
    std::filesystem::create_directory(folder_);
    head_.suite = "reduce";
    head_.target = "gpu";
    head_.device = "a device";
    head_.commit = "0123456789";
    head_.clean = true;
    head_.date = "2026-01-01T00:00:00Z";
    head_.before = head_.after = rates(4600, 4200);
    cases_ = {{"sum/f16/64", make_case(Op::sum, DType::f16, DType::f16, 6400, 64)},
              {"sum/f16/whole", make_case(Op::sum, DType::f16, DType::f32, 6400, 0)}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path path() const { return folder_ / "results.json"; }
  ReduceSummary run(const ReduceOptions& options = {}, bool resume_dirty = false) {
    ResultsFile file(path(), head_, resume_dirty);
    note_ = file.note();
    printed_.clear();
    return run_reduce(machine_, cases_, options, file,
                      [&](const std::string& line) { printed_ += line + '\n'; });
  }
  [[nodiscard]] Json content() const {
    std::ifstream stream(path());
    return Json::parse(stream);
  }
  [[nodiscard]] std::size_t files() const {
    const std::filesystem::directory_iterator all(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  std::filesystem::path folder_;
  Report head_;
  std::vector<NamedCase> cases_;
  FakeMachine machine_;
  std::string note_, printed_;
};

TEST_F(BenchReduce, WritesHeadAndRows) {
  const ReduceSummary summary = run();
  EXPECT_EQ(summary.cases, 2u);
  EXPECT_EQ(summary.rows, 6u);
  const Json all = content();
  EXPECT_EQ(all["head"]["device"], "a device");
  EXPECT_EQ(all["head"]["read_gbps"], 4600);
  ASSERT_EQ(all["rows"].size(), 6u);
  const Json& row = all["rows"][0];
  EXPECT_EQ(row["op"], "sum");
  EXPECT_EQ(row["out_dtype"], "f16");
  EXPECT_EQ(row["segment"], 64);
  EXPECT_EQ(row["impl"], "chainfold");
  EXPECT_EQ(row["plan_kind"], "chosen");
  EXPECT_EQ(row["ms"], 1.0);
  // 12800 bytes at 4600 GB/s and 200 at 4000.
  EXPECT_DOUBLE_EQ(row["ceiling_ms"].get<double>(), (12800 / 4600.0 + 200 / 4000.0) * 1e-6);
  EXPECT_DOUBLE_EQ(row["ratio"].get<double>(), row["ceiling_ms"].get<double>());
  EXPECT_EQ(row["max_err_u"], 0.5);
  EXPECT_TRUE(row["pj_per_element"].is_null());
  EXPECT_FALSE(row.contains("void"));
  EXPECT_FALSE(row.contains("err_percent"));  // of one result for all elements only
  EXPECT_EQ(all["rows"][3]["segment"], "whole");
  EXPECT_EQ(all["rows"][3]["err_percent"], 0.25);
  EXPECT_EQ(files(), 1u);  // no temporary file is left
}

TEST_F(BenchReduce, MeasuresNoRowTwice) {
  run();
  const ReduceSummary again = run();
  EXPECT_EQ(again.rows, 0u);
  EXPECT_EQ(again.kept, 6u);
  EXPECT_EQ(machine_.prepared, 2);
  EXPECT_EQ(content()["rows"].size(), 6u);
}

TEST_F(BenchReduce, GoesOnWhereAnInterruptedRunEnded) {
  ReduceOptions first_case;
  first_case.only = std::regex("/64$");
  run(first_case);
  EXPECT_EQ(content()["rows"].size(), 3u);
  const ReduceSummary rest = run();
  EXPECT_EQ(rest.kept, 3u);
  EXPECT_EQ(rest.rows, 3u);
  EXPECT_EQ(content()["rows"].size(), 6u);
}

TEST_F(BenchReduce, KeepsRowsOfOtherProgramsWithAllTheirFields) {
  run();
  Json all = content();
  Json other = all["rows"][2];
  other["impl"] = "torch.sum";
  other["mine"] = "kept";
  all["rows"].push_back(other);
  std::ofstream(path()) << all;
  cases_.push_back({"sum/f16/32", make_case(Op::sum, DType::f16, DType::f16, 6400, 32)});
  run();
  const Json now = content();
  ASSERT_EQ(now["rows"].size(), 10u);
  EXPECT_EQ(now["rows"][6]["mine"], "kept");
}

TEST_F(BenchReduce, AnotherCommitBeginsAnewAndKeepsTheOldFile) {
  run();
  head_.commit = "abcdef";
  const ReduceSummary summary = run();
  EXPECT_EQ(summary.rows, 6u);
  EXPECT_NE(note_.find("its commit is 0123456789"), std::string::npos) << note_;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "results.1.json"));
  EXPECT_EQ(content()["head"]["commit"], "abcdef");
}

TEST_F(BenchReduce, ATreeWithChangesResumesOnlyWhereToldTo) {
  head_.clean = false;
  run();
  EXPECT_EQ(run({}, true).rows, 0u);
  EXPECT_EQ(run().rows, 6u);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "results.1.json"));
}

TEST_F(BenchReduce, AnUnknownCommitIsNoTreeWithChanges) {
  head_.commit = kUnknownCommit;
  head_.clean = std::nullopt;
  run();
  EXPECT_EQ(run({}, true).rows, 0u);
  EXPECT_EQ(run().rows, 6u);
  EXPECT_NE(note_.find("its commit is unknown"), std::string::npos) << note_;
  EXPECT_NE(note_.find("set CHAINFOLD_COMMIT"), std::string::npos) << note_;
  EXPECT_EQ(note_.find("changes"), std::string::npos) << note_;
  head_.commit = "0123456789";
  head_.clean = true;
  EXPECT_EQ(run().rows, 6u);
  EXPECT_NE(note_.find("its commit is unknown"), std::string::npos) << note_;
}

TEST_F(BenchReduce, APathIsTriedWithoutATrace) {
  ResultsFile::check_writable(path());
  EXPECT_EQ(files(), 0u);
  std::ofstream(path()) << "old";
  ResultsFile::check_writable(path());
  check_writable(path());
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(std::filesystem::file_size(path()), 3u);
  try {
    ResultsFile::check_writable(folder_ / "none" / "results.json");
    FAIL() << "a folder that is not there";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("none/results.json cannot be written: No such file"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(check_writable(folder_), std::runtime_error);
}

TEST_F(BenchReduce, RefusesAFileThatIsNone) {
  std::ofstream(path()) << "{\"rows\": 1}";
  EXPECT_THROW(run(), std::runtime_error);
  std::ofstream(path()) << "not json";
  EXPECT_THROW(run(), std::runtime_error);
}

TEST_F(BenchReduce, MovedCeilingsAreMeasuredAgainOnce) {
  cases_.pop_back();
  machine_.played = {rates(4600, 4200), rates(4540, 4200), rates(4600, 4200), rates(4590, 4200)};
  const ReduceSummary summary = run();
  EXPECT_EQ(machine_.timed, 2);
  EXPECT_EQ(machine_.prepared, 1);
  EXPECT_EQ(summary.voided, 0u);
  EXPECT_FALSE(content()["rows"][0].contains("void"));
}

TEST_F(BenchReduce, RowsStayVoidWhereTheCeilingsMoveTwice) {
  cases_.pop_back();
  machine_.played = {rates(4600, 4200), rates(4600, 4100), rates(4600, 4200), rates(4600, 4100),
                     rates(4600, 4200)};
  const ReduceSummary summary = run();
  EXPECT_EQ(machine_.timed, 2);
  EXPECT_EQ(summary.voided, 3u);
  EXPECT_TRUE(content()["rows"][0]["void"]);
  EXPECT_TRUE(summary.lost.empty());  // nothing is compared by rows that are void
  const ReduceSummary again = run();  // a later run measures them
  EXPECT_EQ(again.rows, 3u);
  EXPECT_FALSE(content()["rows"][0].contains("void"));
}

TEST_F(BenchReduce, ApartIsAboutEitherRate) {
  EXPECT_FALSE(apart(rates(4600, 4200), rates(4640, 4170), 0.01));
  EXPECT_TRUE(apart(rates(4600, 4200), rates(4650, 4200), 0.01));
  EXPECT_TRUE(apart(rates(4600, 4200), rates(4600, 4150), 0.01));
  EXPECT_TRUE(apart(rates(4600, 4200), rates(std::nan(""), 4200), 0.01));
}

TEST_F(BenchReduce, AMissingPeerIsARowThatSaysWhyAndIsTriedAgain) {
  machine_.peer_problem = "built without nvcc";
  const ReduceSummary summary = run();
  EXPECT_TRUE(summary.wrong.empty());
  const Json row = content()["rows"][2];
  EXPECT_EQ(row["impl"], "peer");
  EXPECT_EQ(row["missing"], "built without nvcc");
  EXPECT_TRUE(row["ms"].is_null());
  machine_.peer_problem.clear();
  EXPECT_EQ(run().rows, 2u);
  EXPECT_EQ(content()["rows"].size(), 6u);
  EXPECT_FALSE(content()["rows"][2].contains("missing"));
}

TEST_F(BenchReduce, ACaseThatCannotBePreparedLeavesTheOthers) {
  machine_.unprepared = "sum/f16/64 has no memory";
  const ReduceSummary summary = run();
  EXPECT_EQ(summary.cases, 2u);
  const Json rows = content()["rows"];
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[1]["missing"], machine_.unprepared);
  EXPECT_EQ(rows[1]["plan"], "parts");
  EXPECT_EQ(rows[3]["ms"], 1.0);
  EXPECT_EQ(run().kept, 3u);  // what is missing is tried again
}

TEST_F(BenchReduce, WrongResultsAreToldAtTheEnd) {
  machine_.peer_problem = "output 0 of segment 3 is 1";
  machine_.peer_wrong = true;
  const ReduceSummary summary = run();
  ASSERT_EQ(summary.wrong.size(), 2u);
  EXPECT_EQ(summary.wrong[0], "sum/f16/64: output 0 of segment 3 is 1");
  EXPECT_NE(text_of(summary).find("WRONG sum/f16/64"), std::string::npos);
}

TEST_F(BenchReduce, TellsWhereAPeerWinsAlsoAgainstKeptRows) {
  cases_.pop_back();
  ReduceOptions ours;
  ours.impl = std::regex("chainfold");
  EXPECT_TRUE(run(ours).lost.empty());
  machine_.peer_ms = 0.5;
  ASSERT_EQ(run().lost.size(), 1u);
  EXPECT_NE(printed_.find("LOST sum/f16/64: peer is 2.00 times as fast"), std::string::npos)
      << printed_;
}

TEST_F(BenchReduce, EnergyIsMeasuredForNamedRowsAlsoLater) {
  cases_.pop_back();
  machine_.energy = Energy{.pj = 340, .ceilings_pj = 310};
  run();
  EXPECT_TRUE(content()["rows"][0]["pj_per_element"].is_null());
  ReduceOptions options;
  options.energy = std::regex("sum/f16/64 (peer|chainfold chosen)");
  EXPECT_EQ(run(options).rows, 2u);
  const Json rows = content()["rows"];
  EXPECT_EQ(rows[0]["pj_per_element"], 340);
  EXPECT_EQ(rows[0]["ceilings_pj_per_element"], 310);
  EXPECT_NE(printed_.find("340 pJ (the ceilings 310)"), std::string::npos) << printed_;
  EXPECT_TRUE(rows[1]["pj_per_element"].is_null());
  EXPECT_EQ(rows[2]["pj_per_element"], 340);
  EXPECT_EQ(run(options).rows, 0u);
}

TEST_F(BenchReduce, ABudgetLeavesCasesForTheNextRun) {
  ReduceOptions options;
  options.budget = 1e-9;
  const ReduceSummary summary = run(options);
  EXPECT_EQ(summary.left, 2u);
  EXPECT_EQ(summary.rows, 0u);
  EXPECT_NE(text_of(summary).find("2 cases are left"), std::string::npos);
}

TEST_F(BenchReduce, ExperimentsAndCachedRowsAreKeptApart) {
  NamedCase normal{"variants/normal", make_case(Op::sum, DType::f16, DType::f32, 6400, 0)};
  normal.experiment = "variants";
  normal.ways = {{.impl = "chainfold", .kind = "pinned", .strategy = "split warps=8"},
                 {.impl = "chainfold", .kind = "pinned", .strategy = "split warps=16"}};
  normal.test.source = Source::normal;
  NamedCase uniform = normal, cached = cases_[0];
  uniform.name = "variants/uniform";
  uniform.test.source = Source::uniform;
  cached.name += "/cache";
  cached.test.cached = true;
  cases_ = {cases_[0], cached, normal, uniform};
  EXPECT_EQ(run().rows, 10u);
  const Json rows = content()["rows"];
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_FALSE(rows[0].contains("cached"));
  EXPECT_EQ(rows[3]["cached"], true);
  EXPECT_EQ(rows[6]["experiment"], "variants");
  EXPECT_EQ(rows[6]["data"], "normal");
  EXPECT_EQ(rows[9]["data"], "uniform");
  EXPECT_EQ(run().kept, 10u);
}

}  // namespace
}  // namespace chainfold::bench
