// @helper CF_DEVICE
// Conversions to integers, truncated and saturated, NaN to 0; and from and to bf16, whose bits are
// kept in an unsigned short, with one rounding, to nearest even.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// The instruction saturates by itself, but takes NaN to 0 only from f32 to 32 bits (PTX ISA 9.0,
// cvt).
// @helper cf_i32_of
CF_DEVICE int cf_i32_of(float x) { return __float2int_rz(x); }
CF_DEVICE int cf_i32_of(double x) { return x != x ? 0 : __double2int_rz(x); }

// @helper cf_u32_of
CF_DEVICE unsigned cf_u32_of(float x) { return __float2uint_rz(x); }
CF_DEVICE unsigned cf_u32_of(double x) { return x != x ? 0 : __double2uint_rz(x); }

// @helper cf_i64_of
CF_DEVICE long long cf_i64_of(float x) { return x != x ? 0 : __float2ll_rz(x); }
CF_DEVICE long long cf_i64_of(double x) { return x != x ? 0 : __double2ll_rz(x); }

// @helper cf_u64_of
CF_DEVICE unsigned long long cf_u64_of(float x) { return x != x ? 0 : __float2ull_rz(x); }
CF_DEVICE unsigned long long cf_u64_of(double x) { return x != x ? 0 : __double2ull_rz(x); }

// An element of a packed word of narrow integers, which `picked` (__byte_perm) brings below the
// upper byte of 2^23. There the last place of an f32 is 1, and what the integers were moved up by
// and 2^23 are taken off again. The instructions for it take a fraction of those that convert.
// @helper cf_f32_of_i8
CF_DEVICE float cf_f32_of_i8(unsigned word, unsigned picked) {
  const unsigned bits = __byte_perm(word ^ 0x80808080u, 0x4b000000u, picked);
  return __uint_as_float(bits) - 8388736.0f;
}

// @helper cf_f32_of_u8
CF_DEVICE float cf_f32_of_u8(unsigned word, unsigned picked) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, picked)) - 8388608.0f;
}

// @helper cf_f32_of_i16
CF_DEVICE float cf_f32_of_i16(unsigned word, unsigned picked) {
  const unsigned bits = __byte_perm(word ^ 0x80008000u, 0x4b000000u, picked);
  return __uint_as_float(bits) - 8421376.0f;
}

// @helper cf_f32_of_u16
CF_DEVICE float cf_f32_of_u16(unsigned word, unsigned picked) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, picked)) - 8388608.0f;
}

// @helper cf_f32_of_bf16
CF_DEVICE float cf_f32_of_bf16(unsigned short x) { return __uint_as_float((unsigned)x << 16); }

// @helper cf_bf16_of_f32
CF_DEVICE unsigned short cf_bf16_of_f32(float x) {
#if __CUDA_ARCH__ >= 800
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#else
  // To nearest even by carry: the half below the cut, less one where the kept part is even.
  const unsigned bits = __float_as_uint(x);
  return x != x ? 0x7fff : (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}

// @helper cf_bf16x2_of_f32
CF_DEVICE unsigned cf_bf16x2_of_f32(float lo, float hi) {
#if __CUDA_ARCH__ >= 800
  unsigned y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
  return y;
#else
  return cf_bf16_of_f32(lo) | (unsigned)cf_bf16_of_f32(hi) << 16;
#endif
}

// By way of f32 rounded to odd: cut off, and the last bit set if that lost anything. The rounding
// to bf16 is then the only one, because no inexact value looks like a tie.
// @helper cf_bf16_of_f64
CF_DEVICE unsigned short cf_bf16_of_f64(double x) {
  const float cut = __double2float_rz(x);
  const bool exact = (double)cut == x || x != x;
  return cf_bf16_of_f32(exact ? cut : __uint_as_float(__float_as_uint(cut) | 1u));
}

// A magnitude cut to f32 converts back without overflow.
// @helper cf_bf16_of_integer
CF_DEVICE unsigned short cf_bf16_of_integer(long long x) {
  const float cut = __ll2float_rz(x);
  const bool exact = __float2ll_rz(cut) == x;
  return cf_bf16_of_f32(exact ? cut : __uint_as_float(__float_as_uint(cut) | 1u));
}
CF_DEVICE unsigned short cf_bf16_of_integer(unsigned long long x) {
  const float cut = __ull2float_rz(x);
  const bool exact = __float2ull_rz(cut) == x;
  return cf_bf16_of_f32(exact ? cut : __uint_as_float(__float_as_uint(cut) | 1u));
}
