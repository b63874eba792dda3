// @helper CF_DEVICE
// Loads and stores of global memory, and loads of shared: one instruction each, of up to 16 bytes,
// predicated by `on` instead of branched around; a load that is off gives zeros. cf_ldg reads what
// no launch writes (the read-only path), cf_ld reads scratch, and inputs that may lie in an
// output's memory. They are volatile so that loads stay where the program issues them, all before
// the first use.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// clang-format off
// An instruction that runs where operand N is not 0.
// @helper CF_PREDICATED
#define CF_PREDICATED(N, INSTR) \
  "{\n\t.reg .pred q;\n\tsetp.ne.u32 q, %" N ", 0;\n\t@q " INSTR "\n\t}"

// The register in which a value passes memory, by the value's size.
// @helper cf_word
template <int SIZE> struct cf_word { using type = unsigned; };
template <> struct cf_word<1> { using type = unsigned short; };
template <> struct cf_word<2> { using type = unsigned short; };
template <> struct cf_word<8> { using type = unsigned long long; };
// @helper cf_word_of
template <class T> using cf_word_of = typename cf_word<(int)sizeof(T)>::type;

// @helper cf_take
template <class T> CF_DEVICE void cf_take(T& a, cf_word_of<T> r) { a = (T)r; }
CF_DEVICE void cf_take(float& a, unsigned r) { a = __uint_as_float(r); }
CF_DEVICE void cf_take(double& a, unsigned long long r) { a = __longlong_as_double((long long)r); }

// @helper cf_give
template <class T> CF_DEVICE cf_word_of<T> cf_give(T a) { return (cf_word_of<T>)a; }
CF_DEVICE unsigned cf_give(float a) { return __float_as_uint(a); }
CF_DEVICE unsigned long long cf_give(double a) { return (unsigned long long)__double_as_longlong(a); }

// Loads as NAME and NAME_if of 1, 2 and 4 values: AT makes an operand of the address, and the rest
// is what INSTR clobbers. Few functions, since a compiler reads them anew with every kernel.
// @helper CF_LOADS
#define CF_GLOBAL(p) "l"(p)
#define CF_LOAD_1(P, C, AT, INSTR, ...)                                                            \
  asm volatile(INSTR "." P " %0, [%1];" : "=" C(r) : AT(p) __VA_ARGS__)
#define CF_LOAD_1_IF(P, C, AT, INSTR, ...)                                                         \
  asm volatile(CF_PREDICATED("2", INSTR "." P " %0, [%1];")                                        \
               : "+" C(r) : AT(p), "r"((unsigned)on) __VA_ARGS__)
#define CF_LOAD_2(P, C, AT, INSTR, ...)                                                            \
  asm volatile(INSTR ".v2." P " {%0, %1}, [%2];" : "=" C(r), "=" C(s) : AT(p) __VA_ARGS__)
#define CF_LOAD_2_IF(P, C, AT, INSTR, ...)                                                         \
  asm volatile(CF_PREDICATED("3", INSTR ".v2." P " {%0, %1}, [%2];")                               \
               : "+" C(r), "+" C(s) : AT(p), "r"((unsigned)on) __VA_ARGS__)
#define CF_ON bool on,
#define CF_LOADS_OF(NAME, SUFFIX, MASK, AT, INSTR, ...)                                            \
  template <class T>                                                                               \
  CF_DEVICE void NAME(MASK const void* p, T& a) {                                                  \
    cf_word_of<T> r = 0;                                                                           \
    if constexpr (sizeof(T) == 1) CF_LOAD_1##SUFFIX("u8", "h", AT, INSTR, __VA_ARGS__);            \
    if constexpr (sizeof(T) == 2) CF_LOAD_1##SUFFIX("u16", "h", AT, INSTR, __VA_ARGS__);           \
    if constexpr (sizeof(T) == 4) CF_LOAD_1##SUFFIX("u32", "r", AT, INSTR, __VA_ARGS__);           \
    if constexpr (sizeof(T) == 8) CF_LOAD_1##SUFFIX("u64", "l", AT, INSTR, __VA_ARGS__);           \
    cf_take(a, r);                                                                                 \
  }                                                                                                \
  template <class T>                                                                               \
  CF_DEVICE void NAME(MASK const void* p, T& a, T& b) {                                            \
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);                                               \
    cf_word_of<T> r = 0, s = 0;                                                                    \
    if constexpr (sizeof(T) == 4) CF_LOAD_2##SUFFIX("u32", "r", AT, INSTR, __VA_ARGS__);           \
    if constexpr (sizeof(T) == 8) CF_LOAD_2##SUFFIX("u64", "l", AT, INSTR, __VA_ARGS__);           \
    cf_take(a, r), cf_take(b, s);                                                                  \
  }
