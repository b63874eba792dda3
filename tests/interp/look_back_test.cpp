// Waits between blocks: a scan under every schedule, what an Await shows and what stays a race,
// publishers that are not who was named, deadlocks, and the rules that exclude them.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/tests/support/look_back.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;
using Values = Builder::Values;

std::vector<InterpOptions> all_schedules(std::uint64_t seeds) {
  std::vector<InterpOptions> all;
  for (const int resident : {1, 2, 7}) {
    all.push_back({.schedule = Schedule::in_order, .resident_blocks = resident});
    all.push_back({.schedule = Schedule::reversed, .resident_blocks = resident});
    for (std::uint64_t seed = 0; seed < seeds; ++seed)
      all.push_back({.schedule = Schedule::random, .seed = seed, .resident_blocks = resident});
  }
  return all;
}

std::string words(const InterpOptions& options) {
  constexpr const char* kNames[] = {"in order", "reversed", "random"};
  return std::string(kNames[static_cast<int>(options.schedule)]) + ", seed " +
         std::to_string(options.seed) + ", " + std::to_string(options.resident_blocks) +
         " resident";
}

void expect_scan(const LookBack& shape, std::int64_t elements, const InterpOptions& options) {
  const Program program = look_back_program(shape);
  LookBackMemory memory(program, elements);
  ASSERT_NO_THROW(interpret(program, memory.buffers(program), memory.params, options))
      << words(options) << "\n"
      << print(program);
  EXPECT_EQ(memory.result(program), memory.expected) << words(options);
}

TEST(LookBack, SumsUnderEverySchedule) {
  for (const InterpOptions& options : all_schedules(3)) {
    expect_scan({.fan = 3, .levels = 4}, 70 * 32 + 5, options);
    expect_scan({.warps = 3, .fan = 4, .levels = 2}, 15 * 96 - 40, options);
  }
}

TEST(LookBack, SumsOverThreeLevelsOfWarps) {
  expect_scan({}, 1100 * 32 + 1, {.schedule = Schedule::random, .resident_blocks = 7});
}

TEST(LookBack, BlocksTakeSeveralTickets) {
  for (const InterpOptions& options : all_schedules(3)) {
    expect_scan({.fan = 4, .levels = 3, .rounds = 4}, 27 * 32, options);
    expect_scan({.warps = 2, .fan = 4, .levels = 2, .rounds = 3}, 14 * 64, options);
  }
}

TEST(LookBack, FitsIntoTheInputsMemory) {
  for (const InterpOptions& options : all_schedules(1))
    expect_scan({.warps = 2, .fan = 4, .in_place = true}, 20 * 64 + 3, options);
}

/// What the sums rest on: the same program without its waits.
TEST(LookBack, FailsWithoutWaits) {
  Program program = look_back_program({.fan = 4, .levels = 2});
  const std::function<void(Region&)> remove = [&](Region& region) {
    std::erase_if(region.body,
                  [](const Instr& instr) { return std::holds_alternative<Await>(instr.op); });
    for (Instr& instr : region.body) for_each_region(instr.op, remove);
  };
  remove(program.launches[1].body);
  verify(program);
  for (const InterpOptions& options : all_schedules(2)) {
    LookBackMemory memory(program, 12 * 32);
    EXPECT_THROW(interpret(program, memory.buffers(program), memory.params, options),
                 InternalError);
  }
}

TEST(LookBack, NothingAtAll) { expect_scan({}, 0, {}); }

// --- small programs

constexpr int kY = 0, kSums = 1, kFlags = 2, kCounter = 3, kBlocks = 5;

