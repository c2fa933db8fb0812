/*
 * Resources available to this process: CPUs (affinity and cgroup v1/v2 quota), memory (free memory
 * and cgroup v1/v2 limits) and SIMD instruction sets.
 */
#ifndef CM_BASE_CPU_H
#define CM_BASE_CPU_H

#include <stdint.h>

unsigned cm_cpu_count(void);        /* at least 1 */
uint64_t cm_memory_available(void); /* bytes available without swapping, within all limits */

typedef enum cm_simd {
    CM_SIMD_NONE,
    CM_SIMD_SSE2,
    CM_SIMD_AVX2
} cm_simd;

/*
 * The best set that this CPU has.  Pure query; callers choose at prepare time and pass the
 * choice on.
 */
cm_simd cm_cpu_simd(void);

#endif
