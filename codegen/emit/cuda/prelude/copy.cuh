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
// Each slot by a warp's first lane: an instruction on barriers takes one lane after the other, and
// synccheck loses count of those that lanes of a warp start at once.
CF_DEVICE void cf_ring_start(int lane, unsigned long long* ring, int slots, int arrivals) {
  const int warps = (int)blockDim.x >> 5;
#pragma unroll 1
  for (int i = (int)threadIdx.x >> 5; i < slots && lane == 0; i += warps) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;"
                 :
                 : "r"(cf_shared_address(ring + i)), "r"(arrivals)
                 : "memory");
  }
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#endif
}

// @helper cf_part
// What a copy brings of BYTES bytes from `line` on: [from, to) of them. Everything, but at the ends
// of what it may touch, [begin, end), the whole units of 16 bytes; lanes bring the few elements
// beside them.
template <int UNIT, int BYTES, bool WHOLE>
struct cf_part {
  unsigned from, to;
  template <class T>
  CF_DEVICE cf_part(int lane, T* shared, unsigned long long line, const T* begin, const T* end)
      : from(0), to(BYTES) {
    const unsigned long long first = (unsigned long long)begin, last = (unsigned long long)end;
    if (WHOLE && UNIT == 16) {  // it begins where it may, or later
      if (line + BYTES > last) to = line < last ? (unsigned)(last - line) : 0u;
      return;
    }
    if (line >= first && line + BYTES <= last) return;
    const unsigned long long lo = WHOLE ? first : (first + 15) & ~15ull;
    const unsigned long long hi = WHOLE ? last : last & ~15ull;
    if (line < lo) from = (unsigned)(lo - line);
    if (line + BYTES > hi) to = hi < line ? 0u : (unsigned)(hi - line);
    if (to < from) to = from;
    if (WHOLE) return;
    const unsigned long long side = lane < 16 ? first : hi < lo ? lo : hi;
    const unsigned long long place = side + (lane & 15) * sizeof(T);
    const bool beside = lane < 16 ? place < lo : place >= lo;
    if (beside && place < last && place >= line && place < line + BYTES)
      shared[(place - line) / sizeof(T)] = *(const T*)place;
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
    __syncwarp();
  }
};

// @helper cf_end_loads
// Loads of shared memory that are still on their way read it before the copy engine writes. Warps
// whose loads wait for each other's banks were overtaken by copies out of a cache (an H200).
CF_DEVICE void cf_end_loads() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

// @helper cf_copy_bulk
// The whole warp has come here before its first lane starts the copy, with what it loaded from
// there but for loads on their way (cf_end_loads). `hint`: none, or a word of cf_keeps. Predicates,
// not branches: a compiler takes its time for those.
#define CF_BULK(KIND, HINT)                                                            \
  "{\n\t.reg .pred p, q;\n\tsetp.eq.s32 p, %4, 0;\n\tsetp.ne.and.u32 q, %2, 0, p;\n\t" \
  "@p mbarrier.arrive.expect_tx.shared.b64 _, [%3], %2;\n\t"                           \
  "@q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" KIND          \
  " [%0], [%1], %2, [%3]" HINT ";\n\t}"
template <int UNIT, int ELEMENTS, bool WHOLE, class T, class... Hint>
CF_DEVICE void cf_copy_bulk(int lane, T* to, const T* from, const T* begin, const T* end,
                            unsigned long long* slot, Hint... hint) {
  __syncwarp();
  const unsigned long long line = (unsigned long long)from & ~(unsigned long long)(UNIT - 1);
  const cf_part<UNIT, ELEMENTS * sizeof(T), WHOLE> part(lane, to, line, begin, end);
  const unsigned bytes = part.to - part.from;
  const unsigned to_at = cf_shared_address(to) + part.from, slot_at = cf_shared_address(slot);
  const unsigned long long from_at = line + part.from;
  if constexpr (sizeof...(hint) > 0) {
    asm volatile(CF_BULK(".L2::cache_hint", ", %5")
                 :
                 : "r"(to_at), "l"(from_at), "r"(bytes), "r"(slot_at), "r"(lane), "l"((hint, ...))
                 : "memory");
  } else {
    asm volatile(CF_BULK("", "")
                 :
                 : "r"(to_at), "l"(from_at), "r"(bytes), "r"(slot_at), "r"(lane)
                 : "memory");
  }
}

// @helper cf_copy_lanes
template <int UNIT, int ELEMENTS, bool WHOLE, class T>
CF_DEVICE void cf_copy_lanes(int lane, T* to, const T* from, const T* begin, const T* end,
                             unsigned long long* slot) {
  __syncwarp();
  const unsigned long long line = (unsigned long long)from & ~(unsigned long long)(UNIT - 1);
  const cf_part<UNIT, ELEMENTS * sizeof(T), WHOLE> part(lane, to, line, begin, end);
  const unsigned shared = cf_shared_address(to);
  for (unsigned at = part.from + (unsigned)lane * 16u; at < part.to; at += 512u) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(shared + at), "l"(line + at)
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

// @helper cf_copy_out
// Behind all that the warp has stored there. That the lines' places among those that the cache
// gives up stay as they are takes as long and 2 % less energy (an H200).
template <int ELEMENTS, class T>
CF_DEVICE void cf_copy_out(int lane, T* to, const T* from) {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
  __syncwarp();
  asm volatile(
      "{\n\t.reg .pred p;\n\t.reg .b64 h;\n\tsetp.eq.s32 p, %3, 0;\n\t"
      "createpolicy.fractional.L2::evict_unchanged.b64 h, 1.0;\n\t"
      "@p cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, h;\n\t"
      "@p cp.async.bulk.commit_group;\n\t}"
      :
      : "l"(to), "r"(cf_shared_address(from)), "n"(ELEMENTS * sizeof(T)), "r"(lane)
      : "memory");
}

// @helper cf_copy_out_wait
// The first lane has started them all. What they have read may be written again.
CF_DEVICE void cf_copy_out_wait(int lane) {
  if (lane == 0) asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory");
  __syncwarp();
}
