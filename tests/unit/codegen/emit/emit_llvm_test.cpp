// The LLVM emitter's text: what must and must not stand in it, and which programs it refuses.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/emit/llvm/llvm.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/verify.hpp"

namespace chainfold::codegen {
namespace {

/// A launch over an f32 input and an f32 output.
Program copy_program() {
  Program program;
  program.name = "test";
  program.buffers = {{"x", DType::f32, BufferRole::input, 0, 16, 0},
                     {"y", DType::f32, BufferRole::output, 0, 4, 0}};
  program.params = {{"count", DType::i64, ParamRole::segments, 0},
                    {"flag", DType::boolean, ParamRole::user, 0}};
  program.launches.push_back({.name = "copy", .grid = 1, .warps = 1});
  return program;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string message_of(const Program& program) {
  try {
    emit_llvm(program);
  } catch (const InternalError& error) {
    return error.what();
  }
  return {};
}

TEST(EmitLlvm, OneFunctionALaunchInTheirOrder) {
  Program program = copy_program();
  program.launches.push_back({.name = "again", .grid = 1, .warps = 1});
  const LlvmSource source = emit_llvm(program);
  EXPECT_EQ(source.symbols, (std::vector<std::string>{"copy", "again"}));
  EXPECT_TRUE(contains(source.text, "define void @copy(i64 %begin, i64 %end, ptr %args)"));
  EXPECT_TRUE(contains(source.text, "define void @again(i64 %begin, i64 %end, ptr %args)"));
}

TEST(EmitLlvm, StreamsAreAPropertyOfTheLoopOverBlocks) {
  Program program = copy_program();
  const std::string in_order = emit_llvm(program).text;
  EXPECT_TRUE(contains(in_order, "%block = phi i64 [ %begin, %entry ]"));
  EXPECT_FALSE(contains(in_order, "%strand"));
  program.launches[0].streams = {.count = 4, .least = 70};
  const std::string in_turn = emit_llvm(program).text;
  EXPECT_TRUE(contains(in_turn, "%turn = phi i64 [ 0, %entry ]"));
  EXPECT_TRUE(contains(in_turn, "%strand = and i64 %turn, 3"));
  EXPECT_TRUE(contains(in_turn, "%round = lshr i64 %turn, 2"));
  EXPECT_TRUE(contains(in_turn, "%long = icmp sge i64 %count, 70"));
}

TEST(EmitLlvm, ArgumentsComeFromSlotsOfEightBytes) {
  const std::string text = emit_llvm(copy_program()).text;
  EXPECT_TRUE(contains(text, "%param0.slot = getelementptr i64, ptr %args, i64 2"));
  EXPECT_TRUE(contains(text, "%param1.byte.slot = getelementptr i64, ptr %args, i64 3"));
  EXPECT_TRUE(contains(text, "%param1 = icmp ne i8 %param1.byte, 0"));
}

// A row of 128 bytes on two lines, 1024 elements behind and 96 before what is read.
TEST(EmitLlvm, AsksForEveryLineOfWhatIsReadAhead) {
  for (const std::int64_t ahead : {1024, -96, 0}) {
    Program program = copy_program();
    Builder b(program);
    b.store(1, {b.i64(0)},
            b.load(0, {b.i64(64)}, 1, kNoValue, ahead == 0 ? kNoValue : b.i64(ahead)));
    const std::string text = emit_llvm(program).text;
    EXPECT_EQ(contains(text, "@llvm.prefetch.p0(ptr %t"), ahead != 0) << text;
    if (ahead == 0) continue;
    EXPECT_TRUE(contains(text, ", i64 " + std::to_string(ahead) + "\n")) << text;
    for (const std::int64_t line : {0, 64})
      EXPECT_TRUE(contains(text, "getelementptr i8, ptr %t")) << text << line;
  }
}

// Four runs of 32 bytes that begin 40 bytes after each other: three lines, and the first run's
// line is the second one's, too.
TEST(EmitLlvm, AsksOnceForTheLinesThatRunsShare) {
  Program program = copy_program();
  Builder b(program);
  const Address rows{.base = b.i64(64), .group = 8, .stride = 10};
  b.store(1, {b.i64(0)}, b.load(0, rows, 1, kNoValue, b.i64(1024)));
  const std::string text = emit_llvm(program).text;
  const std::string call = "call void @llvm.prefetch";
  int lines = 0;
  for (std::size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1))
    ++lines;
  EXPECT_EQ(lines, 3) << text;
  EXPECT_TRUE(contains(text, ", i64 1024\n")) << "from where each run's begin";
  EXPECT_TRUE(contains(text, ", i64 0\n")) << "of the first run";
  EXPECT_TRUE(contains(text, fmt::format(", i64 {}\n", 64 - 40))) << "of the second";
  EXPECT_TRUE(contains(text, fmt::format(", i64 {}\n", 128 - 120))) << "of the fourth";
}

TEST(EmitLlvm, OnlyInputsAreReadOnly) {
  const std::string text = emit_llvm(copy_program()).text;
  EXPECT_TRUE(contains(text, "ptr noalias nocapture readonly align 16 %buffer0"));
  EXPECT_TRUE(contains(text, "ptr noalias nocapture align 4 %buffer1"));
}

TEST(EmitLlvm, WhatMayBeOneMemoryIsNotSaidToBeTwo) {
  Program program = copy_program();
  program.in_place = true;
  const std::string text = emit_llvm(program).text;
  EXPECT_TRUE(contains(text, "ptr nocapture readonly align 16 %buffer0")) << text;
  EXPECT_TRUE(contains(text, "ptr nocapture align 4 %buffer1")) << text;
}

/// Other threads write it while the function runs.
TEST(EmitLlvm, ScratchOfBlocksThatWaitIsShared) {
  Program program = copy_program();
  program.buffers.push_back({"flags", DType::i32, BufferRole::scratch, 0, 4, 1});
  program.buffers.push_back({"counter", DType::i64, BufferRole::scratch, 1, 8, 1});
  program.launches.push_back({.name = "waits", .grid = 1, .warps = 1});
  Builder b(program);
  b.publish(2, b.i64(0), b.ticket(3));
  verify(program);
  const std::string text = emit_llvm(program).text;
  const std::string waits = text.substr(text.find("@waits.range"));
  EXPECT_TRUE(contains(waits, "ptr noalias nocapture readonly align 16 %buffer0")) << text;
  EXPECT_TRUE(contains(waits, "ptr nocapture align 4 %buffer2")) << text;
  EXPECT_FALSE(contains(text, "chainfold_yield")) << "nothing waits";
  EXPECT_TRUE(contains(text.substr(0, text.find("@waits.range")),
                       "ptr noalias nocapture align 4 %buffer2"));
}

TEST(EmitLlvm, GroupsAreRunsAndNeverGathers) {
  Program program = copy_program();
  Builder b(program);
  const ValueId mask = b.lt(b.lane(), b.i32(20));
  const ValueId base = b.block();
  for (const int group : {1, 2, 4, 8, 16, 32}) {
    const ValueId x = b.load(0, {base, group, 37}, 1, mask);
    b.store(1, {base, group, 64}, x, mask);
    b.store(1, {base, group, 64}, b.load(0, {base, group, 37}));
  }
  verify(program);
  const std::string text = emit_llvm(program).text;
  EXPECT_FALSE(contains(text, "gather"));
  EXPECT_FALSE(contains(text, "scatter"));
  EXPECT_TRUE(contains(text, "@llvm.masked.load.v8f32.p0"));
  EXPECT_TRUE(contains(text, "load <8 x float>"));
  EXPECT_TRUE(contains(text, "load <32 x float>"));
}

TEST(EmitLlvm, GroupsWithoutGapsAreOneRun) {
  Program program = copy_program();
  Builder b(program);
  b.store(1, {b.block()}, b.load(0, {b.block(), 4, 4}));
  const std::string text = emit_llvm(program).text;
  EXPECT_TRUE(contains(text, "load <32 x float>"));
  EXPECT_FALSE(contains(text, "load <4 x float>"));
}

TEST(EmitLlvm, LoadsKeepTheirOrder) {
  Program program = copy_program();
  Builder b(program);
  const ValueId x = b.load(0, {b.block()});
  b.store(1, {b.block()}, b.add(x, b.load(0, {b.add(b.block(), b.i64(32))})));
  const std::string text = emit_llvm(program).text;
  const std::size_t first = text.find("load <32 x float>"), last = text.rfind("load <32 x float>");
  const std::size_t fence = text.find("fence syncscope(\"singlethread\")", first);
  ASSERT_NE(first, last);
  EXPECT_LT(fence, last);
}

TEST(EmitLlvm, NoFastMathAndNoImplicitFusion) {
  Program program = copy_program();
  Builder b(program);
  const ValueId x = b.load(0, {b.block()});
  const ValueId y = b.compute(Op::fma, {x, x, b.add(b.mul(x, x), b.sub(x, b.div(x, x)))});
  b.store(1, {b.block()}, y);
  const std::string text = emit_llvm(program).text;
  for (const char* flag :
       {"fast", "nnan", "ninf", "nsz", "contract", "reassoc", "arcp", "afn", "fmuladd"})
    EXPECT_FALSE(contains(text, std::string(" ") + flag)) << flag;
  EXPECT_FALSE(contains(text, "fmuladd"));
  EXPECT_TRUE(contains(text, "@llvm.fma.v32f32"));
}

TEST(EmitLlvm, TextIsAPureFunctionOfTheProgram) {
  Program program = copy_program();
  Builder b(program);
  b.store(1, {b.block()}, b.compute(Op::min, {b.load(0, {b.block()}), b.constant(DType::f32, 0)}));
  EXPECT_EQ(emit_llvm(program).text, emit_llvm(program).text);
}

/// Spelled out, 32 divisions are as many blocks of scalar code.
TEST(EmitLlvm, IntegersOfLanesAreDividedByALoop) {
  Program program = copy_program();
  program.buffers[0].type = program.buffers[1].type = DType::u64;
  Builder b(program);
  const Address at{.base = b.block(), .group = kWarpWidth};
  const ValueId x = b.load(0, at);
  const auto all = [&](ValueId divisor) {
    return b.compute(Op::add, {b.compute(Op::div, {x, divisor}), b.compute(Op::rem, {x, divisor})});
  };
  const ValueId by_seven = all(b.constant(DType::u64, 7)), by_lanes = all(b.load(0, at));
  b.store(1, at, b.compute(Op::add, {by_seven, by_lanes}));
  const std::string text = emit_llvm(program).text;
  EXPECT_FALSE(contains(text, "div <32"));
  EXPECT_FALSE(contains(text, "rem <32"));
  for (const char* name : {"@chainfold.udiv.32.i64(", "@chainfold.urem.32.i64(",
                           "@chainfold.udiv.32.i64.by.7(", "@chainfold.urem.32.i64.by.7("})
    EXPECT_TRUE(contains(text, std::string("define internal <32 x i64> ") + name)) << name;
}

TEST(EmitLlvm, DivisionsByShortConstantsAreMultiplications) {
  Program program = copy_program();
  program.buffers[0].type = program.buffers[1].type = DType::u32;
  Builder b(program);
  const Address at{.base = b.block(), .group = kWarpWidth};
  b.store(1, at, b.compute(Op::div, {b.load(0, at), b.constant(DType::u32, 7)}));
  EXPECT_TRUE(contains(emit_llvm(program).text, "udiv <32 x i32>"));
}

TEST(EmitLlvm, RefusesSeveralWarps) {
  Program program = copy_program();
  program.launches[0].warps = 8;
  EXPECT_TRUE(contains(message_of(program), "launch copy has 8 warps a block"));
}

TEST(EmitLlvm, RefusesBlocksOfSeveralWarps) {
  Program program = copy_program();
  program.launches[0].warps = 2;
  EXPECT_TRUE(contains(message_of(program), "has 2 warps a block; the CPU runs one"));
}

TEST(EmitLlvm, RefusesCopiesBesideItsOwnWork) {
  Program program = copy_program();
  program.launches[0].shared.push_back({"tile", DType::f32, 128});
  program.launches[0].rings.push_back({"ring", 1});
  Builder b(program);
  b.copy_wait(0, b.i64(0), b.i64(0));
  EXPECT_TRUE(contains(message_of(program), "no copies beside its own work"));
}

TEST(EmitLlvm, RefusesMatrixInstructions) {
  Program program = copy_program();
  Builder b(program);
  const int row = find_mma(DType::f16, 80);
  ASSERT_GE(row, 0);
  const ConstMatrix zeros{.kind = MatrixKind::zeros};
  b.mma(b.const_fragment(row, Operand::a, {.kind = MatrixKind::ones}),
        b.pack(row, Operand::b,
               {{kNoValue, mma_table()[static_cast<std::size_t>(row)].elements(Operand::b)}}),
        b.const_fragment(row, Operand::c, zeros));
  EXPECT_TRUE(contains(message_of(program), "matrix instructions"));
}

}  // namespace
}  // namespace chainfold::codegen
