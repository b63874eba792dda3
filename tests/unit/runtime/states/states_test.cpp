// Partial states without a kernel: their bytes, and what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"

namespace chainfold::test {
namespace {

const Options kOnCpu{.target = target("sm_90")};

States sums_and_flags() {
  const auto x = input<float>("x");
  return States(over(whole(), sum(x), max(input<std::int8_t>("y")), any(x > 2), argmin(x)), kOnCpu);
}

/// What refuses a call: its code and the input that it names.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const UserError& error) {
    return std::string(error_code_name(error.code())) + " " + error.input();
  }
  return "nothing";
}

/// The layout is part of files: rows, then fields at multiples of their sizes, little-endian.
TEST(StatesBytes, LieWhereTheyLay) {
  const States states = sums_and_flags();
  ASSERT_EQ(states.bytes(), 32);
  std::vector<std::uint64_t> state(4, 0xEEEEEEEEEEEEEEEE);
  states.init(state.data());
  // Rows, a sum in f64, a byte, a boolean and an f32, and an index.
  const std::uint64_t expected[4] = {0, 0, 0x7F80000000000080, 0x7FFFFFFFFFFFFFFF};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(state[i], expected[i]) << i;
  EXPECT_EQ(states.rows(state.data()), 0);
}

TEST(StatesBytes, HashFoldsAndNotExpressions) {
  const auto x = input<float>("x");
  const auto hash = [](const Computation& computation) {
    return States(computation, kOnCpu).hash();
  };
  EXPECT_EQ(hash(over(whole(), sum(x))), hash(over(segments(8), sum(x * 2))));
  EXPECT_NE(hash(over(whole(), sum(x))), hash(over(whole(), max(x))));
  EXPECT_NE(hash(over(whole(), sum(x), max(x))), hash(over(whole(), max(x), sum(x))));
  EXPECT_EQ(hash(over(whole(), sum(x))), 16695933793745715373ULL)
      << "files of older versions are no longer read";
}

TEST(StatesBytes, AreReadAsTheyWereWritten) {
  const States states = sums_and_flags();
  std::vector<std::uint64_t> written(12), read(12, 1);
  states.init(written.data(), 3);
  written[4] = 77;
  const std::vector<std::byte> bytes = states.serialise(written.data(), 3);
  ASSERT_EQ(states.count_of(bytes), 3);
  states.deserialise(bytes, read.data(), 3);
  EXPECT_EQ(read, written);
  EXPECT_EQ(states.rows(read.data() + 4), 77);
  EXPECT_EQ(states.count_of(states.serialise(nullptr, 0)), 0);
}

TEST(StatesBytes, OfOthersAreRefused) {
  const States states = sums_and_flags();
  std::vector<std::uint64_t> written(8), read(8);
  states.init(written.data(), 2);
  const std::vector<std::byte> bytes = states.serialise(written.data(), 2);
  const auto said = [&](std::vector<std::byte> changed) {
    return refusal([&] { states.deserialise(changed, read.data(), 2); });
  };
  const auto with = [&](std::size_t at, std::byte value) {
    std::vector<std::byte> changed = bytes;
    changed[at] = value;
    return changed;
  };
  const std::string refused = "invalid_argument serialised";
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(said({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)}), refused);
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(said(longer), refused);
  EXPECT_EQ(said(with(0, std::byte{1})), refused) << "another magic word";
  EXPECT_EQ(said(with(4, std::byte{2})), refused) << "another version";
  EXPECT_EQ(said(with(8, bytes[8] ^ std::byte{1})), refused) << "other folds";
  EXPECT_EQ(said(with(16, std::byte{40})), refused) << "another size";
  EXPECT_EQ(said(with(24, std::byte{3})), refused) << "more states";
  EXPECT_EQ(said(with(31, std::byte{0x80})), refused) << "states beyond any memory";
  EXPECT_EQ(refusal([&] { states.deserialise(bytes, read.data(), 1); }), "too_small states");
  // Whatever bytes there are, nothing is read or written beyond memory.
  std::mt19937_64 random(5);
  for (int i = 0; i < 100'000; ++i) {
    std::vector<std::byte> noise = bytes;
    noise.resize(random() % (bytes.size() + 9));
    for (int changes = 0; changes < 4 && !noise.empty(); ++changes)
      noise[random() % noise.size()] = static_cast<std::byte>(random());
    const std::string verdict = said(noise);
    ASSERT_TRUE(verdict == "nothing" || verdict == refused) << verdict;
  }
  // A boolean that is neither is read as true.
  const std::vector<std::byte> odd = with(32 + 17, std::byte{7});
  states.deserialise(odd, read.data(), 2);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(read.data())[17], std::byte{1});
}

TEST(StatesErrors, NameWhatIsWrong) {
  const States states = sums_and_flags();
  std::vector<std::uint64_t> state(6);
  auto* const askew = reinterpret_cast<std::byte*>(state.data()) + 4;
  EXPECT_EQ(refusal([&] { states.init(askew); }), "misaligned states");
  EXPECT_EQ(refusal([&] { states.init(nullptr); }), "null_pointer states");
  EXPECT_EQ(refusal([&] { states.init(state.data(), -1); }), "invalid_argument states");
  EXPECT_EQ(refusal([&] { states.merge(state.data(), askew); }), "misaligned later");
  EXPECT_EQ(refusal([&] { states.merge(nullptr, state.data()); }), "null_pointer into");
  EXPECT_EQ(refusal([&] { (void)states.rows(nullptr); }), "null_pointer state");
  const auto x = input<float>("x");
  const auto refused = [](const Computation& computation) {
    return refusal([&] { States(computation, kOnCpu); });
  };
  EXPECT_EQ(refused(over(whole(), inclusive(sum(x)))), "unsupported ");
  EXPECT_EQ(refused(over(whole(), sum(cast<float>(index()) * x))), "unsupported ");
  EXPECT_EQ(refused(over(whole(), sum(x, where(index() > 3)))), "unsupported ");
  EXPECT_EQ(refused(over(whole(), argmax(x), sum(x))), "nothing");
  Options pinned = kOnCpu;
  pinned.plan = "parts warps=8";
  EXPECT_EQ(refusal([&] { States(over(whole(), sum(x)), pinned); }), "unsupported plan");
  const States of_segments(over(segments(4), sum(x)), kOnCpu);
  const std::vector<float> data(8);
  EXPECT_EQ(refusal([&] { of_segments.update(state.data(), {{"x", data}}); }), "unsupported ");
}

}  // namespace
}  // namespace chainfold::test
