// Where launches that overlap wait for the one before, and what the verifier says of it.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/passes/waits.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/codegen/program/visit.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;

constexpr int kInput = 0, kOutput = 1, kScratch = 2;

/// The first launch stores to `first_stores`; the second loads from an input, then from scratch,
/// within a loop if asked for, and stores their sum.
Program two_launches(int first_stores, bool in_place, bool in_loop) {
  Program program;
  program.name = "two";
  program.in_place = in_place;
  program.buffers = {{"x", DType::f32, BufferRole::input, 0, 4, {}},
                     {"y", DType::f32, BufferRole::output, 0, 4, {}},
                     {"tmp", DType::f32, BufferRole::scratch, 0, 4, SizeExpr(64)}};
  program.launches.reserve(2);
  program.launches.push_back({.name = "first", .grid = SizeExpr(1), .warps = 1});
  {
    Builder b(program);
    b.store(first_stores, {b.i64(0)}, b.splat(b.constant(DType::f32, 0)));
  }
  program.launches.push_back({.name = "second", .grid = SizeExpr(1), .warps = 1});
  Builder b(program);
  const ValueId x = b.load(kInput, {b.i64(0)}, 1);
  ValueId sum = x;
  if (in_loop) {
    sum = b.loop(b.i64(0), b.i64(2), b.i64(1), {x}, [&](ValueId, const Builder::Values& carried) {
      return Builder::Values{b.add(carried[0], b.load(kScratch, {b.i64(0)}, 1))};
    })[0];
  } else {
    sum = b.add(x, b.load(kScratch, {b.i64(0)}, 1));
  }
  b.store(kOutput, {b.i64(0)}, sum);
  return program;
}

std::vector<Instr>& second(Program& program) { return program.launches[1].body.body; }

std::ptrdiff_t place_of_wait(Program& program) {
  std::ptrdiff_t place = -1;
  for (std::size_t i = 0; i < second(program).size(); ++i) {
    if (!std::holds_alternative<WaitForLaunch>(second(program)[i].op)) continue;
    EXPECT_EQ(place, -1);
    place = static_cast<std::ptrdiff_t>(i);
  }
  return place;
}

/// What the instruction behind the wait loads from; -1: it is no load.
int loads_behind_wait(Program& program) {
  const auto place = static_cast<std::size_t>(place_of_wait(program));
  const auto* load = std::get_if<Load>(&second(program).at(place + 1).op);
  return load != nullptr ? load->buffer : -1;
}