struct Tile {
  Builder& b;
  ValueId ticket;
  Values nothing(const std::function<void()>& fn) const {
    fn();
    return {};
  }
  void when(ValueId condition, const std::function<void()>& fn) const {
    b.branch(condition, [&] { return nothing(fn); }, [] { return Values{}; });
  }
  [[nodiscard]] ValueId at(ValueId tile) const { return b.mul(tile, b.i64(32)); }
  [[nodiscard]] ValueId before(int distance) const { return b.sub(ticket, b.i64(distance)); }
  [[nodiscard]] ValueId has_before(int distance) const {
    return b.compute(Op::ge, {ticket, b.i64(distance)});
  }
  void store_own() const { b.store(kSums, {at(ticket)}, b.convert(b.lane(), DType::i64)); }
  void publish() const { b.publish(kFlags, ticket, ticket); }
  /// Waits for the one tile that lies `distance` before this, claimed to be published under the
  /// ticket `late` after its own.
  void await(int distance, int late = 0) const {
    b.await({.flags = kFlags,
             .first = before(distance),
             .count = b.i64(1),
             .ticket = ticket,
             .publisher = before(distance - late),
             .stride = b.i64(1)});
  }
  void copy(int distance) const {
    b.store(kY, {at(ticket)}, b.load(kSums, {at(before(distance))}));
  }
};

/// `body` in each of kBlocks blocks of one warp, behind a launch that sets flags and counter.
Program small_program(const std::function<void(const Tile&)>& body, int flag = 0, int counter = 0) {
  Program program;
  program.name = "small";
  program.buffers = {{"y", DType::i64, BufferRole::output, 0, 16, {}},
                     {"sums", DType::i64, BufferRole::scratch, 0, 16, SizeExpr(1024)},
                     {"flags", DType::i32, BufferRole::scratch, 1, 16, SizeExpr(32)},
                     {"counter", DType::i64, BufferRole::scratch, 2, 16, SizeExpr(32)}};
  program.launches.push_back({.name = "start", .grid = 1});
  {
    Builder b(program);
    b.store(kFlags, {b.i64(0)}, b.i32(flag));
    b.store(kCounter, {b.i64(0)}, b.i64(counter));
  }
  program.launches.push_back({.name = "work", .grid = kBlocks});
  Builder b(program);
  body({b, b.ticket(kCounter)});
  return program;
}

void run(const Program& program, const InterpOptions& options) {
  alignas(16) std::array<std::int64_t, 1024> y{}, sums{};
  alignas(16) std::array<std::int64_t, 32> counter{};
  alignas(16) std::array<std::int32_t, 32> flags{};
  const std::array<InterpBuffer, 4> buffers{
      {{y.data(), 1024}, {sums.data(), 1024}, {flags.data(), 32}, {counter.data(), 32}}};
  interpret(program, buffers, {}, options);
}

/// All schedules find the error; its message holds one of `parts`.
void expect_error(const Program& program, const std::vector<std::string>& parts) {
  verify(program);
  for (const InterpOptions& options : all_schedules(4)) {
    try {
      run(program, options);
      ADD_FAILURE() << "no error, " << words(options) << ", in:\n" << print(program);
    } catch (const InternalError& error) {
      bool found = false;
      for (const std::string& part : parts)
        found = found || std::string(error.what()).find(part) != std::string::npos;
      EXPECT_TRUE(found) << words(options) << ": " << error.what();
    }
  }
}

TEST(Await, ShowsWhatWasStoredBeforeThePublication) {
  const Program program = small_program([](const Tile& t) {
    t.store_own();
    t.publish();
    t.when(t.has_before(2), [&] {
      t.await(2);
      t.copy(2);
    });
  });
  verify(program);
  for (const InterpOptions& options : all_schedules(8)) EXPECT_NO_THROW(run(program, options));
}

/// Also where the slot lies nowhere, and is never published.
TEST(Await, DoesNotWaitForLaterTicketsNorForItsOwn) {
  const Program program = small_program([](const Tile& t) {
    t.await(-1);
    t.await(-100);
    t.await(0);
    t.publish();
  });
  verify(program);
  for (const InterpOptions& options : all_schedules(4)) EXPECT_NO_THROW(run(program, options));
}

TEST(AwaitFinds, ReadsOfALaterTile) {
  expect_error(small_program([](const Tile& t) {
                 t.store_own();
                 t.publish();
                 t.await(-1);
                 t.when(t.b.lt(t.ticket, t.b.i64(kBlocks - 1)), [&] { t.copy(-1); });
               }),
               {"a race: ", "it was never written"});
}

