// Blocks that publish a slot on behalf of another one which is late: Overdue and Publish::helps,
// under every schedule and compiled for the CPU.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

using codegen::Buffer;
using codegen::BufferRole;
using codegen::Builder;
using codegen::InterpBuffer;
using codegen::Op;
using codegen::Program;
using codegen::SizeExpr;
using codegen::ValueId;
using Values = Builder::Values;

constexpr int kY = 0, kRecords = 1, kCounter = 2;
constexpr std::int64_t kBlocks = 9;

struct Helping {
  std::int64_t off = 0;         ///< what a helper's value has too much
  std::int64_t ticket_off = 0;  ///< the same of the ticket it names
  bool some_never = false;      ///< even tickets publish nothing themselves
  bool under_ticket = true;     ///< of the block, else under its number
  DType type = DType::i64;      ///< what Overdue says that slots carry
};

/// Tile t carries 100 + t, and stores what the tile before it carries; who finds that late
/// publishes it.
Program helping_program(const Helping& how = {}) {
  Program program;
  program.name = "helping";
  program.buffers = {{"y", DType::i64, BufferRole::output, 0, 16, {}},
                     {"records", DType::i64, BufferRole::scratch, 0, 16, SizeExpr(64)},
                     {"counter", DType::i64, BufferRole::scratch, 1, 16, SizeExpr(32)}};
  program.launches.push_back({.name = "start", .grid = 1});
  {
    Builder b(program);
    for (const std::int64_t at : {0, 32}) b.store(kRecords, {b.i64(at)}, b.i64(0));
    b.store(kCounter, {b.i64(0)}, b.i64(0));
  }
  program.launches.push_back({.name = "work", .grid = kBlocks});
  Builder b(program);
  const ValueId ticket = b.ticket(kCounter), one = b.i64(1), before = b.sub(ticket, one);
  const auto when = [&](ValueId condition, const std::function<void()>& body) {
    b.branch(
        condition,
        [&] {
          body();
          return Values{};
        },
        [] { return Values{}; });
  };
  const ValueId has_before = b.compute(Op::gt, {ticket, b.i64(0)});
  const auto carried = [&](ValueId of) { return b.splat(b.add(of, b.i64(100))); };
  when(has_before, [&] {
    const ValueId late = b.overdue({.flags = kRecords,
                                    .first = before,
                                    .count = one,
                                    .ticket = how.under_ticket ? ticket : b.block(),
                                    .publisher = before,
                                    .stride = one,
                                    .looks = 3,
                                    .types = {how.type}});
    when(b.lt(late, one), [&] {
      b.publish(kRecords, before, b.add(before, b.i64(how.ticket_off)),
                {b.add(carried(before), b.splat(b.i64(how.off)))}, true);
    });
  });
  const auto publish = [&] { b.publish(kRecords, ticket, ticket, {carried(ticket)}); };
  if (how.some_never) {
    when(b.compute(Op::eq, {b.compute(Op::bit_and, {ticket, one}), one}), publish);
  } else {
    publish();
  }
  when(has_before, [&] {
    const Values values = b.await({.flags = kRecords,
                                   .first = before,
                                   .count = one,
                                   .ticket = ticket,
                                   .publisher = before,
                                   .stride = one},
                                  {DType::i64});
    b.store(kY, {b.mul(ticket, b.i64(32))}, values[0]);
  });
  return program;
}

std::string run(const Program& program, std::size_t turn) {
  alignas(16) std::array<std::int64_t, 32 * kBlocks> y{};
  alignas(16) std::array<std::int64_t, 64> records{};
  alignas(16) std::array<std::int64_t, 32> counter{};
  const std::array<InterpBuffer, 3> buffers{
      {{y.data(), 32 * kBlocks}, {records.data(), 64}, {counter.data(), 32}}};
  try {
    interpret(program, buffers, {}, options_of(turn));
  } catch (const InternalError& error) {
    return error.what();
  }
  for (std::size_t t = 1; t < kBlocks; ++t)
    EXPECT_EQ(y[32 * t], 100 + static_cast<std::int64_t>(t) - 1) << "tile " << t;
  return "";
}

constexpr std::size_t kTurns = 24;

TEST(Help, SlotsThatAreLateArePublishedByOthers) {
  for (const bool some_never : {false, true}) {
    const Program program = helping_program({.some_never = some_never});
    verify(program);
    for (std::size_t turn = 0; turn < kTurns; ++turn) EXPECT_EQ(run(program, turn), "");
  }
}

/// Even tiles never publish, so that whoever waits for one of them has helped.
TEST(Help, CompiledCodeGivesUpAndHelps) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  const Program program = helping_program({.some_never = true});
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<GuardedArray> arrays;
    for (const std::int64_t count : {32 * kBlocks, std::int64_t{64}, std::int64_t{32}}) {
      const GuardedArray& array = arrays.emplace_back(DType::i64, count);
      for (std::int64_t i = 0; i < count; ++i) array.set(i, 0);
    }
    ASSERT_EQ(difference(program, arrays, {}), "");
  }
}

/// Some schedules show it, whatever the values are worth.
TEST(HelpFinds, OtherValuesAndOtherTickets) {
  const auto expect_found = [](const Helping& how, const std::string& part) {
    const Program program = helping_program(how);
    verify(program);
    std::size_t found = 0;
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      const std::string error = run(program, turn);
      if (error.empty()) continue;
      EXPECT_NE(error.find(part), std::string::npos) << error;
      ++found;
    }
    EXPECT_GT(found, 0U) << part;
  };
  expect_found({.off = 1}, "is published with other values");
  expect_found({.ticket_off = -1}, "published under ticket");
}

TEST(HelpVerify, ALookNeedsATicketAndTheTypesOfItsSlots) {
  const auto expect_refused = [](const Helping& how, const std::string& rule) {
    try {
      verify(helping_program(how));
      ADD_FAILURE() << rule;
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find(rule), std::string::npos) << error.what();
    }
  };
  expect_refused({.under_ticket = false}, "a look needs a ticket that the block has taken");
  expect_refused({.type = DType::f32}, "all slots of a buffer carry values of the same types");
  Program bare = helping_program();
  codegen::Builder b(bare);
  b.publish(kRecords, b.i64(0), b.i64(0), {}, true);
  EXPECT_THROW(verify(bare), InternalError);
}

TEST(HelpPrint, SaysWhoHelpsAndHowOftenItLooks) {
  const std::string text = print(helping_program());
  EXPECT_NE(text.find(" = overdue records[%"), std::string::npos) << text;
  EXPECT_NE(text.find(", looks 3 : uniform<i64>"), std::string::npos) << text;
  EXPECT_NE(text.find(", helps\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace chainfold::test
