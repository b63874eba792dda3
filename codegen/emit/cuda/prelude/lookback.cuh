// @helper CF_DEVICE
// How blocks of a launch wait for each other. Slots without values: a publication is a release and
// a wait an acquire, of the whole device: stores of the publishing warp are visible to loads behind
// the wait in every lane of the waiting one. That takes the barriers of both warps too, since only
// one lane publishes a slot and only one looks at it. Slots with values order nothing: each word of
// theirs is stored and loaded whole, its mark with it.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// The clobber keeps loads and stores on their side, which atomicAdd would not.
// @helper cf_next_ticket
CF_DEVICE long long cf_next_ticket(long long* counter) {
  long long taken;
  asm volatile("atom.global.add.u64 %0, [%1], 1;" : "=l"(taken) : "l"(counter) : "memory");
  return taken;
}

// @helper cf_ticket_of_warp
CF_DEVICE long long cf_ticket_of_warp(int lane, long long* counter) {
  __syncwarp();
  long long taken = 0;
  if (lane == 0) taken = cf_next_ticket(counter);
  return __shfl_sync(0xffffffffu, taken, 0);
}

// The first barrier also says that everybody has read the ticket before this one.
// @helper cf_ticket
CF_DEVICE long long cf_ticket(long long* counter, long long* word) {
  __syncthreads();
  if (threadIdx.x == 0) *word = cf_next_ticket(counter);
  __syncthreads();
  return *word;
}

// @helper cf_publish
CF_DEVICE void cf_publish(int lane, int* slot) {
  __syncwarp();
  if (lane == 0) asm volatile("st.release.gpu.global.s32 [%0], 1;" : : "l"(slot) : "memory");
}

// Lane l looks at slot l, and no more once it has seen it. Most waits are short: only long ones
// leave the memory alone for a while.
// @helper cf_await
CF_DEVICE void cf_await(int lane, const int* slots, long long count, long long ticket,
                        long long publisher, long long stride) {
  bool waits = lane < count && publisher + lane * stride < ticket;
  for (int polls = 0;; ++polls) {
    int published = 1;
    asm volatile(
        "{\n\t.reg .pred q;\n\tsetp.ne.u32 q, %2, 0;\n\t@q ld.acquire.gpu.global.s32 %0, [%1];\n\t}"
        : "+r"(published)
        : "l"(slots + lane), "r"((unsigned)waits)
        : "memory");
    waits = published == 0;
    if (!__any_sync(0xffffffffu, waits)) break;
    if (polls >= 8) __nanosleep(32);
  }
  __syncwarp();
}

// @helper cf_payload
template <class T>
CF_DEVICE unsigned long long cf_payload(T value) {
  unsigned long long payload = 0;
  memcpy(&payload, &value, sizeof(T));
  return payload;
}

// @helper cf_of_payload
template <class T>
CF_DEVICE T cf_of_payload(unsigned long long payload) {
  T value;
  memcpy(&value, &payload, sizeof(T));
  return value;
}

// PTX has accesses of 128 bits since CUDA 12.3. Before, a vector of that size is the same
// instruction of the machine.
// @helper cf_publish_word
CF_DEVICE void cf_publish_word(int lane, long long* word, unsigned long long payload) {
  if (lane == 0) {
    asm volatile(
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1203
        "{\n\t.reg .b128 w;\n\tmov.b128 w, {%1, %2};\n\t"
        "st.relaxed.gpu.global.b128 [%0], w;\n\t}"
#else
        "st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};"
#endif
        :
        : "l"(word), "l"(payload), "l"(1ull)
        : "memory");
  }
}

// Lane l looks at slot l, of N words, and no more once it has seen it.
// @helper cf_await_words
template <int N>
CF_DEVICE void cf_await_words(int lane, const long long* records, long long count, long long ticket,
                              long long publisher, long long stride,
                              unsigned long long (&words)[N]) {
  const bool wanted = lane < count && publisher + lane * stride < ticket;
  const long long* record = records + lane * (2 * N);
  unsigned long long marks[N];
#pragma unroll
  for (int w = 0; w < N; ++w) {
    words[w] = 0;
    marks[w] = !wanted;
  }
  for (int polls = 0;; ++polls) {
    bool waits = false;
#pragma unroll
    for (int w = 0; w < N; ++w) {
      asm volatile(
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1203
          "{\n\t.reg .pred q;\n\t.reg .b128 w;\n\tsetp.eq.u64 q, %1, 0;\n\t"
          "mov.b128 w, {%0, %1};\n\t@q ld.relaxed.gpu.global.b128 w, [%2];\n\t"
          "mov.b128 {%0, %1}, w;\n\t}"
#else
          "{\n\t.reg .pred q;\n\tsetp.eq.u64 q, %1, 0;\n\t"
          "@q ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];\n\t}"
#endif
          : "+l"(words[w]), "+l"(marks[w])
          : "l"(record + 2 * w)
          : "memory");
    }
#pragma unroll
    for (int w = 0; w < N; ++w) waits = waits || marks[w] == 0;
    if (!__any_sync(0xffffffffu, waits)) break;
    if (polls >= 8) __nanosleep(32);
  }
}
