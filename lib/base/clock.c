#include "base/clock.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t cm_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t cm_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t cm_boot_s(void)
{
    const uint64_t now = read_clock(CLOCK_REALTIME), since = read_clock(CLOCK_BOOTTIME);
    return ((int64_t)now - (int64_t)since) / 1000000000;
}

uint64_t cm_peak_rss(void)
{
    /* VmHWM starts anew at exec; ru_maxrss is inherited from the process that forked us. */
    FILE *f = fopen("/proc/self/status", "re");
    if (f != NULL) {
        char line[256];
        unsigned long long kib;
        while (fgets(line, sizeof line, f) != NULL) {
            if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) {
                fclose(f);
                return (uint64_t)kib * 1024;
            }
        }
        fclose(f);
    }
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage))
        return 0;
    return (uint64_t)usage.ru_maxrss * 1024;
}

uint64_t cm_resident(uint64_t *own)
{
    unsigned long long pages[3] = {0};
    FILE *f = fopen("/proc/self/statm", "re");
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (f == NULL || fscanf(f, "%llu %llu %llu", &pages[0], &pages[1], &pages[2]) != 3)
        pages[1] = pages[2] = 0;
    if (f != NULL)
        fclose(f);
    if (own != NULL)
        *own = pages[1] > pages[2] ? page * (pages[1] - pages[2]) : 0;
    return page * pages[1];
}
