#include <omp.h>

#include <vector>

#include "chainfold/bench/peers_openmp.hpp"

namespace chainfold::bench::openmp {
namespace {

#if defined(__FLT16_MAX__)
__extension__ using Half = _Float16;
struct F16 {
  Half value;
  float get() const { return static_cast<float>(value); }
  static F16 from(float v) { return {static_cast<Half>(v)}; }
};
#endif

struct Bf16 {
  std::uint16_t bits;
  float get() const {
    const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
    float value;
    __builtin_memcpy(&value, &word, sizeof(value));
    return value;
  }
  static Bf16 from(float value) {  // to nearest even; no NaN comes here
    std::uint32_t word;
    __builtin_memcpy(&word, &value, sizeof(word));
    return {static_cast<std::uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16)};
  }
};
template <class T>
struct Plain {
  T value;
  T get() const { return value; }
  static Plain from(T v) { return {v}; }
};

/// A fold of one value: elements as `Value` gives them, added.
template <class Accumulator, class Value>
struct Sum {
  using State = Accumulator;
  Value value;
  State over(std::int64_t begin, std::int64_t end) const {
    Accumulator sum = 0;
    const Value get = value;  // by way of `this`, GCC would not vectorise
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = begin; i < end; ++i) sum += get(i);
    return sum;
  }
  static State merge(State a, State b) { return a + b; }
};

struct Pair {
  float a, b;
};
template <class In>
struct Moments {
  using State = Pair;
  const In* x;
  State over(std::int64_t begin, std::int64_t end) const {
    float sum = 0, squares = 0;
    const In* const in = x;
#pragma omp simd reduction(+ : sum, squares)
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = in[i].get();
      sum += value;
      squares += value * value;
    }
    return {sum, squares};
  }
  static State merge(State s, State t) { return {s.a + t.a, s.b + t.b}; }
};
template <class In>
struct MinMax {
  using State = Pair;
  const In* x;
  State over(std::int64_t begin, std::int64_t end) const {
    const In* const in = x;
    float least = in[begin].get(), most = least;
#pragma omp simd reduction(min : least) reduction(max : most)
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = in[i].get();
      least = value < least ? value : least;
      most = value > most ? value : most;
    }
    return {least, most};
  }
  static State merge(State s, State t) { return {t.a < s.a ? t.a : s.a, t.b > s.b ? t.b : s.b}; }
};

template <class In>
struct Max {
  using State = decltype(In{}.get());
  const In* x;
  State over(std::int64_t begin, std::int64_t end) const {
    const In* const in = x;
    State most = in[begin].get();
#pragma omp simd reduction(max : most)
    for (std::int64_t i = begin; i < end; ++i) {
      const State value = in[i].get();
      most = value > most ? value : most;
    }
    return most;
  }
  static State merge(State s, State t) { return t > s ? t : s; }
};
/// As it is written: compilers have no vectors for it.
template <class In>
struct Argmax {
  struct State {
    decltype(In{}.get()) best;
    std::int64_t place;
  };
  const In* x;
  State over(std::int64_t begin, std::int64_t end) const {
    State state{x[begin].get(), begin};
    for (std::int64_t i = begin + 1; i < end; ++i)
      if (x[i].get() > state.best) state = {x[i].get(), i};
    return state;
  }
  static State merge(State s, State t) {
    return t.best > s.best || (t.best == s.best && t.place < s.place) ? t : s;
  }
};

/// Every segment's state to `store`.
template <class F, class Store>
void run(const F& f, std::int64_t segments, std::int64_t length, const Store& store) {
  const std::int64_t threads = omp_get_max_threads();
  if (segments >= 4 * threads) {
#pragma omp parallel for schedule(static)
    for (std::int64_t s = 0; s < segments; ++s) store(s, f.over(s * length, (s + 1) * length));
    return;
  }
  for (std::int64_t s = 0; s < segments; ++s) {
    typename F::State total{};
    bool any = false;
#pragma omp parallel
    {
      const std::int64_t count = omp_get_num_threads(), me = omp_get_thread_num();
      const std::int64_t begin = length * me / count, end = length * (me + 1) / count;
      if (begin < end) {
        const auto mine = f.over(s * length + begin, s * length + end);
#pragma omp critical
        {
          total = any ? F::merge(total, mine) : mine;
          any = true;
        }
      }
    }
    store(s, total);
  }
}

