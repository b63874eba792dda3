// @helper CF_DEVICE
// Loads and stores of global memory: one instruction each, of up to 16 bytes, predicated by `on`
// instead of branched around; a load that is off gives zeros. cf_ldg reads what no launch writes
// (the read-only path), cf_ld reads scratch, and inputs that may lie in an output's memory. They
// are volatile so that loads stay where the program issues them, all before the first use.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// clang-format off
// An instruction that runs where operand N is not 0.
// @helper CF_PREDICATED
#define CF_PREDICATED(N, INSTR) \
  "{\n\t.reg .pred q;\n\tsetp.ne.u32 q, %" N ", 0;\n\t@q " INSTR "\n\t}"

// Loads as NAME and NAME_if of 1, 2 and 4 values: T is their C++ type, P their type in PTX, C the
// register class, R the register's type where T is narrower, and the rest what INSTR clobbers.
// @helper CF_LOADS
#define CF_LOAD_1(NAME, T, R, P, C, INSTR, ...)                                                    \
  CF_DEVICE void NAME(const void* p, T& a) {                                                       \
    R r;                                                                                           \
    asm volatile(INSTR "." P " %0, [%1];" : "=" C(r) : "l"(p) __VA_ARGS__);                        \
    a = (T)r;                                                                                      \
  }                                                                                                \
  CF_DEVICE void NAME##_if(bool on, const void* p, T& a) {                                         \
    R r = 0;                                                                                       \
    asm volatile(CF_PREDICATED("2", INSTR "." P " %0, [%1];")                                      \
                 : "+" C(r) : "l"(p), "r"((unsigned)on) __VA_ARGS__);                              \
    a = (T)r;                                                                                      \
  }
#define CF_LOAD_2(NAME, T, P, C, INSTR, ...)                                                       \
  CF_DEVICE void NAME(const void* p, T& a, T& b) {                                                 \
    asm volatile(INSTR ".v2." P " {%0, %1}, [%2];" : "=" C(a), "=" C(b) : "l"(p) __VA_ARGS__);     \
  }                                                                                                \
  CF_DEVICE void NAME##_if(bool on, const void* p, T& a, T& b) {                                   \
    a = b = 0;                                                                                     \
    asm volatile(CF_PREDICATED("3", INSTR ".v2." P " {%0, %1}, [%2];")                             \
                 : "+" C(a), "+" C(b) : "l"(p), "r"((unsigned)on) __VA_ARGS__);                    \
  }
#define CF_LOAD_4(NAME, T, P, C, INSTR, ...)                                                       \
  CF_DEVICE void NAME(const void* p, T& a, T& b, T& c, T& d) {                                     \
    asm volatile(INSTR ".v4." P " {%0, %1, %2, %3}, [%4];"                                         \
                 : "=" C(a), "=" C(b), "=" C(c), "=" C(d) : "l"(p) __VA_ARGS__);                   \
  }                                                                                                \
  CF_DEVICE void NAME##_if(bool on, const void* p, T& a, T& b, T& c, T& d) {                       \
    a = b = c = d = 0;                                                                             \
    asm volatile(CF_PREDICATED("5", INSTR ".v4." P " {%0, %1, %2, %3}, [%4];")                     \
                 : "+" C(a), "+" C(b), "+" C(c), "+" C(d)                                          \
                 : "l"(p), "r"((unsigned)on) __VA_ARGS__);                                         \
  }
#define CF_LOAD_12(NAME, T, P, C, INSTR, ...)                                                      \
  CF_LOAD_1(NAME, T, T, P, C, INSTR, __VA_ARGS__) CF_LOAD_2(NAME, T, P, C, INSTR, __VA_ARGS__)
