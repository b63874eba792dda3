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

// @helper cf_is_infinite
CF_DEVICE bool cf_is_infinite(float x) { return fabsf(x) == __uint_as_float(0x7f800000u); }
CF_DEVICE bool cf_is_infinite(double x) {
  return fabs(x) == __longlong_as_double(0x7ff0000000000000ll);
}

// NaN if either is NaN, and -0 below +0. Of two equal values only zeros differ in their bits, in
// the sign, which the upper half as an integer tells. Without a branch: a kernel has thousands of
// these, and compilers take their time for each way through. A comparison with NaN is false, so
// that b is taken where it is one.
// @helper cf_min
CF_DEVICE float cf_min(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  const bool beyond = __float_as_int(a) < __float_as_int(b);
  return ((a < b) | ((a == b) & beyond) | !(a == a)) ? a : b;
#endif
}
CF_DEVICE double cf_min(double a, double b) {
  const bool beyond = __double2hiint(a) < __double2hiint(b);
  return ((a < b) | ((a == b) & beyond) | !(a == a)) ? a : b;
}

// @helper cf_max
CF_DEVICE float cf_max(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  const bool beyond = __float_as_int(a) > __float_as_int(b);
  return ((a > b) | ((a == b) & beyond) | !(a == a)) ? a : b;
#endif
}
CF_DEVICE double cf_max(double a, double b) {
  const bool beyond = __double2hiint(a) > __double2hiint(b);
  return ((a > b) | ((a == b) & beyond) | !(a == a)) ? a : b;
}

// powf errs by up to 4 ulp; through f64 it stays within the 2 that are promised.
// @helper cf_powf
CF_DEVICE float cf_powf(float a, float b) { return (float)pow((double)a, (double)b); }