template <class Accumulator, class Out, class Value>
void sum(Value value, std::int64_t segments, std::int64_t length, void* out) {
  run(Sum<Accumulator, Value>{value}, segments, length,
      [out](std::int64_t s, Accumulator total) { static_cast<Out*>(out)[s] = Out::from(total); });
}

template <class In, class Accumulator, class Out>
bool sum_only(Fold what, const void* x, std::int64_t segments, std::int64_t length, void* out) {
  if (what != Fold::sum) return false;
  const auto* in = static_cast<const In*>(x);
  sum<Accumulator, Out>([in](std::int64_t i) { return static_cast<Accumulator>(in[i].get()); },
                        segments, length, out);
  return true;
}

/// What is folded alike of every type.
template <class In>
bool fold_any(Fold what, const void* x, std::int64_t segments, std::int64_t length, void* out) {
  const auto* in = static_cast<const In*>(x);
  switch (what) {
    case Fold::max:
      run(Max<In>{in}, segments, length,
          [out](std::int64_t s, auto most) { static_cast<In*>(out)[s] = In::from(most); });
      return true;
    case Fold::argmax:
      run(Argmax<In>{in}, segments, length, [=](std::int64_t s, auto state) {
        static_cast<std::int64_t*>(out)[s] = state.place - s * length;
      });
      return true;
    case Fold::count_above:
      sum<std::int64_t, Plain<std::int64_t>>(
          [in](std::int64_t i) { return std::int64_t{in[i].get() > 0}; }, segments, length, out);
      return true;
    default: return false;
  }
}

/// Threads share out the rows and walk along them, their sums of a strip of columns in cache.
template <class In, class Accumulator, class Out>
bool columns_of(const void* x, std::int64_t rows, std::int64_t columns, void* out) {
  constexpr std::int64_t kStrip = 8192;
  const auto* in = static_cast<const In*>(x);
  std::vector<Accumulator> totals(static_cast<std::size_t>(columns));
  Accumulator* const total = totals.data();
#pragma omp parallel
  {
    const std::int64_t count = omp_get_num_threads(), me = omp_get_thread_num();
    const std::int64_t begin = rows * me / count, end = rows * (me + 1) / count;
    std::vector<Accumulator> mine(static_cast<std::size_t>(kStrip));
    Accumulator* const sums = mine.data();
    for (std::int64_t first = 0; first < columns; first += kStrip) {
      const std::int64_t width = columns - first < kStrip ? columns - first : kStrip;
      for (std::int64_t c = 0; c < width; ++c) sums[c] = 0;
      for (std::int64_t r = begin; r < end; ++r) {
        const In* const row = in + r * columns + first;
#pragma omp simd
        for (std::int64_t c = 0; c < width; ++c) sums[c] += static_cast<Accumulator>(row[c].get());
      }
#pragma omp critical
      for (std::int64_t c = 0; c < width; ++c) total[first + c] += sums[c];
    }
  }
  for (std::int64_t c = 0; c < columns; ++c) static_cast<Out*>(out)[c] = Out::from(total[c]);
  return true;
}

#if defined(__FLT16_MAX__)
bool fold_f16(Fold what, const void* x_data, const void* y_data, std::int64_t segments,
              std::int64_t length, bool whole, void* first, void* second) {
  const auto* x = static_cast<const F16*>(x_data);
  const auto* y = static_cast<const F16*>(y_data);
  const auto store_pair = [=](std::int64_t s, float a, float b) {
    static_cast<F16*>(first)[s] = F16::from(a);
    static_cast<F16*>(second)[s] = F16::from(b);
  };
  switch (what) {
    case Fold::sum:
      return whole ? sum_only<F16, float, Plain<float>>(what, x, segments, length, first)
                   : sum_only<F16, float, F16>(what, x, segments, length, first);
    case Fold::dot:
      sum<float, F16>([=](std::int64_t i) { return x[i].get() * y[i].get(); }, segments, length,
                      first);
      return true;
    case Fold::filtered_sum:
      sum<float, F16>([=](std::int64_t i) { return x[i].get() > 0 ? x[i].get() : 0; }, segments,
                      length, first);
      return true;
    case Fold::mean_var:
      run(Moments<F16>{x}, segments, length, [=](std::int64_t s, Pair state) {
        const auto n = static_cast<float>(length);
        const float mean = state.a / n;
        store_pair(s, mean, state.b / n - mean * mean);
      });
      return true;
    case Fold::min_max:
      run(MinMax<F16>{x}, segments, length,
          [=](std::int64_t s, Pair state) { store_pair(s, state.a, state.b); });
      return true;
    default: return false;
  }
}
#else
bool fold_f16(Fold, const void*, const void*, std::int64_t, std::int64_t, bool, void*, void*) {
  return false;
}
#endif

}  // namespace

