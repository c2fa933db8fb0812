#include "base/cpu.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"

/* CPUs in this thread's affinity mask; 0: unknown. */
static unsigned affinity_count(void)
{
    /* The kernel refuses masks smaller than its own, so larger ones are tried in turn. */
    for (int ncpus = 1024; ncpus <= 1 << 20; ncpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)ncpus);
        if (set == NULL)
            return 0;
        const size_t nbytes = CPU_ALLOC_SIZE((size_t)ncpus);
        const int rc = sched_getaffinity(0, nbytes, set);
        const int errnum = errno;
        const int count = rc == 0 ? CPU_COUNT_S(nbytes, set) : 0;
        CPU_FREE(set);
        if (rc == 0)
            return (unsigned)count;
        if (errnum != EINVAL)
            return 0;
    }
    return 0;
}

unsigned cm_cpu_count(void)
{
    unsigned count = affinity_count();
    if (count == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        count = online > 0 ? (unsigned)online : 1;
    }
    const unsigned quota = cm_cgroup_read("").cpus;
    return quota && quota < count ? quota : count;
}

/* Address space left below RLIMIT_AS (`ulimit -v`); UINT64_MAX: no limit. */
static uint64_t address_space_left(void)
{
    struct rlimit limit;
    unsigned long long pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL)
        return limit.rlim_cur;
    if (fscanf(f, "%llu", &pages) != 1)
        pages = 0;
    fclose(f);
    const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t cm_memory_available(void)
{
    uint64_t left = cm_meminfo_available("");
    if (left == 0)
        left = UINT64_MAX;
    const uint64_t group = cm_cgroup_read("").memory_left;
    const uint64_t space = address_space_left();
    left = group < left ? group : left;
    return space < left ? space : left;
}

cm_simd cm_cpu_simd(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") ? CM_SIMD_AVX2 : CM_SIMD_SSE2;
#else
    return CM_SIMD_NONE;
#endif
}