TEST(AwaitFinds, ReadsOfASlotThatWasNotAwaited) {
  const auto waiting_for = [](int distance) {
    return small_program([distance](const Tile& t) {
      t.store_own();
      t.publish();
      t.when(t.has_before(2), [&] {
        if (distance > 0) t.await(distance);
        t.copy(2);
      });
    });
  };
  expect_error(waiting_for(0), {"a race: block ", "it was never written"});
  // That the tile between may have seen it shows nothing to this one.
  expect_error(waiting_for(1), {"a race: block ", "it was never written"});
}

TEST(AwaitFinds, ReadsOfWhatWasStoredBehindThePublication) {
  expect_error(small_program([](const Tile& t) {
                 t.publish();
                 t.store_own();
                 t.when(t.has_before(1), [&] {
                   t.await(1);
                   t.copy(1);
                 });
               }),
               {"a race: block ", "it was never written"});
}

/// Blocks of one warp whose slots carry (the lanes' sum of) values of several sizes: a tile writes
/// to y what the tile before it published.
Program carrying_program(const std::function<void(const Tile&, const Values&)>& use,
                         const std::vector<DType>& awaited) {
  Program program;
  program.name = "carrying";
  const RecordLayout layout =
      record_layout(std::vector{DType::f32, DType::i64, DType::u8, DType::f32});
  program.buffers = {
      {"y", DType::i64, BufferRole::output, 0, 16, {}},
      {"sums", DType::i64, BufferRole::scratch, 0, 16, SizeExpr(1024)},
      {"records", DType::i64, BufferRole::scratch, 1, 16, SizeExpr(32 * layout.elements())},
      {"counter", DType::i64, BufferRole::scratch, 2, 16, SizeExpr(32)}};
  program.launches.push_back({.name = "start", .grid = 1});
  {
    Builder b(program);
    for (std::int64_t at = 0; at < kBlocks * layout.elements(); at += kWarpWidth)
      b.store(kFlags, {b.i64(at)}, b.i64(0));
    b.store(kCounter, {b.i64(0)}, b.i64(0));
  }
  program.launches.push_back({.name = "work", .grid = kBlocks});
  Builder b(program);
  const Tile t{b, b.ticket(kCounter)};
  b.store(kSums, {t.at(t.ticket)}, b.convert(b.lane(), DType::i64));
  b.publish(kFlags, t.ticket, t.ticket,
            {b.convert(b.add(t.ticket, b.i64(7)), DType::f32), b.mul(t.ticket, b.i64(-5)),
             b.convert(b.lane(), DType::u8), b.splat(b.constant(DType::f32, 0x3f800000))});
  t.when(t.has_before(1), [&] {
    use(t, b.await({.flags = kFlags,
                    .first = t.before(1),
                    .count = b.i64(1),
                    .ticket = t.ticket,
                    .publisher = t.before(1),
                    .stride = b.i64(1)},
                   awaited));
  });
  return program;
}

const std::vector<DType> kCarriedTypes = {DType::f32, DType::i64, DType::u8, DType::f32};

TEST(RecordLayouts, PackValuesIntoWords) {
  const RecordLayout layout = record_layout(kCarriedTypes);
  ASSERT_EQ(layout.words, 3);  // f32 alone, since 8 bytes do not fit behind it; i64; u8 and f32
  EXPECT_EQ(layout.elements(), 6);
  const int words[] = {0, 1, 2, 2}, shifts[] = {0, 0, 0, 32};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(layout.fields[i].word, words[i]) << i;
    EXPECT_EQ(layout.fields[i].shift, shifts[i]) << i;
  }
}

