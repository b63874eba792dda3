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

// @helper cf_lds
template <class T>
CF_DEVICE void cf_lds(const void* p, T& a) {
  a = *(const T*)p;
}
template <class T>
CF_DEVICE void cf_lds(const void* p, T& a, T& b) {
  const cf_vector<T, 2> v = *(const cf_vector<T, 2>*)p;
  a = v.e[0], b = v.e[1];
}
template <class T>
CF_DEVICE void cf_lds(const void* p, T& a, T& b, T& c, T& d) {
  const cf_vector<T, 4> v = *(const cf_vector<T, 4>*)p;
  a = v.e[0], b = v.e[1], c = v.e[2], d = v.e[3];
}

// @helper cf_lds_if
template <class T, class... Ts>
CF_DEVICE void cf_lds_if(bool on, const void* p, T& a, Ts&... rest) {
  a = T(0);
  ((rest = T(0)), ...);
  if (on) cf_lds(p, a, rest...);
}

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
