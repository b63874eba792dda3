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
