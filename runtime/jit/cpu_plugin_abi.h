/* The C interface between libchainfold and its CPU plugin, the one place where LLVM and oneTBB are
 * linked. The plugin is opened on demand, so libchainfold neither needs them nor exports their
 * symbols.
 *
 * A compiled launch is one function over a range of thread blocks of the program:
 *     void f(int64_t block_begin, int64_t block_end, const uint64_t* args);
 * args holds one 8-byte slot a kernel parameter, in the program's order: a pointer, or a scalar in
 * the slot's low bytes. The function runs the blocks one after the other, allocates nothing and
 * keeps no state; calls over disjoint ranges may run at once. */
#ifndef CHAINFOLD_RUNTIME_CPU_PLUGIN_ABI_H
#define CHAINFOLD_RUNTIME_CPU_PLUGIN_ABI_H
#include <stddef.h>
#include <stdint.h>

#define CHAINFOLD_CPU_PLUGIN_ABI_VERSION 5u
/* Bytes of the memory for shared arrays that chainfold_arrays gives compiled code, one a thread. */
#define CHAINFOLD_CPU_ARRAY_BYTES 65536u

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*chainfold_cpu_launch)(int64_t block_begin, int64_t block_end, const uint64_t* args);
typedef struct chainfold_cpu_module chainfold_cpu_module;

/* Why a call failed; release with free_error. `line` is the 1-based line of the IR text, 0 if
 * unknown. */
typedef struct chainfold_cpu_error {
  char* message;
  int32_t line;
} chainfold_cpu_error;

/* An object file, which may be kept and loaded by another process on the same host; release with
 * free_object. */
typedef struct chainfold_cpu_object {
  void* data;
  size_t size;
} chainfold_cpu_object;

/* What a compilation spends. Code of both efforts computes the same, bit for bit, but for which
 * NaN. */
typedef enum chainfold_cpu_effort {
  CHAINFOLD_CPU_BASELINE,  /* a fraction of the time: values live in memory, more stack */
  CHAINFOLD_CPU_OPTIMISED, /* O3 */
} chainfold_cpu_effort;

/* What became of a call that may be given up. */
enum { CHAINFOLD_CPU_DONE = 0, CHAINFOLD_CPU_FAILED = 1, CHAINFOLD_CPU_GIVEN_UP = 2 };

typedef struct chainfold_cpu_plugin {
  uint32_t abi_version; /* CHAINFOLD_CPU_PLUGIN_ABI_VERSION */
  uint32_t struct_size; /* sizeof(chainfold_cpu_plugin) */
  const char* llvm_version;
  const char* host_cpu;      /* LLVM's name of this processor, e.g. "znver4" */
  const char* host_features; /* the full feature vector, "+avx2,-sse4a,...", and libraries */
  int32_t vector_bits;       /* widest vector registers worth using: 512, 256 or 128 */
  int32_t threads;           /* what parallel_for uses at most */

  /* Compiles a module of textual LLVM IR for this host. A compilation for which no caller waits has
   * a `given_up`. Where another thread makes that (atomically) other than 0, the compilation ends
   * at its next step. Returns CHAINFOLD_CPU_DONE, _FAILED (`error` is filled) or _GIVEN_UP.
   * Thread-safe. */
  int (*compile)(const char* ir, size_t length, chainfold_cpu_effort effort,
                 const int32_t* given_up, chainfold_cpu_object* object, chainfold_cpu_error* error);
  void (*free_object)(chainfold_cpu_object* object);

  /* Links the bytes of an object and looks `count` symbols up in it. The bytes must be what compile
   * made: the linker trusts them. `stack_bytes`: of the function whose frame has most. Returns 0 on
   * success; otherwise `error` is filled. Thread-safe. */
  int (*load)(const void* data, size_t size, const char* const* symbols, size_t count,
              chainfold_cpu_launch* functions, uint64_t* stack_bytes, chainfold_cpu_module** module,
              chainfold_cpu_error* error);
  void (*destroy)(chainfold_cpu_module* module);
  void (*free_error)(chainfold_cpu_error* error);

  /* Runs (*launch)(b, e, args) over [0, blocks), in ranges of at least `grain` blocks, on all
   * cores; returns when all have run. A shorter range comes first, alone: its time shows whether
   * the others are worth waking threads. Which thread runs which range varies; the set of blocks
   * does not.
   *
   * With a grain of 0 blocks share the work out among themselves. All threads are asked for at
   * once, and each runs a block. A block that starts late finds less to do, or nothing.
   *
   * Each range runs what `launch` points to when it begins. (Another thread may put another
   * compilation of the same function there, atomically.) Each range runs in the default
   * floating-point environment: to nearest, subnormals kept. Returns 0 on success. Otherwise the
   * scheduler found no memory, and some blocks may not have run. */
  int (*parallel_for)(const chainfold_cpu_launch* launch, int64_t blocks, int64_t grain,
                      const uint64_t* args);
  /* Bytes of stack of each thread that parallel_for takes besides the caller's. Thread-safe. */
  uint64_t (*worker_stack)(void);
} chainfold_cpu_plugin;

/* The plugin's one exported symbol. */
typedef const chainfold_cpu_plugin* (*chainfold_cpu_plugin_entry)(void);
#define CHAINFOLD_CPU_PLUGIN_ENTRY "chainfold_cpu_plugin_get"

#ifdef __cplusplus
}
#endif
#endif
