#include "chainfold/codegen/graph/monoid_laws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/float_environment.hpp"

namespace chainfold::codegen {
namespace {

using State = std::vector<Bits>;

/// SplitMix64: the same numbers on every machine.
class Random {
 public:
  std::uint64_t next() {
    std::uint64_t z = seed_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// From 0 to most.
  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(most + 1));
  }

 private:
  std::uint64_t seed_ = 20;
};

/// What elements are like: first small numbers, of which many are equal and whose states are
/// readable, then others, then numbers of several magnitudes.
enum class Kind : std::uint8_t { small, plain, scattered };

Bits element(Random& random, DType type, Kind kind) {
  if (type == DType::boolean) return random.next() & 1u;
  const bool negative = is_signed(type) && (random.next() & 1u) != 0;
  if (kind == Kind::small) {
    const std::int64_t value = random.up_to(3);
    return bits_of_int(type, negative ? -value : value);
  }
  if (is_float(type)) {
    double value = static_cast<double>(random.up_to(800)) / 8;
    if (kind == Kind::scattered) {
      const int most = type == DType::f16 ? 5 : 10;
      value = std::ldexp(1 + static_cast<double>(random.up_to(15)) / 16,
                         static_cast<int>(random.up_to(2 * most)) - most);
    }
    return bits_of_double(type, negative ? -value : value);
  }
  const int bits = std::min(8 * size_of(type) - (is_signed(type) ? 1 : 0), 20);
  const int width =
      kind == Kind::plain ? std::min(bits, 7) : static_cast<int>(random.up_to(bits - 1)) + 1;
  const std::int64_t value = random.up_to((std::int64_t{1} << width) - 1);
  return bits_of_int(type, negative ? -value : value);
}

/// What an exact law may be off by, of 1.
double tolerance(DType type) {
  switch (type) {
    case DType::f16: return 0x1p-8;
    case DType::bf16: return 0x1p-5;
    default: return 0x1p-10;
  }
}
/// Beyond it products overflow, and their order decides whether.
double large(DType type) {
  switch (type) {
    case DType::f16: return 0x1p7;
    case DType::f64: return 0x1p511;
    default: return 0x1p63;
  }
}

class Laws {
 public:
  Laws(const Fold& fold, std::string_view word, const std::vector<bool>& positions)
      : fold_(fold), word_(word), positions_(positions) {}

  void check() {
    // As many as take half a millisecond, about.
    constexpr std::size_t kSteps = 60000, kMost = 100, kLeast = 3, kMerges = 25;
    const std::size_t steps = fold_.merge.steps.size() + fold_.lift.steps.size() + 6;
    const std::size_t rounds = std::clamp(kSteps / (kMerges * steps), kLeast, kMost);
    for (std::size_t round = 0; round < rounds; ++round) {
      const Kind kind = round < rounds / 3       ? Kind::small
                        : round < 2 * rounds / 3 ? Kind::plain
                                                 : Kind::scattered;
      std::int64_t position = random_.up_to(4);
      const State a = run(kind, position), b = run(kind, position), c = run(kind, position);
      identity(a);
      identity(b);
      associative(a, b, c);
      if (fold_.commutative) commutative(a, b);
    }
  }

 private:
  [[nodiscard]] State merge(const State& a, const State& b) const {
    State both = a;
    both.insert(both.end(), b.begin(), b.end());
    return evaluate(fold_.merge, both);
  }
  /// The state of one to three elements from a position on, behind which it leaves it.
  State run(Kind kind, std::int64_t& position) {
    State state;
    for (std::int64_t left = random_.up_to(2); left >= 0; --left, ++position) {
      std::vector<Bits> operands;
      for (std::size_t i = 0; i < fold_.operands.size(); ++i) {
        operands.push_back(positions_[i] ? bits_of_int(fold_.operands[i], position)
                                         : element(random_, fold_.operands[i], kind));
      }
      const State lifted = evaluate(fold_.lift, operands);
      state = state.empty() ? lifted : merge(state, lifted);
    }
    return state;
  }

