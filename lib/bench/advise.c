/* readbench's advice: workers that the CPUs are good for, and a warning where these are few. */
#include <stdlib.h>

#include <chunkmill/readbench.h>

#include "base/mem.h"
#include "base/number.h"
#include "load/run.h"

int cm_readbench_advise(unsigned cpus, unsigned accelerators, unsigned reserve,
                        cm_readbench_advice *out, cm_error *err)
{
    *out = (cm_readbench_advice){0};
    if (accelerators == 0)
        return cm_fail(err, CM_EINVAL, "`accelerators` 0: there is at least one");
    const cm_load_advice a = cm_load_advise(cpus, accelerators, reserve);
    *out = (cm_readbench_advice){.cpus = a.cpus,
                                 .accelerators = accelerators,
                                 .reserve = reserve,
                                 .workers = a.workers,
                                 .threads = a.threads};
    if (a.left >= 2)
        return CM_OK;
    out->warning = cm_asprintf(
        err,
        "%u CPU%s for %u accelerator%s, %u reserved for each, leave %s for loading: one worker "
        "with 2 threads is the least, and more CPUs would help",
        out->cpus, cm_of_count(out->cpus, "", "s"), accelerators,
        cm_of_count(accelerators, "", "s"), reserve, a.left == 1 ? "one" : "none");
    return out->warning != NULL ? CM_OK : CM_ENOMEM;
}

void cm_readbench_advice_release(cm_readbench_advice *advice)
{
    if (advice == NULL)
        return;
    free(advice->warning);
    *advice = (cm_readbench_advice){0};
}