TEST(Await, GivesWhatTheSlotsCarry) {
  const Program program = carrying_program(
      [](const Tile& t, const Values& values) {
        Builder& b = t.b;
        // 1000 (ticket - 1 + 7) + -5 (ticket - 1) + 0 (lane 0's) + 1; zeros in the other lanes.
        ValueId sum = b.mul(b.convert(values[0], DType::i64), b.i64(1000));
        for (std::size_t i = 1; i < values.size(); ++i)
          sum = b.add(sum, b.convert(values[i], DType::i64));
        b.store(kY, {t.at(t.ticket)}, sum);
      },
      kCarriedTypes);
  verify(program);
  for (const InterpOptions& options : all_schedules(4)) {
    alignas(16) std::array<std::int64_t, 1024> y{}, sums{};
    alignas(16) std::array<std::int64_t, 32> counter{};
    alignas(16) std::array<std::int64_t, 192> records;
    records.fill(-1);
    const std::array<InterpBuffer, 4> buffers{
        {{y.data(), 1024}, {sums.data(), 1024}, {records.data(), 192}, {counter.data(), 32}}};
    interpret(program, buffers, {}, options);
    for (std::int64_t tile = 1; tile < kBlocks; ++tile) {
      for (std::int64_t lane = 0; lane < kWarpWidth; ++lane) {
        const std::int64_t before = tile - 1;
        EXPECT_EQ(y[static_cast<std::size_t>(tile * kWarpWidth + lane)],
                  lane > 0 ? 0 : 1000 * (before + 7) - 5 * before + 1);
      }
    }
  }
}

/// Values arrive with their mark; what was stored elsewhere does not.
TEST(AwaitFinds, ReadsOfWhatWasStoredBesideCarriedValues) {
  const Program program =
      carrying_program([](const Tile& t, const Values&) { t.copy(1); }, kCarriedTypes);
  verify(program);
  bool found = false;
  for (const InterpOptions& options : all_schedules(4)) {
    alignas(16) std::array<std::int64_t, 1024> y{}, sums{};
    alignas(16) std::array<std::int64_t, 32> counter{};
    alignas(16) std::array<std::int64_t, 192> records{};
    const std::array<InterpBuffer, 4> buffers{
        {{y.data(), 1024}, {sums.data(), 1024}, {records.data(), 192}, {counter.data(), 32}}};
    try {
      interpret(program, buffers, {}, options);
    } catch (const InternalError& error) {
      found = true;
      EXPECT_NE(std::string(error.what()).find("a race: block "), std::string::npos)
          << error.what();
    }
  }
  EXPECT_TRUE(found);
}

TEST(AwaitFinds, AnotherPublisherThanTheOneNamed) {
  expect_error(small_program([](const Tile& t) {
                 t.publish();
                 t.when(t.has_before(2), [&] { t.await(2, 1); });
               }),
               {"slot 0 was published under ticket 0, not 1", "published under ticket "});
  expect_error(small_program([](const Tile& t) {
                 t.publish();
                 t.await(0, -7);
               }),
               {"there is no ticket -"});
}

TEST(AwaitFinds, Deadlocks) {
  const Program program = small_program([](const Tile& t) {
    t.when(t.b.compute(Op::ne, {t.ticket, t.b.i64(1)}), [&] { t.publish(); });
    t.when(t.has_before(2), [&] { t.await(1); });
  });
  expect_error(program, {"a deadlock: no block can publish slots 1, which it waits for"});
}

TEST(AwaitFinds, MoreSlotsThanLanes) {
  expect_error(small_program([](const Tile& t) {
                 t.b.await({kFlags, t.b.i64(0), t.b.i64(33), t.ticket, t.b.i64(0), t.b.i64(1)});
               }),
               {"waits for 33 slots"});
}

TEST(AwaitFinds, SlotsAndCountersThatDoNotBeginAtZero) {
  const auto publishes = [](const Tile& t) { t.publish(); };
  expect_error(small_program(publishes, 1), {"was not 0 when the launch started"});
  expect_error(
      small_program([](const Tile& t) { t.when(t.has_before(1), [&] { t.await(1); }); }, 1),
      {"was not 0 when the launch started"});
  expect_error(small_program(publishes, 0, 3), {"the counter is 3 after 0 tickets"});
  Program unset = small_program(publishes);
  unset.launches.erase(unset.launches.begin());
  expect_error(unset, {"it was never written"});
}

TEST(PublishFinds, ASecondTimeAndPlacesOutside) {
  expect_error(small_program([](const Tile& t) {
                 t.publish();
                 t.publish();
               }),
               {"is published a second time"});
  expect_error(small_program([](const Tile& t) {
                 t.b.publish(kFlags, t.b.add(t.ticket, t.b.i64(32)), t.ticket);
               }),
               {"is outside of [0, 32)"});
}

// --- rules

void expect_refused(const Program& program, const std::string& rule) {
  try {
    verify(program);
    ADD_FAILURE() << "accepted:\n" << print(program);
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(rule), std::string::npos) << error.what();
  }
}

