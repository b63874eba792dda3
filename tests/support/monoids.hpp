// Folds of a user's own that tell orders apart, for tests and as examples of the notation.
#pragma once

#include <cstdint>

#include "chainfold/chainfold.hpp"

namespace chainfold::test {

/// The longest run of true.
inline auto longest_run() {
  using I = std::int64_t;
  return monoid(
      "longest_run", state<I, I, I, I>(0, 0, 0, 0),
      [](auto hit) {
        auto one = cast<I>(hit);
        return fields(one, one, one, 1);
      },
      [](auto a, auto b) {
        auto [a_first, a_best, a_last, a_count] = a;
        auto [b_first, b_best, b_last, b_count] = b;
        return fields(select(a_first == a_count, a_count + b_first, a_first),
                      max(max(a_best, b_best), a_last + b_first),
                      select(b_last == b_count, b_count + a_last, b_last), a_count + b_count);
      },
      [](auto s) { return get<1>(s); });
}

/// Brackets that find no partner in a row of "(" (true) and ")": the bicyclic monoid.
inline auto brackets() {
  using I = std::int64_t;
  return monoid(
      "brackets", state<I, I>(0, 0),
      [](auto open) { return fields(cast<I>(!open), cast<I>(open)); },
      [](auto a, auto b) {
        auto [a_close, a_open] = a;
        auto [b_close, b_open] = b;
        auto pairs = min(a_open, b_close);
        return fields(a_close + b_close - pairs, a_open + b_open - pairs);
      },
      [](auto s) { return get<0>(s) * 1000003 + get<1>(s); });
}

/// The product of the matrices ((x, 1), (1, 0)) modulo 2^32, its entries mixed into one number.
inline auto continuant() {
  using U = std::uint32_t;
  return monoid(
      "continuant", state<U, U, U, U>(1, 0, 0, 1), [](auto x) { return fields(x, 1, 1, 0); },
      [](auto a, auto b) {
        auto [a11, a12, a21, a22] = a;
        auto [b11, b12, b21, b22] = b;
        return fields(a11 * b11 + a12 * b21, a11 * b12 + a12 * b22, a21 * b11 + a22 * b21,
                      a21 * b12 + a22 * b22);
      },
      [](auto s) {
        auto [p, q, r, t] = s;
        return p ^ (q * 3 + r) ^ (t << 7);
      });
}

/// The first and the last value that is no NaN, as first - 4 * last; NaN of none.
inline auto first_and_last() {
  return monoid(
      "first_and_last", state<bool, double, double>(false, 0, 0),
      [](auto x) { return fields(x == x, x, x); },
      [](auto a, auto b) {
        auto [a_any, a_first, a_last] = a;
        auto [b_any, b_first, b_last] = b;
        return fields(a_any || b_any, select(a_any, a_first, b_first),
                      select(b_any, b_last, a_last));
      },
      [](auto s) {
        auto [any, first, last] = s;
        return select(any, first - 4 * last, 0 * first / 0);
      });
}

/// A polynomial hash: sum of x_i * 1000003^(n - 1 - i) modulo 2^64.
inline auto horner() {
  using U = std::uint64_t;
  return monoid(
      "horner", state<U, U>(0, 1), [](auto x) { return fields(cast<U>(x), 1000003); },
      [](auto a, auto b) {
        auto [a_hash, a_power] = a;
        auto [b_hash, b_power] = b;
        return fields(a_hash * b_power + b_hash, a_power * b_power);
      },
      [](auto s) { return get<0>(s); });
}

/// The last x at an even index, out of (x, index); 0 of none: two operands, one field more than
/// merges need.
inline auto last_even() {
  return monoid(
      "last_even", state<std::int32_t, bool>(0, false),
      [](auto x, auto i) {
        auto even = i % 2 == 0;
        return fields(select(even, x, 0), even);
      },
      [](auto a, auto b) {
        return fields(select(get<1>(b), get<0>(b), get<0>(a)), get<1>(a) || get<1>(b));
      },
      [](auto s) { return get<0>(s); });
}

/// The smallest and the largest absolute value; merged in any order.
inline auto magnitudes() {
  return monoid(
             "magnitudes", state<std::uint8_t, std::uint8_t>(255, 0),
             [](auto x) {
               auto m = cast<std::uint8_t>(abs(x));
               return fields(m, m);
             },
             [](auto a, auto b) {
               return fields(cast<std::uint8_t>(min(get<0>(a), get<0>(b))),
                             cast<std::uint8_t>(max(get<1>(a), get<1>(b))));
             },
             [](auto s) { return cast<std::int32_t>(get<0>(s)) * 256 + get<1>(s); })
      .commutative();
}

}  // namespace chainfold::test