std::string complaint(const Program& program) {
  try {
    verify(program);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(LaunchOverlap, WaitsBehindTheInputsAndBeforeWhatTheLaunchBeforeStored) {
  Program program = two_launches(kScratch, false, false);
  place_waits(program);
  EXPECT_NO_THROW(verify(program));
  EXPECT_EQ(loads_behind_wait(program), kScratch);
}

TEST(LaunchOverlap, WaitsInFrontOfALoopThatTouchesIt) {
  Program program = two_launches(kScratch, false, true);
  place_waits(program);
  EXPECT_NO_THROW(verify(program));
  const auto place = static_cast<std::size_t>(place_of_wait(program));
  EXPECT_TRUE(std::holds_alternative<For>(second(program).at(place + 1).op));
}

TEST(LaunchOverlap, WaitsBeforeInputsThatTheLaunchBeforeMayHaveChanged) {
  Program apart = two_launches(kOutput, false, false);
  place_waits(apart);
  EXPECT_EQ(loads_behind_wait(apart), kScratch);
  Program in_place = two_launches(kOutput, true, false);
  place_waits(in_place);
  EXPECT_NO_THROW(verify(in_place));
  EXPECT_EQ(loads_behind_wait(in_place), kInput);
}

std::string names(const std::vector<Instr>& body) {
  std::string text;
  for (const Instr& instr : body) {
    if (std::holds_alternative<WaitForLaunch>(instr.op)) text += " wait";
    if (std::holds_alternative<LetNextStart>(instr.op)) text += " start";
    if (std::holds_alternative<Load>(instr.op)) text += " load";
    if (std::holds_alternative<Store>(instr.op)) text += " store";
  }
  return text;
}

/// The first launch keeps what it reads in scratch, the second stores it.
Program fold_and_merge() {
  Program program = two_launches(kScratch, false, false);
  program.launches.pop_back();
  program.launches[0].body.body.clear();
  {
    Builder b(program);
    b.store(kScratch, {b.i64(0)}, b.load(kInput, {b.i64(0)}, 1));
  }
  program.launches.push_back({.name = "second", .grid = SizeExpr(1), .warps = 1});
  Builder b(program);
  b.store(kOutput, {b.i64(0)}, b.load(kScratch, {b.i64(0)}, 1));
  return program;
}

TEST(LaunchOverlap, TheFirstWaitsBeforeItTouchesAnything) {
  Program program = fold_and_merge();
  place_waits(program);
  EXPECT_NO_THROW(verify(program));
  EXPECT_EQ(names(program.launches[0].body.body), " wait start load store");
  EXPECT_EQ(names(program.launches[1].body.body), " wait load store");
  for (const Launch& launch : program.launches) EXPECT_TRUE(launch.overlaps);

  std::vector<Instr>& first = program.launches[0].body.body;
  const auto wait = std::ranges::find_if(
      first, [](const Instr& i) { return std::holds_alternative<WaitForLaunch>(i.op); });
  std::rotate(wait, wait + 1, first.end());
  std::erase_if(first, [](const Instr& i) { return std::holds_alternative<LetNextStart>(i.op); });
  EXPECT_NE(complaint(program).find("none touches memory before it waits"), std::string::npos);
}

/// What the second reads before its wait may be what stands before the program still writes, if the
/// first has not ended behind that.
TEST(LaunchOverlap, TheFirstDoesNotOverlapWhereAnotherReadsInputsEarly) {
  Program program = two_launches(kScratch, false, false);
  program.launches.push_back({.name = "third", .grid = SizeExpr(1), .warps = 1});
  {
    Builder b(program);
    b.store(kOutput, {b.i64(1)}, b.load(kInput, {b.i64(0)}, 1));
  }
  place_waits(program);
  EXPECT_NO_THROW(verify(program));
  EXPECT_EQ(names(program.launches[0].body.body), " start store");
  EXPECT_EQ(names(program.launches[1].body.body), " start load wait load store");
  EXPECT_EQ(names(program.launches[2].body.body), " load wait store");
  EXPECT_FALSE(program.launches[0].overlaps);

  program.launches[0].overlaps = true;
  program.launches[0].body.body.insert(program.launches[0].body.body.begin(),
                                       {WaitForLaunch{}, {}});
  EXPECT_NE(complaint(program).find("none touches memory before it waits"), std::string::npos);
}

TEST(LaunchOverlap, TheVerifierRefusesStartsElsewhere) {
  const auto placed = [] {
    Program program = fold_and_merge();
    place_waits(program);
    return program;
  };
  Program early = placed();
  std::vector<Instr>& first = early.launches[0].body.body;
  std::erase_if(first, [](const Instr& i) { return std::holds_alternative<LetNextStart>(i.op); });
  EXPECT_NO_THROW(verify(early));
  first.insert(first.begin(), {LetNextStart{}, {}});
  EXPECT_NE(complaint(early).find("waits before it lets the next one start"), std::string::npos);

  Program twice = placed();
  twice.launches[0].body.body.push_back({LetNextStart{}, {}});
  EXPECT_NE(complaint(twice).find("start once"), std::string::npos);

  Program last = placed();
  second(last).push_back({LetNextStart{}, {}});
  EXPECT_NE(complaint(last).find("the next one start that overlaps it"), std::string::npos);

  Program inside = two_launches(kScratch, false, true);
  inside.launches.push_back({.name = "third", .grid = SizeExpr(1), .warps = 1});
  place_waits(inside);
  EXPECT_NO_THROW(verify(inside));
  std::erase_if(second(inside),
                [](const Instr& i) { return std::holds_alternative<LetNextStart>(i.op); });
  EXPECT_NO_THROW(verify(inside));
  for (Instr& instr : second(inside)) {
    if (auto* loop = std::get_if<For>(&instr.op))
      loop->body.body.insert(loop->body.body.begin(), {LetNextStart{}, {}});
  }
  EXPECT_NE(complaint(inside).find("outside of loops and branches"), std::string::npos);
}

TEST(LaunchOverlap, TheVerifierRefusesWaitsElsewhere) {
  Program none = two_launches(kScratch, false, false);
  none.launches[1].overlaps = true;
  EXPECT_NE(complaint(none).find("touches inputs alone before it waits"), std::string::npos);

  Program late = two_launches(kScratch, false, false);
  late.launches[1].overlaps = true;
  second(late).push_back({WaitForLaunch{}, {}});
  EXPECT_NE(complaint(late).find("touches inputs alone before it waits"), std::string::npos);

  Program twice = two_launches(kScratch, false, false);
  place_waits(twice);
  second(twice).push_back({WaitForLaunch{}, {}});
  EXPECT_NE(complaint(twice).find("once"), std::string::npos);

  Program inside = two_launches(kScratch, false, true);
  place_waits(inside);
  for (Instr& instr : second(inside)) {
    if (auto* loop = std::get_if<For>(&instr.op))
      loop->body.body.insert(loop->body.body.begin(), {WaitForLaunch{}, {}});
  }
  EXPECT_NE(complaint(inside).find("outside of loops and branches"), std::string::npos);

  Program alone = two_launches(kScratch, false, false);
  place_waits(alone);
  alone.launches[1].overlaps = false;
  std::erase_if(alone.launches[0].body.body,
                [](const Instr& i) { return std::holds_alternative<LetNextStart>(i.op); });
  EXPECT_NE(complaint(alone).find("only a launch that overlaps"), std::string::npos);

  Program without = two_launches(kScratch, false, false);
  without.launches[1].overlaps = true;
  second(without).clear();
  EXPECT_NE(complaint(without).find("a launch that overlaps waits"), std::string::npos);
}

}  // namespace
}  // namespace chainfold::test
