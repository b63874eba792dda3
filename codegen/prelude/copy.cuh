// @helper CF_DEVICE
// Copies from global to shared memory that run beside the warp: by the copy engine (sm_90 and
// later) or by lanes. A slot is an mbarrier; its phases are the slot's copies. See "Asynchronous
// copies" in the PTX ISA.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// @helper cf_misalignment
template <int UNIT, class T>
CF_DEVICE long long cf_misalignment(const T* p) {
  return (long long)(((unsigned long long)p & (UNIT - 1)) / sizeof(T));
}

// @helper cf_shared_address
CF_DEVICE unsigned cf_shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}

// @helper cf_ring_start
CF_DEVICE void cf_ring_start(unsigned long long* ring, int slots, int arrivals) {
  for (int i = (int)threadIdx.x; i < slots; i += (int)blockDim.x) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;"
                 :
                 : "r"(cf_shared_address(ring + i)), "r"(arrivals)
                 : "memory");
  }
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#endif
}

// @helper cf_copy_bulk
// The whole warp has read what is overwritten before its first lane starts the copy.
template <int UNIT>
CF_DEVICE void cf_copy_bulk(int lane, void* to, const void* from, unsigned bytes,
                            unsigned long long* slot) {
  __syncwarp();
  if (lane != 0) return;
  const unsigned long long begin = (unsigned long long)from & ~(unsigned long long)(UNIT - 1);
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
               :
               : "r"(cf_shared_address(slot)), "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :
      : "r"(cf_shared_address(to)), "l"(begin), "r"(bytes), "r"(cf_shared_address(slot))
      : "memory");
}

// @helper cf_copy_lanes
template <int UNIT>
CF_DEVICE void cf_copy_lanes(int lane, void* to, const void* from, unsigned bytes,
                             unsigned long long* slot) {
  __syncwarp();
  const unsigned long long begin = (unsigned long long)from & ~(unsigned long long)(UNIT - 1);
  const unsigned shared = cf_shared_address(to);
  for (unsigned at = (unsigned)lane * 16u; at < bytes; at += 512u) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(shared + at), "l"(begin + at)
                 : "memory");
  }
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"
               :
               : "r"(cf_shared_address(slot))
               : "memory");
}

// @helper cf_copy_wait
CF_DEVICE void cf_copy_wait(unsigned long long* slot, unsigned parity) {
  const unsigned address = cf_shared_address(slot);
  unsigned done = 0;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
#if __CUDA_ARCH__ >= 900
        "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
#else
        "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
#endif
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  } while (done == 0);
}
