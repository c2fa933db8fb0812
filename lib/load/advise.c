/* How many workers the CPUs of this machine are good for. */
#include "base/cpu.h"
#include "load/run.h"

cm_load_advice cm_load_advise(unsigned cpus, unsigned ranks, unsigned reserve)
{
    cm_load_advice a = {.cpus = cpus > 0 ? cpus : cm_cpu_count(), .workers = 1, .threads = 1};
    const uint64_t reserved = (uint64_t)reserve * ranks;
    a.left = reserved < a.cpus ? (unsigned)((a.cpus - reserved) / ranks) : 0;
    if (a.left >= 2)
        a.workers = a.left;
    else
        a.threads = 2;
    return a;
}