#define CF_LOADS(NAME, INSTR, ...)                                                                 \
  CF_LOAD_1(NAME, signed char, short, "s8", "h", INSTR, __VA_ARGS__)                               \
  CF_LOAD_1(NAME, unsigned char, unsigned short, "u8", "h", INSTR, __VA_ARGS__)                    \
  CF_LOAD_1(NAME, short, short, "s16", "h", INSTR, __VA_ARGS__)                                    \
  CF_LOAD_1(NAME, unsigned short, unsigned short, "u16", "h", INSTR, __VA_ARGS__)                  \
  CF_LOAD_12(NAME, int, "s32", "r", INSTR, __VA_ARGS__)                                            \
  CF_LOAD_4(NAME, int, "s32", "r", INSTR, __VA_ARGS__)                                             \
  CF_LOAD_12(NAME, unsigned, "u32", "r", INSTR, __VA_ARGS__)                                       \
  CF_LOAD_4(NAME, unsigned, "u32", "r", INSTR, __VA_ARGS__)                                        \
  CF_LOAD_12(NAME, float, "f32", "f", INSTR, __VA_ARGS__)                                          \
  CF_LOAD_4(NAME, float, "f32", "f", INSTR, __VA_ARGS__)                                           \
  CF_LOAD_12(NAME, long long, "s64", "l", INSTR, __VA_ARGS__)                                      \
  CF_LOAD_12(NAME, unsigned long long, "u64", "l", INSTR, __VA_ARGS__)                             \
  CF_LOAD_12(NAME, double, "f64", "d", INSTR, __VA_ARGS__)

// @helper cf_ldg cf_ldg_if
CF_LOADS(cf_ldg, "ld.global.nc", )

// Scratch was written by an earlier launch, or by a block that was waited for; "memory" keeps the
// access on its side of barriers, waits and stores.
// @helper cf_ld cf_ld_if
CF_LOADS(cf_ld, "ld.global", : "memory")

// What loads ask of the second-level cache: to be kept longer than what is stored, or nothing. The
// words are those that createpolicy makes for evict_last and evict_normal.
// @helper cf_keeps
CF_DEVICE unsigned long long cf_keeps(bool on) {
  return on ? 0x14f0000000000000ull : 0x1000000000000000ull;
}

// As cf_ld, 16 bytes under such a word.
// @helper cf_ld_kept cf_ld_kept_if
#define CF_KEPT_2(T, P, C)                                                                         \
  CF_DEVICE void cf_ld_kept(const void* p, unsigned long long hint, T& a, T& b) {                  \
    asm volatile("ld.global.L2::cache_hint.v2." P " {%0, %1}, [%2], %3;"                           \
                 : "=" C(a), "=" C(b) : "l"(p), "l"(hint) : "memory");                             \
  }                                                                                                \
  CF_DEVICE void cf_ld_kept_if(bool on, const void* p, unsigned long long hint, T& a, T& b) {      \
    a = b = 0;                                                                                     \
    asm volatile(CF_PREDICATED("3", "ld.global.L2::cache_hint.v2." P " {%0, %1}, [%2], %4;")       \
                 : "+" C(a), "+" C(b) : "l"(p), "r"((unsigned)on), "l"(hint) : "memory");          \
  }
#define CF_KEPT_4(T, P, C)                                                                         \
  CF_DEVICE void cf_ld_kept(const void* p, unsigned long long hint, T& a, T& b, T& c, T& d) {      \
    asm volatile("ld.global.L2::cache_hint.v4." P " {%0, %1, %2, %3}, [%4], %5;"                   \
                 : "=" C(a), "=" C(b), "=" C(c), "=" C(d) : "l"(p), "l"(hint) : "memory");         \
  }                                                                                                \
  CF_DEVICE void cf_ld_kept_if(bool on, const void* p, unsigned long long hint, T& a, T& b, T& c,  \
                               T& d) {                                                             \
    a = b = c = d = 0;                                                                             \
    asm volatile(CF_PREDICATED("5",                                                                \
                               "ld.global.L2::cache_hint.v4." P " {%0, %1, %2, %3}, [%4], %6;")    \
                 : "+" C(a), "+" C(b), "+" C(c), "+" C(d)                                          \
                 : "l"(p), "r"((unsigned)on), "l"(hint) : "memory");                               \
  }