#define CF_LOADS_4(T, C, NAME, AT, INSTR, ...)                                                     \
  CF_DEVICE void NAME(const void* p, T& a, T& b, T& c, T& d) {                                     \
    asm volatile(INSTR ".v4.b32 {%0, %1, %2, %3}, [%4];"                                           \
                 : "=" C(a), "=" C(b), "=" C(c), "=" C(d) : AT(p) __VA_ARGS__);                    \
  }                                                                                                \
  CF_DEVICE void NAME##_if(bool on, const void* p, T& a, T& b, T& c, T& d) {                       \
    a = b = c = d = 0;                                                                             \
    asm volatile(CF_PREDICATED("5", INSTR ".v4.b32 {%0, %1, %2, %3}, [%4];")                       \
                 : "+" C(a), "+" C(b), "+" C(c), "+" C(d)                                          \
                 : AT(p), "r"((unsigned)on) __VA_ARGS__);                                          \
  }
#define CF_LOADS(NAME, AT, INSTR, ...)                                                             \
  CF_LOADS_OF(NAME, , , AT, INSTR, __VA_ARGS__)                                                    \
  CF_LOADS_OF(NAME##_if, _IF, CF_ON, AT, INSTR, __VA_ARGS__)                                       \
  CF_LOADS_4(int, "r", NAME, AT, INSTR, __VA_ARGS__)                                               \
  CF_LOADS_4(unsigned, "r", NAME, AT, INSTR, __VA_ARGS__)                                          \
  CF_LOADS_4(float, "f", NAME, AT, INSTR, __VA_ARGS__)

// @helper cf_ldg cf_ldg_if
CF_LOADS(cf_ldg, CF_GLOBAL, "ld.global.nc", )

// Of lines that hardly any other load takes something of: they need not stay.
// @helper cf_ldg_once cf_ldg_once_if
CF_LOADS(cf_ldg_once, CF_GLOBAL, "ld.global.nc.L1::evict_first", )

// The same of inputs that the kernel before may have written while this one was there already: not
// by the path for what never changes during a kernel, which no wait orders.
// @helper cf_ldi cf_ldi_if
CF_LOADS(cf_ldi, CF_GLOBAL, "ld.global", )

// @helper cf_ldi_once cf_ldi_once_if
CF_LOADS(cf_ldi_once, CF_GLOBAL, "ld.global.L1::evict_first", )

// Scratch was written by an earlier launch, or by a block that was waited for; "memory" keeps the
// access on its side of barriers, waits and stores.
// @helper cf_ld cf_ld_if
CF_LOADS(cf_ld, CF_GLOBAL, "ld.global", : "memory")

// W bits of a packed array from bit `at` on, the first one lowest; what is behind them is anything.
// Bytes that hold none of them are not touched.
// @helper CF_BITS
#define CF_BITS(NAME)                                                                              \
  template <int W>                                                                                 \
  CF_DEVICE unsigned NAME##_bits(bool on, const void* p, long long at) {                           \
    const unsigned char* const q = (const unsigned char*)p + (at >> 3);                            \
    const int shift = (int)at & 7;                                                                 \
    unsigned all = 0;                                                                              \
    _Pragma("unroll") for (int k = 0; k <= (W + 6) / 8; ++k) {                                     \
      unsigned char byte;                                                                          \
      NAME##_if(k == 0 ? on : on && shift + W > 8 * k, q + k, byte);                               \
      all |= (unsigned)byte << 8 * k;                                                              \
    }                                                                                              \
    return all >> shift;                                                                           \
  }

// @helper cf_ldg_bits
CF_BITS(cf_ldg)

// @helper cf_ldi_bits
CF_BITS(cf_ldi)

// @helper cf_ld_bits
CF_BITS(cf_ld)

// What loads ask of the second-level cache: to be kept longer than what is stored, or nothing. The
// words are those that createpolicy makes for evict_last and evict_normal.
// @helper cf_keeps
CF_DEVICE unsigned long long cf_keeps(bool on) {
  return on ? 0x14f0000000000000ull : 0x1000000000000000ull;
}