TEST(LookBackVerify, AWaitNeedsATicketThatWasTaken) {
  const auto waits_with = [](const std::function<ValueId(const Tile&)>& ticket) {
    return small_program([&](const Tile& t) {
      t.b.await({kFlags, t.b.i64(0), t.b.i64(1), ticket(t), t.b.i64(0), t.b.i64(1)});
    });
  };
  const std::string rule = "a wait needs a ticket that the block has taken";
  expect_refused(waits_with([](const Tile& t) { return t.b.add(t.ticket, t.b.i64(1)); }), rule);
  expect_refused(waits_with([](const Tile& t) { return t.b.block(); }), rule);
  expect_refused(waits_with([](const Tile& t) { return t.b.i64(7); }), rule);
  EXPECT_NO_THROW(verify(waits_with([](const Tile& t) { return t.ticket; })));
  // An earlier ticket waits for less.
  EXPECT_NO_THROW(verify(waits_with([](const Tile& t) {
    t.b.ticket(kCounter);
    return t.ticket;
  })));
}

/// Otherwise two blocks could wait for what each other publishes late.
TEST(LookBackVerify, ASlotIsPublishedBeforeItsBlockWaitsUnderALaterTicket) {
  const std::string later = "before its block waits under a later ticket";
  const std::string unknown = "published under a ticket of the block";
  const auto waits_under = [](const Tile& t, ValueId ticket) {
    t.b.await({kFlags, t.b.i64(0), t.b.i64(1), ticket, t.b.i64(0), t.b.i64(1)});
  };
  EXPECT_NO_THROW(verify(small_program([](const Tile& t) {
    t.b.ticket(kCounter);
    t.publish();
  })));
  EXPECT_NO_THROW(verify(small_program([&](const Tile& t) {
    const ValueId second = t.b.ticket(kCounter);
    waits_under(t, t.ticket);
    t.publish();
    t.b.publish(kFlags, second, second);
    waits_under(t, second);
  })));
  expect_refused(small_program([&](const Tile& t) {
                   waits_under(t, t.b.ticket(kCounter));
                   t.publish();
                 }),
                 later);
  // On some paths is enough.
  expect_refused(small_program([&](const Tile& t) {
                   const ValueId second = t.b.ticket(kCounter);
                   t.when(t.has_before(1), [&] { waits_under(t, second); });
                   t.publish();
                 }),
                 later);
  expect_refused(small_program([&](const Tile& t) {
                   t.when(t.has_before(1), [&] { waits_under(t, t.b.ticket(kCounter)); });
                   t.publish();
                 }),
                 later);
  expect_refused(small_program([](const Tile& t) { t.b.publish(kFlags, t.ticket, t.b.block()); }),
                 unknown);
  expect_refused(small_program([](const Tile& t) {
                   const ValueId next = t.b.branch_uniform(
                       t.has_before(1), [&] { return t.b.ticket(kCounter); },
                       [&] { return t.b.i64(7); });
                   t.b.publish(kFlags, next, next);
                 }),
                 unknown);
}

/// Tickets that a loop carries: those of its next rounds come later.
TEST(LookBackVerify, LoopsHandTicketsOn) {
  const std::string later = "before its block waits under a later ticket";
  enum class Order { published_first, waits_first, waits_under_next, takes_none, swaps };
  const auto loop = [](Order order) {
    return small_program([order](const Tile& t) {
      Builder& b = t.b;
      const auto wait = [&](ValueId ticket) {
        b.await({kFlags, b.i64(0), b.i64(1), ticket, b.i64(0), b.i64(1)});
      };
      const ValueId second = b.ticket(kCounter);
      b.loop(b.i64(0), b.i64(3), b.i64(1), {t.ticket, second},
             [&](ValueId index, const Values& carried) {
               const ValueId last = carried[0], next = carried[1];
               if (order == Order::waits_first) wait(next);
               b.publish(kFlags, last, last);
               if (order == Order::waits_under_next) wait(next);
               if (order != Order::waits_first) wait(last);
               const ValueId taken = b.branch_uniform(
                   b.lt(index, b.i64(1)), [&] { return b.ticket(kCounter); },
                   [&] { return order == Order::takes_none ? last : next; });
               if (order == Order::swaps) return Values{taken, next};
               return Values{next, taken};
             });
    });
  };
  EXPECT_NO_THROW(verify(loop(Order::published_first)));
  EXPECT_NO_THROW(verify(loop(Order::waits_under_next)));  // it is the next round's own
  expect_refused(loop(Order::waits_first), later);
  // The ticket of a later round may then be one from before what was waited under.
  expect_refused(loop(Order::takes_none), later);
  expect_refused(loop(Order::swaps), later);
}

