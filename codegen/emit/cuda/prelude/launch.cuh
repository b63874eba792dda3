// @helper CF_DEVICE
// Launches that overlap (sm_90 and later): see "griddepcontrol" in the PTX ISA.
#ifndef CF_DEVICE
#define CF_DEVICE __device__ __forceinline__
#endif

// @helper cf_let_next_start
CF_DEVICE void cf_let_next_start() { asm volatile("griddepcontrol.launch_dependents;" : : :); }

// @helper cf_wait_for_last
CF_DEVICE void cf_wait_for_last() { asm volatile("griddepcontrol.wait;" : : : "memory"); }
