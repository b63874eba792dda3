// @helper CF_DEVICE
// Additions that blocks make to the same elements. The fenced form shows what this lane stored
// before it to whoever sees its addition by another fenced one.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// @helper cf_atomic_add
CF_DEVICE int cf_atomic_add(bool on, int* p, int v) { return on ? atomicAdd(p, v) : 0; }
CF_DEVICE unsigned cf_atomic_add(bool on, unsigned* p, unsigned v) {
  return on ? atomicAdd(p, v) : 0u;
}
CF_DEVICE float cf_atomic_add(bool on, float* p, float v) { return on ? atomicAdd(p, v) : 0.0f; }
CF_DEVICE double cf_atomic_add(bool on, double* p, double v) { return on ? atomicAdd(p, v) : 0.0; }
CF_DEVICE unsigned long long cf_atomic_add(bool on, unsigned long long* p, unsigned long long v) {
  return on ? atomicAdd(p, v) : 0ull;
}
CF_DEVICE long long cf_atomic_add(bool on, long long* p, long long v) {
  return (long long)cf_atomic_add(on, (unsigned long long*)p, (unsigned long long)v);
}

// @helper cf_atomic_add_fenced
template <class T>
CF_DEVICE T cf_atomic_add_fenced(bool on, T* p, T v) {
  __threadfence();
  const T before = cf_atomic_add(on, p, v);
  __threadfence();
  return before;
}
