// Clusters: what their blocks tell each other, through each block's shared memory. Before a block
// looks into another's, all have come to one barrier, so all have started and handed over; before
// one ends, all have read.

// @helper cf_hand_over
CF_DEVICE void cf_hand_over(unsigned long long* word, unsigned long long payload) {
  if (threadIdx.x == 0) *word = payload;
}

// @helper cf_cluster_meets
CF_DEVICE void cf_cluster_meets() {
  __syncwarp();  // one lane alone has handed over
  asm volatile("barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// @helper cf_heard_from
CF_DEVICE unsigned long long cf_heard_from(int lane, int blocks, const unsigned long long* word) {
  unsigned long long payload = 0;
  asm volatile(
      "{\n  .reg .pred there;\n  .reg .u32 at;\n  setp.lt.s32 there, %1, %2;\n"
      "  @there mapa.shared::cluster.u32 at, %3, %1;\n"
      "  @there ld.shared::cluster.u64 %0, [at];\n}"
      : "+l"(payload)
      : "r"(lane), "r"(blocks), "r"((unsigned)__cvta_generic_to_shared(word))
      : "memory");
  return payload;
}

// Released: reads that are still under way when another block ends would find nothing.
// @helper cf_cluster_has_read
CF_DEVICE void cf_cluster_has_read() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// @helper cf_cluster_ends
CF_DEVICE void cf_cluster_ends() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
