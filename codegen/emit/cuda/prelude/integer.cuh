// @helper CF_DEVICE
// Integer arithmetic as base/ops.hpp defines it where operators of C++ do not. Elements of one and
// two bytes are promoted to int by the caller and cast back. Pure C++: tests run these on the host
// as well.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// ptxas 13.0 drops the sign where it makes one three-way minimum (VIMNMX3, sm_90 and later) of
// minima of negated 32-bit numbers. It does not see through lop3, so the complement comes from
// there.
// @helper cf_neg
CF_DEVICE unsigned cf_neg(unsigned a) {
#ifdef __CUDA_ARCH__
  asm("lop3.b32 %0, %1, 0, 0, 0x0f;" : "=r"(a) : "r"(a));
  return a + 1u;
#else
  return 0u - a;
#endif
}
CF_DEVICE int cf_neg(int a) { return (int)cf_neg((unsigned)a); }
CF_DEVICE long long cf_neg(long long a) { return (long long)(0ull - (unsigned long long)a); }
CF_DEVICE unsigned long long cf_neg(unsigned long long a) { return 0ull - a; }

// @helper cf_abs
CF_DEVICE int cf_abs(int a) { return a < 0 ? (int)(0u - (unsigned)a) : a; }
CF_DEVICE long long cf_abs(long long a) {
  return a < 0 ? (long long)(0ull - (unsigned long long)a) : a;
}

// x / 0 = 0; dividing by -1 is negating, which unlike the quotient cannot overflow.
// @helper cf_div
CF_DEVICE int cf_div(int a, int b) { return b == 0 ? 0 : b == -1 ? cf_neg(a) : a / b; }
CF_DEVICE long long cf_div(long long a, long long b) {
  return b == 0 ? 0 : b == -1 ? cf_neg(a) : a / b;
}
CF_DEVICE unsigned cf_div(unsigned a, unsigned b) { return b == 0 ? 0 : a / b; }
CF_DEVICE unsigned long long cf_div(unsigned long long a, unsigned long long b) {
  return b == 0 ? 0 : a / b;
}

// x % 0 = x; x % -1 = 0.
// @helper cf_rem
CF_DEVICE int cf_rem(int a, int b) { return b == 0 ? a : b == -1 ? 0 : a % b; }
CF_DEVICE long long cf_rem(long long a, long long b) { return b == 0 ? a : b == -1 ? 0 : a % b; }
CF_DEVICE unsigned cf_rem(unsigned a, unsigned b) { return b == 0 ? a : a % b; }
CF_DEVICE unsigned long long cf_rem(unsigned long long a, unsigned long long b) {
  return b == 0 ? a : a % b;
}

// @helper cf_clamp
CF_DEVICE int cf_clamp(int x, int lo, int hi) { return x < lo ? lo : x > hi ? hi : x; }

// Elements of one and two bytes, packed in 32-bit words with the first element in the low bits.
// @helper cf_pack2
CF_DEVICE unsigned cf_pack2(unsigned short a, unsigned short b) { return a | (unsigned)b << 16; }

// @helper cf_pack4
CF_DEVICE unsigned cf_pack4(unsigned char a, unsigned char b, unsigned char c, unsigned char d) {
  return a | (unsigned)b << 8 | (unsigned)c << 16 | (unsigned)d << 24;
}

// Minima and maxima of packed elements. From sm_90 on one instruction has two of 16 bits. Of bytes
// it compares the odd ones, whose neighbours below only tell between equal ones, and once more the
// even ones, moved up.
// @helper CF_EXTREME_X4
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CF_EXTREME_X4(NAME, INSTRUCTION, TYPE, ORDER)                        \
  CF_DEVICE unsigned NAME(unsigned a, unsigned b) {                          \
    unsigned odd, even;                                                      \
    asm(INSTRUCTION " %0, %1, %2;" : "=r"(odd) : "r"(a), "r"(b));            \
    asm(INSTRUCTION " %0, %1, %2;" : "=r"(even) : "r"(a << 8), "r"(b << 8)); \
    return __byte_perm(even, odd, 0x7351);                                   \
  }
#else
#define CF_EXTREME_X4(NAME, INSTRUCTION, TYPE, ORDER) CF_EXTREME_OF(NAME, TYPE, ORDER)
#endif

// @helper CF_EXTREME_X2
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CF_EXTREME_X2(NAME, INSTRUCTION, TYPE, ORDER)              \
  CF_DEVICE unsigned NAME(unsigned a, unsigned b) {                \
    unsigned word;                                                 \
    asm(INSTRUCTION " %0, %1, %2;" : "=r"(word) : "r"(a), "r"(b)); \
    return word;                                                   \
  }
#else
#define CF_EXTREME_X2(NAME, INSTRUCTION, TYPE, ORDER) CF_EXTREME_OF(NAME, TYPE, ORDER)
#endif

// Before sm_90, one element after the other.
// @helper CF_EXTREME_OF
#define CF_EXTREME_OF(NAME, TYPE, ORDER)                       \
  CF_DEVICE unsigned NAME(unsigned a, unsigned b) {            \
    const unsigned ones = sizeof(TYPE) == 1 ? 0xffu : 0xffffu; \
    unsigned word = 0;                                         \
    for (int at = 0; at < 32; at += 8 * (int)sizeof(TYPE)) {   \
      const TYPE x = (TYPE)(a >> at), y = (TYPE)(b >> at);     \
      word |= ((unsigned)(x ORDER y ? x : y) & ones) << at;    \
    }                                                          \
    return word;                                               \
  }

// @helper cf_min_i8x4
CF_EXTREME_X4(cf_min_i8x4, "min.s16x2", signed char, <)

// @helper cf_min_u8x4
CF_EXTREME_X4(cf_min_u8x4, "min.u16x2", unsigned char, <)

// @helper cf_min_i16x2
CF_EXTREME_X2(cf_min_i16x2, "min.s16x2", short, <)

// @helper cf_min_u16x2
CF_EXTREME_X2(cf_min_u16x2, "min.u16x2", unsigned short, <)

// @helper cf_max_i8x4
CF_EXTREME_X4(cf_max_i8x4, "max.s16x2", signed char, >)

// @helper cf_max_u8x4
CF_EXTREME_X4(cf_max_u8x4, "max.u16x2", unsigned char, >)

// @helper cf_max_i16x2
CF_EXTREME_X2(cf_max_i16x2, "max.s16x2", short, >)

// @helper cf_max_u16x2
CF_EXTREME_X2(cf_max_u16x2, "max.u16x2", unsigned short, >)

// Lane l's word of a constant fragment: `bits` in the lanes that `lanes` names, else 0.
// @helper cf_lanes
CF_DEVICE unsigned cf_lanes(unsigned lanes, int lane, unsigned bits) {
  return (lanes >> lane & 1u) ? bits : 0u;
}

// Both values are there whichever is taken, so that whatever exchanges lanes for them is done by
// all.
// @helper cf_either
template <class T>
CF_DEVICE T cf_either(unsigned lanes, int lane, T taken, T other) {
  return (lanes >> lane & 1u) ? taken : other;
}

// Entry `lane` of a table of 32 lane numbers, kept as its five bit planes.
// @helper cf_table
CF_DEVICE int cf_table(int lane, unsigned p0, unsigned p1, unsigned p2, unsigned p3, unsigned p4) {
  return (int)((p0 >> lane & 1u) | (p1 >> lane & 1u) << 1 | (p2 >> lane & 1u) << 2 |
               (p3 >> lane & 1u) << 3 | (p4 >> lane & 1u) << 4);
}
