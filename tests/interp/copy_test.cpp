// Copies beside the warp: what the interpreter makes of programs that use them well, and badly.
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/verify.hpp"

namespace chainfold::codegen {
namespace {

constexpr int kTile = 32, kElements = 256;

/// One launch with a shared array of two tiles and a ring of two slots; x is copied, y written.
Program start(int warps = 1) {
  Program program;
  program.name = "copies";
  program.buffers = {{"x", DType::i64, BufferRole::input, 0, 8, {}},
                     {"y", DType::i64, BufferRole::output, 0, 8, {}}};
  program.launches.push_back({.name = "copies", .grid = SizeExpr(1), .warps = warps});
  program.launches.back().shared = {{"stage", DType::i64, 2 * kTile}};
  program.launches.back().rings = {{"stage", 2}};
  return program;
}

struct Memory {
  alignas(128) std::array<std::int64_t, kElements> x{}, y{};
  Memory() { std::iota(x.begin(), x.end(), std::int64_t{1}); }
};

void run(const Program& program, Memory& memory, const InterpOptions& options = {}, int off = 0) {
  const std::array<InterpBuffer, 2> buffers{InterpBuffer{memory.x.data() + off, kElements - off},
                                            InterpBuffer{memory.y.data(), kElements}};
  interpret(program, buffers, {}, options);
}

CopyAsync copy_of(Builder& b, std::int64_t first, int slot, int elements = kTile, int unit = 16,
                  std::int64_t limit = kElements - 5) {
  return {.buffer = 0,
          .first = b.i64(first),
          .unit = unit,
          .array = 0,
          .to = b.i64(std::int64_t{slot} * kTile),
          .elements = elements,
          .limit = b.i64(limit),
          .ring = 0,
          .slot = b.i64(slot)};
}

TEST(Copies, ARingOfTwoSlotsKeepsItsRounds) {
  Program program = start();
  Builder b(program);
  for (int slot = 0; slot < 2; ++slot) b.copy_async(copy_of(b, slot * kTile, slot));
  b.loop(b.i64(0), b.i64(8), b.i64(1), {}, [&](ValueId j, const Builder::Values&) {
    const ValueId slot = b.rem(j, b.i64(2)), place = b.mul(slot, b.i64(kTile));
    b.copy_wait(0, slot, b.div(j, b.i64(2)));
    const ValueId tile = b.shared_load(0, {place});
    const ValueId next = b.add(j, b.i64(2));
    b.branch(
        b.lt(next, b.i64(8)),
        [&] {
          b.copy_async({.buffer = 0,
                        .first = b.mul(next, b.i64(kTile)),
                        .array = 0,
                        .to = place,
                        .elements = kTile,
                        .limit = b.i64(kElements),
                        .ring = 0,
                        .slot = slot});
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
    b.store(1, {b.mul(j, b.i64(kTile))}, b.add(tile, b.i64(1000)));
    return Builder::Values{};
  });
  verify(program);
  Memory memory;
  run(program, memory);
  for (std::size_t i = 0; i < kElements; ++i) EXPECT_EQ(memory.y[i], memory.x[i] + 1000) << i;
}

TEST(Copies, BeginOnTheBoundaryBeforeTheirFirstElement) {
  for (const int off : {0, 1, 5}) {
    Program program = start();
    Builder b(program);
    b.copy_async(copy_of(b, 21, 0, kTile, 128));
    b.copy_wait(0, b.i64(0), b.i64(0));
    const ValueId before = b.misalignment(0, b.i64(21), 128);
    const ValueId mask = b.lt(b.lane(), b.i32(kTile - 16));
    b.store(1, {b.i64(0)}, b.shared_load(0, {before}, 1, mask), mask);
    verify(program);
    Memory memory;
    run(program, memory, {}, off);
    for (int i = 0; i < kTile - 16; ++i)
      EXPECT_EQ(memory.y[static_cast<std::size_t>(i)], 22 + off + i) << off;
  }
}

TEST(Copies, BringAnythingFromBeyondTheInput) {
  for (const auto& [first, limit] : {std::pair{3, 200}, {180, 200}, {208, 200}, {2, 9}, {0, 0}}) {
    constexpr int kOff = 5, kBoundary = 16;  // elements to the first boundary behind x[kOff]
    Program program = start();
    Builder b(program);
    b.copy_async(copy_of(b, first, 0, kTile, 128, limit));
    b.copy_wait(0, b.i64(0), b.i64(0));
    b.store(1, {b.i64(0)}, b.shared_load(0, {b.i64(0)}));
    verify(program);
    Memory memory;
    run(program, memory, {}, kOff);
    const int from = (first + kOff) / kBoundary * kBoundary - kOff;
    for (int i = 0; i < kTile; ++i) {
      const int e = from + i;
      EXPECT_EQ(memory.y[static_cast<std::size_t>(i)],
                e < 0 || e >= limit ? -1 : memory.x[static_cast<std::size_t>(e + kOff)])
          << first << ", " << limit << ", element " << e;
    }
  }
}

TEST(Copies, ALaneMayReadAtAnOffsetOfItsOwn) {
  Program program = start();
  Builder b(program);
  b.copy_async(copy_of(b, 0, 0));
  b.copy_wait(0, b.i64(0), b.i64(0));
  const ValueId turned = b.sub(b.i32(kTile - 1), b.lane());
  b.store(1, {b.i64(0)},
          b.shared_load(0, {.base = b.i64(0), .group = 1, .stride = 0, .offset = turned}));
  verify(program);
  Memory memory;
  run(program, memory);
  for (int i = 0; i < kTile; ++i) EXPECT_EQ(memory.y[static_cast<std::size_t>(i)], kTile - i);
}

/// Builds a program that does something wrong, and what every schedule must say of it.
void expect_error(int warps, const std::string& part, const std::function<void(Builder&)>& build) {
  Program program = start(warps);
  Builder b(program);
  build(b);
  verify(program);
  for (const Schedule schedule : {Schedule::in_order, Schedule::reversed, Schedule::random}) {
    Memory memory;
    try {
      run(program, memory, {.schedule = schedule, .seed = 3});
      ADD_FAILURE() << "no error in:\n" << print(program);
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(Copies, WhatIsNotWaitedForCannotBeRead) {
  expect_error(1, "never written", [](Builder& b) {
    b.copy_async(copy_of(b, 0, 0));
    b.store(1, {b.i64(0)}, b.shared_load(0, {b.i64(0)}));
    b.copy_wait(0, b.i64(0), b.i64(0));
  });
}
TEST(Copies, AnotherWarpNeedsABarrier) {
  expect_error(2, "a race", [](Builder& b) {
    b.branch(
        b.compute(Op::eq, {b.warp(), b.i32(0)}),
        [&] {
          b.copy_async(copy_of(b, 0, 0));
          b.copy_wait(0, b.i64(0), b.i64(0));
          b.shared_store(0, {b.i64(kTile)}, b.i64(1));
          return Builder::Values{};
        },
        [&] {
          b.shared_store(0, {b.i64(0)}, b.i64(1));
          return Builder::Values{};
        });
  });
}
TEST(Copies, ASlotHasOneCopyUnderWay) {
  expect_error(1, "was not waited for", [](Builder& b) {
    b.copy_async(copy_of(b, 0, 0));
    b.copy_async(copy_of(b, 64, 0));
    b.copy_wait(0, b.i64(0), b.i64(1));
  });
}
TEST(Copies, ASlotBelongsToOneWarp) {
  expect_error(2, "belongs to warp", [](Builder& b) {
    b.copy_async(copy_of(b, 0, 0));
    b.copy_wait(0, b.i64(0), b.i64(0));
  });
}
TEST(Copies, ARoundIsTheOneStartedLast) {
  expect_error(1, "waits for copy 1 of 1", [](Builder& b) {
    b.copy_async(copy_of(b, 0, 0));
    b.copy_wait(0, b.i64(0), b.i64(1));
  });
  expect_error(1, "waits for copy 0 of 0", [](Builder& b) { b.copy_wait(0, b.i64(1), b.i64(0)); });
}
TEST(Copies, NoneIsLeftBehind) {
  expect_error(1, "while a copy that it started is under way",
               [](Builder& b) { b.copy_async(copy_of(b, 0, 1)); });
}
TEST(Copies, StayWithinTheirArrays) {
  expect_error(1, "limit 257 is outside of [0, 256]", [](Builder& b) {
    b.copy_async(copy_of(b, 0, 0, kTile, 16, kElements + 1));
    b.copy_wait(0, b.i64(0), b.i64(0));
  });
  expect_error(1, "outside of [0, 64)", [](Builder& b) {
    b.copy_async(copy_of(b, 0, 1, 2 * kTile));
    b.copy_wait(0, b.i64(1), b.i64(0));
  });
  expect_error(1, "slot 2 is outside", [](Builder& b) { b.copy_wait(0, b.i64(2), b.i64(0)); });
}

/// In place a copy touches what lies in its limits alone, and is a read of it.
TEST(Copies, InPlaceTouchTheirElementsAlone) {
  const auto program_of = [](bool early) {
    Program program = start(1);
    program.in_place = true;
    program.launches[0].grid = 2;
    Builder b(program);
    const ValueId begin = b.add(b.mul(b.block(), b.i64(21)), b.i64(3));
    const ValueId size = b.i64(21), zero = b.i64(0);
    const ValueId mask = b.lt(b.convert(b.lane(), DType::i64), size);
    CopyAsync copy = copy_of(b, 0, 0);
    copy.first = copy.begin = begin;
    copy.limit = b.add(begin, early ? b.i64(22) : size);
    b.copy_async(copy);
    b.copy_wait(0, zero, zero);
    const ValueId before = b.misalignment(0, begin, 16);
    const ValueId x = b.shared_load(0, {before}, 1, mask);
    b.store(1, {begin}, b.add(x, b.i64(1000)), mask);
    return program;
  };
  for (const Schedule schedule : {Schedule::in_order, Schedule::reversed, Schedule::random}) {
    for (const bool early : {false, true}) {
      const Program program = program_of(early);
      verify(program);
      Memory memory;
      const std::array<InterpBuffer, 2> buffers{InterpBuffer{memory.x.data(), kElements},
                                                InterpBuffer{memory.x.data(), kElements}};
      const InterpOptions options{.schedule = schedule, .seed = 3, .resident_blocks = 2};
      if (early) {  // one brings the first element of the other's
        EXPECT_THROW(interpret(program, buffers, {}, options), InternalError);
        continue;
      }
      interpret(program, buffers, {}, options);
      for (std::int64_t i = 0; i < kElements; ++i)
        EXPECT_EQ(memory.x[static_cast<std::size_t>(i)], i + 1 + (i >= 3 && i < 45 ? 1000 : 0));
    }
  }
}

TEST(Copies, SharedMemoryIsLaidOutInUnitsOf16Bytes) {
  Launch launch;
  launch.shared = {{"a", DType::i8, 3}, {"b", DType::f64, 3}, {"c", DType::f16, 8}};
  launch.rings = {{"r", 3}, {"s", 1}};
  const SharedLayout layout = shared_layout(launch);
  EXPECT_EQ(layout.arrays, (std::vector<std::int64_t>{0, 16, 48}));
  EXPECT_EQ(layout.rings, (std::vector<std::int64_t>{64, 96}));
  EXPECT_EQ(layout.bytes, 112);
}

/// y[first..] = 1000 + lane, by a copy of shared elements [from, from + 32).
Program copy_out_program(std::int64_t from, std::int64_t first,
                         const std::function<void(Builder&)>& between = {}, bool waits = true) {
  Program program = start();
  program.launches[0].bulk_copies = true;
  program.buffers[1].alignment = 16;
  Builder b(program);
  b.shared_store(0, {b.i64(0)}, b.add(b.convert(b.lane(), DType::i64), b.i64(1000)));
  b.copy_out({.buffer = 1, .first = b.i64(first), .array = 0, .from = b.i64(from), .elements = 32});
  if (between) between(b);
  if (waits) b.copy_out_wait();
  return program;
}

TEST(CopiesOut, StoreWhatTheWarpHasPutThere) {
  const Program program = copy_out_program(0, 64);
  verify(program);
  EXPECT_NE(print(program).find("copy_out y[%"), std::string::npos);
  EXPECT_NE(print(program).find("copy_out_wait"), std::string::npos);
  Memory memory;
  run(program, memory);
  for (std::size_t i = 0; i < kElements; ++i) {
    const auto lane = static_cast<std::int64_t>(i) - 64;
    EXPECT_EQ(memory.y[i], lane >= 0 && lane < 32 ? 1000 + lane : 0) << i;
  }
}

TEST(CopiesOut, AreHeldToTheRules) {
  const auto fails = [](const Program& program) {
    verify(program);
    Memory memory;
    try {
      run(program, memory);
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const auto says = [&](const Program& program, const char* what) {
    EXPECT_NE(fails(program).find(what), std::string::npos) << fails(program);
  };
  says(copy_out_program(0, 0, {}, false), "while a copy out");
  const auto overwrite = [](Builder& b) { b.shared_store(0, {b.i64(0)}, b.splat(b.i64(7))); };
  says(copy_out_program(0, 0, overwrite), "shared element 0 is written before a copy has read it");
  says(copy_out_program(0, 1), "output element 1 is not aligned");
  says(copy_out_program(1, 0), "shared element 1 is not aligned");
  says(copy_out_program(40, 0), "shared elements 40 to 71 are outside");
  says(copy_out_program(0, kElements - 30), "output elements 226 to 257 are outside");
  says(copy_out_program(32, 0), "copy reads shared element 32");
  const auto illegal = [](const std::function<void(Program&, CopyOut&)>& change) {
    Program program = copy_out_program(0, 0);
    for (Instr& instr : program.launches[0].body.body) {
      if (auto* copy = std::get_if<CopyOut>(&instr.op)) change(program, *copy);
    }
    EXPECT_THROW(verify(program), InternalError);
  };
  illegal([](Program& p, CopyOut&) { p.launches[0].bulk_copies = false; });
  illegal([](Program& p, CopyOut&) { p.buffers[1].alignment = 8; });
  Program waits = start();
  Builder(waits).copy_out_wait();
  EXPECT_THROW(verify(waits), InternalError) << "lanes copy nothing out";
  illegal([](Program& p, CopyOut&) { p.launches[0].shared[0].type = DType::u64; });
  illegal([](Program&, CopyOut& copy) { copy.buffer = 0; });
  illegal([](Program&, CopyOut& copy) { copy.elements = 33; });
  illegal([](Program&, CopyOut& copy) { copy.array = 1; });
  illegal([](Program& p, CopyOut& copy) {
    copy.first = static_cast<ValueId>(p.values.size());
    p.values.push_back(lane(DType::i64));
  });
}

}  // namespace
}  // namespace chainfold::codegen
