/* How many workers the CPUs of this machine are good for. */
#include <chunkmill/readbench.h>

#include <stdlib.h>

#include "base/cpu.h"
#include "base/mem.h"

int cm_readbench_advise(unsigned cpus, unsigned accelerators, unsigned reserve,
                        cm_readbench_advice *out, cm_error *err)
{
    *out = (cm_readbench_advice){0};
    if (accelerators == 0)
        return cm_fail(err, CM_EINVAL, "`accelerators` 0: there is at least one");
    *out = (cm_readbench_advice){.cpus = cpus > 0 ? cpus : cm_cpu_count(),
                                 .accelerators = accelerators,
                                 .reserve = reserve,
                                 .workers = 1,
                                 .threads = 1};
    const uint64_t reserved = (uint64_t)reserve * accelerators;
    const uint64_t each = reserved < out->cpus ? (out->cpus - reserved) / accelerators : 0;
    if (each >= 2) {
        out->workers = (unsigned)each;
        return CM_OK;
    }
    out->threads = 2;
    out->warning = cm_asprintf(
        err,
        "%u CPU%s for %u accelerator%s, %u reserved for each, leave %s for loading: one worker "
        "with 2 threads is the least, and more CPUs would help",
        out->cpus, out->cpus == 1 ? "" : "s", accelerators, accelerators == 1 ? "" : "s", reserve,
        each == 1 ? "one" : "none");
    return out->warning != NULL ? CM_OK : CM_ENOMEM;
}

void cm_readbench_advice_release(cm_readbench_advice *advice)
{
    if (advice == NULL)
        return;
    free(advice->warning);
    *advice = (cm_readbench_advice){0};
}
