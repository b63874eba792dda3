// @helper CF_DEVICE
// How blocks of a launch wait for each other. A slot's publication is a release and a wait an
// acquire, of the whole device: stores of the publishing warp are visible to loads behind the wait
// in every lane of the waiting one. That takes the barriers of both warps too, since only one lane
// publishes a slot and only one looks at it.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// Not atomicAdd: the compiler would first count the lanes that come to it, of which there is one.
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