  [[nodiscard]] double value(const State& state, std::size_t field) const {
    return double_of_bits(fold_.state[field], state[field]);
  }
  /// Whether no float of the state has overflowed, or is about to. What the initial state has, e.g.
  /// an infinity for "none", is no overflow.
  [[nodiscard]] bool calm(const State& state) const {
    for (std::size_t f = 0; f < state.size(); ++f) {
      if (!is_float(fold_.state[f]) || state[f] == fold_.init[f]) continue;
      if (!(std::fabs(value(state, f)) <= large(fold_.state[f]))) return false;
    }
    return true;
  }
  /// The largest finite number in the floats of some states.
  [[nodiscard]] double scale(std::initializer_list<const State*> states) const {
    double most = 0;
    for (const State* state : states) {
      for (std::size_t f = 0; f < state->size(); ++f) {
        if (!is_float(fold_.state[f])) continue;
        const double magnitude = std::fabs(value(*state, f));
        if (std::isfinite(magnitude)) most = std::max(most, magnitude);
      }
    }
    return most;
  }
  [[nodiscard]] bool same(const State& x, const State& y, double scale) const {
    for (std::size_t f = 0; f < x.size(); ++f) {
      if (x[f] == y[f]) continue;
      if (!is_float(fold_.state[f])) return false;
      const double p = value(x, f), q = value(y, f);
      if (p == q || (std::isnan(p) && std::isnan(q))) continue;
      if (!(std::fabs(p - q) <= tolerance(fold_.state[f]) * scale)) return false;
    }
    return true;
  }

  void identity(const State& state) const {
    if (!calm(state)) return;
    const State before = merge(fold_.init, state), behind = merge(state, fold_.init);
    for (const State* merged : {&before, &behind}) {
      if (same(*merged, state, scale({merged, &state}))) continue;
      refuse(fmt::format(
          "its initial state {} is no identity: merged {} the state {} it gives {}, "
          "not that state. Fix: give cf::state the values that leave every state "
          "as it is (0 for a sum, the lowest number for a maximum)",
          text(fold_.init), merged == &before ? "before" : "behind", text(state), text(*merged)));
    }
  }
  void associative(const State& a, const State& b, const State& c) const {
    const State ab = merge(a, b), bc = merge(b, c);
    for (const State* state : {&a, &b, &c, &ab, &bc})
      if (!calm(*state)) return;
    const State left = merge(ab, c), right = merge(a, bc);
    if (same(left, right, scale({&a, &b, &c, &ab, &bc, &left, &right}))) return;
    refuse(
        fmt::format("its merge is not associative: of the states a = {}, b = {} and c = {} "
                    "merge(merge(a, b), c) is {}, but merge(a, merge(b, c)) is {}. Fix: keep "
                    "in the state what makes them equal (of a mean: the sum and the count)",
                    text(a), text(b), text(c), text(left), text(right)));
  }
  void commutative(const State& a, const State& b) const {
    if (!calm(a) || !calm(b)) return;
    const State ab = merge(a, b), ba = merge(b, a);
    if (same(ab, ba, scale({&a, &b, &ab, &ba}))) return;
    refuse(
        fmt::format("it is marked commutative, but of the states a = {} and b = {} merge(a, b) "
                    "is {} and merge(b, a) is {}. Fix: leave .commutative() out",
                    text(a), text(b), text(ab), text(ba)));
  }

  [[nodiscard]] std::string text(const State& state) const {
    std::string out;
    for (std::size_t f = 0; f < state.size(); ++f)
      out += (f == 0 ? "" : ", ") + text_of_bits(fold_.state[f], state[f]);
    return "(" + out + ")";
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("the monoid {} breaks a law that its results rest on, as segments "
                                "are cut anywhere: {}; or, if no elements of yours make such "
                                "states, pass cf::unchecked as the last argument of cf::monoid",
                                word_, what),
                    std::string(word_));
  }

  const Fold& fold_;
  std::string_view word_;
  const std::vector<bool>& positions_;
  Random random_;
};

/// Folds that were found lawful, by the names that tell all of them.
struct Lawful {
  std::mutex mutex;
  std::unordered_set<std::string> names;
};
// Never destroyed: expressions may be written while statics are.
Lawful& lawful() {
  static auto* const lawful = new Lawful;
  return *lawful;
}

}  // namespace

void check_laws(const Fold& fold, std::string_view word, const std::vector<bool>& positions) {
  constexpr std::size_t kMostNames = 4096;
  std::string name = fold.name;
  for (const bool position : positions) name += position ? 'i' : 'x';
  Lawful& known = lawful();
  {
    const std::lock_guard lock(known.mutex);
    if (known.names.contains(name)) return;
  }
  const DefaultFloatEnvironment environment;
  Laws(fold, word, positions).check();
  const std::lock_guard lock(known.mutex);
  if (known.names.size() >= kMostNames) known.names.clear();
  known.names.insert(std::move(name));
}

}  // namespace chainfold::codegen