TEST(LookBackVerify, BehindALoopTheLastTicketIsKnown) {
  const auto behind = [](bool publishes_first) {
    return small_program([publishes_first](const Tile& t) {
      Builder& b = t.b;
      const ValueId last =
          b.loop(b.i64(0), b.i64(3), b.i64(1), {t.ticket}, [&](ValueId, const Values& carried) {
            b.await({kFlags, b.i64(0), b.i64(1), carried[0], b.i64(0), b.i64(1)});
            return Values{b.ticket(kCounter)};
          })[0];
      const ValueId published = publishes_first ? t.ticket : last;
      b.publish(kFlags, published, published);
    });
  };
  EXPECT_NO_THROW(verify(behind(false)));
  expect_refused(behind(true), "before its block waits under a later ticket");
}

TEST(LookBackVerify, TicketsComeFromOneCounter) {
  Program program = small_program([](const Tile& t) { t.b.ticket(kCounter); });
  program.buffers.push_back({"other", DType::i64, BufferRole::scratch, 3, 16, SizeExpr(32)});
  Builder b(program);
  b.ticket(4);
  expect_refused(program, "tickets from one counter");
}

TEST(LookBackVerify, CountersAndSlotsHaveNoOtherUse) {
  const std::string rule = "counters by tickets alone, slots by publish and await alone";
  expect_refused(small_program([](const Tile& t) {
                   t.publish();
                   t.b.store(kY, {t.at(t.ticket)},
                             t.b.convert(t.b.load(kFlags, {t.b.i64(0)}), DType::i64));
                 }),
                 rule);
  expect_refused(
      small_program([](const Tile& t) { t.b.store(kCounter, {t.b.i64(0)}, t.b.i64(0)); }), rule);
  const std::string type = "counters and records are scratch of i64, slots scratch of i32";
  expect_refused(small_program([](const Tile& t) { t.b.ticket(kY); }), type);
  expect_refused(small_program([](const Tile& t) { t.b.ticket(kFlags); }), type);
  expect_refused(small_program([](const Tile& t) { t.b.publish(kSums, t.ticket, t.ticket); }),
                 type);
  expect_refused(small_program([](const Tile& t) { t.b.publish(kFlags, t.b.warp(), t.ticket); }),
                 "slots and tickets are uniform i64");
}

TEST(LookBackVerify, SlotsCarryValuesOfTheSameTypes) {
  expect_refused(carrying_program([](const Tile&, const Values&) {}, {DType::f32, DType::i64}),
                 "all slots of a buffer carry values of the same types");
}

TEST(LookBackVerify, ATicketIsABarrier) {
  Program program = small_program([](const Tile& t) {
    t.when(t.b.any(t.b.lt(t.b.lane(), t.b.i32(3))), [&] { t.b.ticket(kCounter); });
  });
  program.launches[1].warps = 2;
  expect_refused(program, "a barrier stands where warps of a block may differ");
}

TEST(LookBackPrint, NamesBuffersSlotsAndPublishers) {
  const std::string text = print(small_program([](const Tile& t) {
    t.publish();
    t.await(1);
  }));
  EXPECT_NE(text.find(" = ticket counter : uniform<i64>\n"), std::string::npos) << text;
  EXPECT_NE(text.find("publish flags[%"), std::string::npos) << text;
  EXPECT_NE(text.find("await flags[%"), std::string::npos) << text;
  EXPECT_NE(print(look_back_program({.in_place = true})).find("program look_back, in place\n"),
            std::string::npos);
}

// --- in place

