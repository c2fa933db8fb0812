/* Monotonic time, and resources used by this process. */
#ifndef CM_BASE_CLOCK_H
#define CM_BASE_CLOCK_H

#include <stdint.h>

uint64_t cm_now_ns(void);        /* CLOCK_MONOTONIC */
uint64_t cm_thread_cpu_ns(void); /* CPU time of the calling thread */
int64_t cm_boot_s(void);         /* when the machine started, in seconds since 1970 */
uint64_t cm_peak_rss(void); /* high-water mark of this process's resident memory, bytes (VmHWM) */
/* Resident bytes now; OWN (may be NULL): those neither of files nor shared; 0: unknown. */
uint64_t cm_resident(uint64_t *own);

#endif
