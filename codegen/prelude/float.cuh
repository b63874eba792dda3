// @helper CF_DEVICE
// What floats need beyond the built-in functions.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// @helper cf_is_finite
CF_DEVICE bool cf_is_finite(float x) { return fabsf(x) < __uint_as_float(0x7f800000u); }
CF_DEVICE bool cf_is_finite(double x) {
  return fabs(x) < __longlong_as_double(0x7ff0000000000000ll);
}

// NaN if either is NaN, and -0 below +0. Of two equal values only zeros differ in their bits, in
// the sign: "or" takes the negative one, "and" the positive one.
// @helper cf_min
CF_DEVICE float cf_min(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  if (!(a == a && b == b)) return __uint_as_float(0x7fffffffu);
  if (a == b) return __uint_as_float(__float_as_uint(a) | __float_as_uint(b));
  return a < b ? a : b;
#endif
}
CF_DEVICE double cf_min(double a, double b) {
  if (!(a == a && b == b)) return __longlong_as_double(0x7fffffffffffffffll);
  if (a == b) return __longlong_as_double(__double_as_longlong(a) | __double_as_longlong(b));
  return a < b ? a : b;
}

// @helper cf_max
CF_DEVICE float cf_max(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  if (!(a == a && b == b)) return __uint_as_float(0x7fffffffu);
  if (a == b) return __uint_as_float(__float_as_uint(a) & __float_as_uint(b));
  return a > b ? a : b;
#endif
}
CF_DEVICE double cf_max(double a, double b) {
  if (!(a == a && b == b)) return __longlong_as_double(0x7fffffffffffffffll);
  if (a == b) return __longlong_as_double(__double_as_longlong(a) & __double_as_longlong(b));
  return a > b ? a : b;
}

// powf errs by up to 4 ulp; through f64 it stays within the 2 that are promised.
// @helper cf_powf
CF_DEVICE float cf_powf(float a, float b) { return (float)pow((double)a, (double)b); }