CF_KEPT_4(int, "s32", "r") CF_KEPT_4(unsigned, "u32", "r") CF_KEPT_4(float, "f32", "f")
CF_KEPT_2(long long, "s64", "l") CF_KEPT_2(unsigned long long, "u64", "l")
CF_KEPT_2(double, "f64", "d")

// @helper cf_st cf_st_if
#define CF_STORE_1(T, P, C)                                                                        \
  CF_DEVICE void cf_st(void* p, T a) {                                                             \
    asm volatile("st.global." P " [%0], %1;" : : "l"(p), C(a) : "memory");                         \
  }                                                                                                \
  CF_DEVICE void cf_st_if(bool on, void* p, T a) {                                                 \
    asm volatile(CF_PREDICATED("2", "st.global." P " [%0], %1;")                                   \
                 : : "l"(p), C(a), "r"((unsigned)on) : "memory");                                  \
  }
#define CF_STORE_2(T, P, C)                                                                        \
  CF_DEVICE void cf_st(void* p, T a, T b) {                                                        \
    asm volatile("st.global.v2." P " [%0], {%1, %2};" : : "l"(p), C(a), C(b) : "memory");          \
  }                                                                                                \
  CF_DEVICE void cf_st_if(bool on, void* p, T a, T b) {                                            \
    asm volatile(CF_PREDICATED("3", "st.global.v2." P " [%0], {%1, %2};")                          \
                 : : "l"(p), C(a), C(b), "r"((unsigned)on) : "memory");                            \
  }
#define CF_STORE_4(T, P, C)                                                                        \
  CF_DEVICE void cf_st(void* p, T a, T b, T c, T d) {                                              \
    asm volatile("st.global.v4." P " [%0], {%1, %2, %3, %4};"                                      \
                 : : "l"(p), C(a), C(b), C(c), C(d) : "memory");                                   \
  }                                                                                                \
  CF_DEVICE void cf_st_if(bool on, void* p, T a, T b, T c, T d) {                                  \
    asm volatile(CF_PREDICATED("5", "st.global.v4." P " [%0], {%1, %2, %3, %4};")                  \
                 : : "l"(p), C(a), C(b), C(c), C(d), "r"((unsigned)on) : "memory");                \
  }
// A store of one byte takes the low bits of a wider register.
CF_DEVICE void cf_st(void* p, unsigned char a) {
  asm volatile("st.global.u8 [%0], %1;" : : "l"(p), "h"((unsigned short)a) : "memory");
}
CF_DEVICE void cf_st_if(bool on, void* p, unsigned char a) {
  asm volatile(CF_PREDICATED("2", "st.global.u8 [%0], %1;")
               : : "l"(p), "h"((unsigned short)a), "r"((unsigned)on) : "memory");
}
CF_DEVICE void cf_st(void* p, signed char a) { cf_st(p, (unsigned char)a); }
CF_DEVICE void cf_st_if(bool on, void* p, signed char a) { cf_st_if(on, p, (unsigned char)a); }
CF_STORE_1(short, "s16", "h") CF_STORE_1(unsigned short, "u16", "h")
CF_STORE_1(int, "s32", "r") CF_STORE_2(int, "s32", "r") CF_STORE_4(int, "s32", "r")
CF_STORE_1(unsigned, "u32", "r") CF_STORE_2(unsigned, "u32", "r") CF_STORE_4(unsigned, "u32", "r")
CF_STORE_1(float, "f32", "f") CF_STORE_2(float, "f32", "f") CF_STORE_4(float, "f32", "f")
CF_STORE_1(long long, "s64", "l") CF_STORE_2(long long, "s64", "l")
CF_STORE_1(unsigned long long, "u64", "l") CF_STORE_2(unsigned long long, "u64", "l")
CF_STORE_1(double, "f64", "d") CF_STORE_2(double, "f64", "d")
    // clang-format on
