// @helper CF_DEVICE
// Loads and stores of shared memory, of up to 16 bytes at once.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// @helper cf_vector
template <class T, int N>
struct alignas(sizeof(T) * N) cf_vector {
  T e[N];
};

// Predicated like loads of global memory.
// @helper cf_lds cf_lds_if
#define CF_SHARED(p) "r"(cf_shared_address(p))
CF_LOADS(cf_lds, CF_SHARED, "ld.shared", : "memory")

// @helper cf_sts
template <class T>
CF_DEVICE void cf_sts(void* p, T a) {
  *(T*)p = a;
}
template <class T>
CF_DEVICE void cf_sts(void* p, T a, T b) {
  *(cf_vector<T, 2>*)p = {{a, b}};
}
template <class T>
CF_DEVICE void cf_sts(void* p, T a, T b, T c, T d) {
  *(cf_vector<T, 4>*)p = {{a, b, c, d}};
}

// @helper cf_sts_if
template <class... Ts>
CF_DEVICE void cf_sts_if(bool on, void* p, Ts... values) {
  if (on) cf_sts(p, values...);
}
