// @helper CF_DEVICE
// Conversions from and to f16, whose bits are kept in an unsigned short; one rounding, to nearest
// even.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// @helper cf_f32_of_f16
CF_DEVICE float cf_f32_of_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}

// The elements of packed words, the first in the low bits.
// @helper cf_f32x2_of_f16
CF_DEVICE void cf_f32x2_of_f16(unsigned x, float& a, float& b) {
  asm("{\n\t.reg .b16 l, h;\n\tmov.b32 {l, h}, %2;\n\t"
      "cvt.f32.f16 %0, l;\n\tcvt.f32.f16 %1, h;\n\t}"
      : "=f"(a), "=f"(b)
      : "r"(x));
}

// @helper cf_f32x8_of_f16
#define CF_WIDEN(X, A, B) \
  "mov.b32 {l, h}, %" X ";\n\tcvt.f32.f16 %" A ", l;\n\tcvt.f32.f16 %" B ", h;\n\t"
CF_DEVICE void cf_f32x8_of_f16(unsigned x, unsigned y, unsigned z, unsigned w, float& a, float& b,
                               float& c, float& d, float& e, float& f, float& g, float& h) {
  asm("{\n\t.reg .b16 l, h;\n\t" CF_WIDEN("8", "0", "1") CF_WIDEN("9", "2", "3")
          CF_WIDEN("10", "4", "5") CF_WIDEN("11", "6", "7") "}"
      : "=f"(a), "=f"(b), "=f"(c), "=f"(d), "=f"(e), "=f"(f), "=f"(g), "=f"(h)
      : "r"(x), "r"(y), "r"(z), "r"(w));
}

// @helper cf_f16_of_f32
CF_DEVICE unsigned short cf_f16_of_f32(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}

// @helper cf_f16_of_f64
CF_DEVICE unsigned short cf_f16_of_f64(double x) {
  unsigned short y;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y) : "d"(x));
  return y;
}

// Two at once, the first in the low bits.
// @helper cf_f16x2_of_f32
CF_DEVICE unsigned cf_f16x2_of_f32(float lo, float hi) {
#if __CUDA_ARCH__ >= 800
  unsigned y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
  return y;
#else
  return cf_f16_of_f32(lo) | (unsigned)cf_f16_of_f32(hi) << 16;
#endif
}