namespace {

template <class T, class Sum>
bool sum_ragged_of(const void* x, const std::int64_t* offsets, std::int64_t segments, bool scan,
                   void* out) {
  const auto* const in = static_cast<const T*>(x);
  auto* const to = static_cast<T*>(out);
  if (scan) {
#pragma omp parallel for schedule(guided)
    for (std::int64_t s = 0; s < segments; ++s) {
      Sum sum = 0;
      for (std::int64_t i = offsets[s]; i < offsets[s + 1]; ++i) {
        sum += static_cast<Sum>(in[i]);
        to[i] = static_cast<T>(sum);
      }
    }
    return true;
  }
#pragma omp parallel for schedule(guided)
  for (std::int64_t s = 0; s < segments; ++s) {
    Sum sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = offsets[s]; i < offsets[s + 1]; ++i) sum += static_cast<Sum>(in[i]);
    to[s] = static_cast<T>(sum);
  }
  return true;
}

}  // namespace

bool sum_ragged(Type type, const void* x, const std::int64_t* offsets, std::int64_t segments,
                bool scan, void* out) {
  switch (type) {
    case Type::f32: return sum_ragged_of<float, float>(x, offsets, segments, scan, out);
    case Type::f64: return sum_ragged_of<double, double>(x, offsets, segments, scan, out);
    case Type::i32:
      return sum_ragged_of<std::int32_t, std::uint32_t>(x, offsets, segments, scan, out);
    default: return false;
  }
}

bool fold(Fold what, Type type, const void* x, const void* y, std::int64_t segments,
          std::int64_t length, bool whole, void* first, void* second) {
  if (what >= Fold::max) {
    switch (type) {
#if defined(__FLT16_MAX__)
      case Type::f16: return fold_any<F16>(what, x, segments, length, first);
#endif
      case Type::bf16: return fold_any<Bf16>(what, x, segments, length, first);
      case Type::f32: return fold_any<Plain<float>>(what, x, segments, length, first);
      case Type::f64: return fold_any<Plain<double>>(what, x, segments, length, first);
      case Type::i8: return fold_any<Plain<std::int8_t>>(what, x, segments, length, first);
      case Type::i32: return fold_any<Plain<std::int32_t>>(what, x, segments, length, first);
      default: return false;
    }
  }
  switch (type) {
    case Type::f16: return fold_f16(what, x, y, segments, length, whole, first, second);
    case Type::bf16: return sum_only<Bf16, float, Bf16>(what, x, segments, length, first);
    case Type::f32:
      return sum_only<Plain<float>, float, Plain<float>>(what, x, segments, length, first);
    case Type::f64:
      return sum_only<Plain<double>, double, Plain<double>>(what, x, segments, length, first);
    case Type::i8:  // unsigned sums wrap without ado
      return sum_only<Plain<std::int8_t>, std::uint32_t, Plain<std::uint32_t>>(what, x, segments,
                                                                               length, first);
    case Type::i32:
      return sum_only<Plain<std::int32_t>, std::uint32_t, Plain<std::uint32_t>>(what, x, segments,
                                                                                length, first);
  }
  return false;
}

bool sum_columns(Type type, const void* x, std::int64_t rows, std::int64_t columns, void* out) {
  switch (type) {
#if defined(__FLT16_MAX__)
    case Type::f16: return columns_of<F16, float, F16>(x, rows, columns, out);
#endif
    case Type::f32: return columns_of<Plain<float>, float, Plain<float>>(x, rows, columns, out);
    default: return false;
  }
}

}  // namespace chainfold::bench::openmp