Program twice(bool in_place, bool late) {
  Program program;
  program.name = "twice";
  program.in_place = in_place;
  program.buffers = {{"x", DType::f32, BufferRole::input, 0, 16, {}},
                     {"y", DType::f32, BufferRole::output, 0, 16, {}}};
  program.launches.push_back({.name = "work", .grid = 2});
  Builder b(program);
  const Address at{b.mul(b.block(), b.i64(32))};
  const ValueId x = b.load(0, at);
  b.store(1, at, b.add(x, late ? b.load(0, at) : x));
  if (late) b.store(1, at, b.add(x, b.load(0, at)));
  verify(program);
  return program;
}

TEST(InPlace, LoadsComeBeforeStores) {
  alignas(16) std::array<float, 64> x{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::array<InterpBuffer, 2> same{{{x.data(), 64}, {x.data(), 64}}};
  interpret(twice(true, false), same, {});
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], 2 * static_cast<float>(i));
  EXPECT_THROW(interpret(twice(true, true), same, {}), InternalError);
  alignas(16) std::array<float, 64> y{};
  EXPECT_NO_THROW(interpret(twice(true, true),
                            std::array<InterpBuffer, 2>{{{x.data(), 64}, {y.data(), 64}}}, {}));
}

TEST(InPlace, MemoryIsSharedAsAWholeAndOnlyThere) {
  alignas(16) std::array<float, 96> x{};
  EXPECT_THROW(interpret(twice(false, false),
                         std::array<InterpBuffer, 2>{{{x.data(), 64}, {x.data(), 64}}}, {}),
               InternalError);
  EXPECT_THROW(interpret(twice(true, false),
                         std::array<InterpBuffer, 2>{{{x.data(), 64}, {x.data() + 32, 64}}}, {}),
               InternalError);
}

/// What one block stores, another still loads.
TEST(InPlace, FindsStoresIntoAnotherBlocksTile) {
  Program program = twice(true, false);
  Launch& launch = program.launches[0];
  launch.body.body.clear();
  Builder b(program);
  const ValueId at = b.mul(b.block(), b.i64(32));
  b.store(1, {b.sub(b.i64(32), at)}, b.load(0, {at}));
  verify(program);
  for (const InterpOptions& options : all_schedules(2)) {
    alignas(16) std::array<float, 64> x{};
    EXPECT_THROW(interpret(program, std::array<InterpBuffer, 2>{{{x.data(), 64}, {x.data(), 64}}},
                           {}, options),
                 InternalError);
  }
}

// --- shuffles

TEST(ShuffleUpAndDown, TakeTheNeighboursOrKeepTheirOwn) {
  Program program;
  program.name = "shuffles";
  program.buffers = {{"x", DType::i16, BufferRole::input, 0, 16, {}},
                     {"y", DType::i16, BufferRole::output, 0, 16, {}}};
  program.launches.push_back({.name = "work", .grid = 1});
  Builder b(program);
  const ValueId x = b.load(0, {b.i64(0)}, 2);
  EXPECT_EQ(b.shuffle_up(x, 0), x);
  for (int d = 1; d < kWarpWidth; ++d) {
    b.store(1, {b.i64(128 * d)}, b.shuffle_up(x, d));
    b.store(1, {b.i64(128 * d + 64)}, b.shuffle_down(x, d));
  }
  verify(program);
  EXPECT_NE(print(program).find(", lane - 5 : "), std::string::npos) << print(program);
  alignas(16) std::array<std::int16_t, 64> in{};
  alignas(16) std::array<std::int16_t, std::size_t{128} * 32> out{};
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::int16_t>(i);
  interpret(program,
            std::array<InterpBuffer, 2>{
                {{in.data(), 64}, {out.data(), static_cast<std::int64_t>(out.size())}}},
            {});
  for (int d = 1; d < 32; ++d) {
    for (int i = 0; i < 64; ++i) {
      const auto at = static_cast<std::size_t>(128 * d + i);
      EXPECT_EQ(out[at], i / 2 >= d ? i - 2 * d : i) << d;
      EXPECT_EQ(out[at + 64], i / 2 + d < 32 ? i + 2 * d : i) << d;
    }
  }
}

}  // namespace
}  // namespace chainfold::test
