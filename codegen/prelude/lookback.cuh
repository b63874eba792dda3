// @helper CF_DEVICE
// How blocks of a launch wait for each other. A slot's publication is a release and a wait an
// acquire, of the whole device: stores of the publishing warp are visible to loads behind the wait
// in every lane of the waiting one. That takes the barriers of both warps too, since only one lane
// publishes a slot and only one looks at it.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// @helper cf_ticket_of_warp
CF_DEVICE long long cf_ticket_of_warp(int lane, long long* counter) {
  unsigned long long taken = 0;
  if (lane == 0) taken = atomicAdd((unsigned long long*)counter, 1ull);
  return (long long)__shfl_sync(0xffffffffu, taken, 0);
}

// The first barrier also says that everybody has read the ticket before this one.
// @helper cf_ticket
CF_DEVICE long long cf_ticket(long long* counter, long long* word) {
  __syncthreads();
  if (threadIdx.x == 0) *word = (long long)atomicAdd((unsigned long long*)counter, 1ull);
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