// As cf_ld, 16 bytes under such a word.
// @helper cf_ld_kept cf_ld_kept_if
template <class T>
CF_DEVICE void cf_ld_kept(const void* p, unsigned long long hint, T& a, T& b) {
  static_assert(sizeof(T) == 8);
  unsigned long long r, s;
  asm volatile("ld.global.L2::cache_hint.v2.u64 {%0, %1}, [%2], %3;"
               : "=l"(r), "=l"(s) : "l"(p), "l"(hint) : "memory");
  cf_take(a, r), cf_take(b, s);
}
template <class T>
CF_DEVICE void cf_ld_kept(const void* p, unsigned long long hint, T& a, T& b, T& c, T& d) {
  static_assert(sizeof(T) == 4);
  unsigned r, s, t, u;
  asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(r), "=r"(s), "=r"(t), "=r"(u) : "l"(p), "l"(hint) : "memory");
  cf_take(a, r), cf_take(b, s), cf_take(c, t), cf_take(d, u);
}
template <class T>
CF_DEVICE void cf_ld_kept_if(bool on, const void* p, unsigned long long hint, T& a, T& b) {
  static_assert(sizeof(T) == 8);
  unsigned long long r = 0, s = 0;
  asm volatile(CF_PREDICATED("3", "ld.global.L2::cache_hint.v2.u64 {%0, %1}, [%2], %4;")
               : "+l"(r), "+l"(s) : "l"(p), "r"((unsigned)on), "l"(hint) : "memory");
  cf_take(a, r), cf_take(b, s);
}
template <class T>
CF_DEVICE void cf_ld_kept_if(bool on, const void* p, unsigned long long hint, T& a, T& b, T& c,
                             T& d) {
  static_assert(sizeof(T) == 4);
  unsigned r = 0, s = 0, t = 0, u = 0;
  asm volatile(CF_PREDICATED("5", "ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %6;")
               : "+r"(r), "+r"(s), "+r"(t), "+r"(u) : "l"(p), "r"((unsigned)on), "l"(hint)
               : "memory");
  cf_take(a, r), cf_take(b, s), cf_take(c, t), cf_take(d, u);
}

// @helper cf_st cf_st_if
#define CF_STORE(KIND, PLACES, ...)                                                                \
  asm volatile("st.global." KIND " [%0], " PLACES ";" : : "l"(p), __VA_ARGS__ : "memory")
#define CF_STORE_IF(N, KIND, PLACES, ...)                                                          \
  asm volatile(CF_PREDICATED(N, "st.global." KIND " [%0], " PLACES ";")                            \
               : : "l"(p), __VA_ARGS__, "r"((unsigned)on) : "memory")
template <class T>
CF_DEVICE void cf_st(void* p, T a) {
  if constexpr (sizeof(T) == 1) CF_STORE("u8", "%1", "h"(cf_give(a)));
  if constexpr (sizeof(T) == 2) CF_STORE("u16", "%1", "h"(cf_give(a)));
  if constexpr (sizeof(T) == 4) CF_STORE("u32", "%1", "r"(cf_give(a)));
  if constexpr (sizeof(T) == 8) CF_STORE("u64", "%1", "l"(cf_give(a)));
}
template <class T>
CF_DEVICE void cf_st(void* p, T a, T b) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  if constexpr (sizeof(T) == 4) CF_STORE("v2.u32", "{%1, %2}", "r"(cf_give(a)), "r"(cf_give(b)));
  if constexpr (sizeof(T) == 8) CF_STORE("v2.u64", "{%1, %2}", "l"(cf_give(a)), "l"(cf_give(b)));
}
template <class T>
CF_DEVICE void cf_st(void* p, T a, T b, T c, T d) {
  static_assert(sizeof(T) == 4);
  CF_STORE("v4.u32", "{%1, %2, %3, %4}",
           "r"(cf_give(a)), "r"(cf_give(b)), "r"(cf_give(c)), "r"(cf_give(d)));
}
template <class T>
CF_DEVICE void cf_st_if(bool on, void* p, T a) {
  if constexpr (sizeof(T) == 1) CF_STORE_IF("2", "u8", "%1", "h"(cf_give(a)));
  if constexpr (sizeof(T) == 2) CF_STORE_IF("2", "u16", "%1", "h"(cf_give(a)));
  if constexpr (sizeof(T) == 4) CF_STORE_IF("2", "u32", "%1", "r"(cf_give(a)));
  if constexpr (sizeof(T) == 8) CF_STORE_IF("2", "u64", "%1", "l"(cf_give(a)));
}
template <class T>
CF_DEVICE void cf_st_if(bool on, void* p, T a, T b) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  if constexpr (sizeof(T) == 4)
    CF_STORE_IF("3", "v2.u32", "{%1, %2}", "r"(cf_give(a)), "r"(cf_give(b)));
  if constexpr (sizeof(T) == 8)
    CF_STORE_IF("3", "v2.u64", "{%1, %2}", "l"(cf_give(a)), "l"(cf_give(b)));
}
template <class T>
CF_DEVICE void cf_st_if(bool on, void* p, T a, T b, T c, T d) {
  static_assert(sizeof(T) == 4);
  CF_STORE_IF("5", "v4.u32", "{%1, %2, %3, %4}",
              "r"(cf_give(a)), "r"(cf_give(b)), "r"(cf_give(c)), "r"(cf_give(d)));
}
// clang-format on
