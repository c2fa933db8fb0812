/* `readbench --advise`: how many workers suit a machine. */
#include "../common/naming.h"
#include "../common/say.h"
#include "base/number.h"
#include "readbench.h"

static int print_json(const cm_readbench_advice *a, cm_error *err)
{
    cm_document d = {CM_OK, err};
    cm_json *o = cm_json_object();

    cm_document_head(&d, o, "readbench-advise/1", "done", NULL);
    cm_document_u64(&d, o, "cpus", a->cpus);
    cm_document_u64(&d, o, "accelerators", a->accelerators);
    cm_document_u64(&d, o, "reserve", a->reserve);
    cm_document_u64(&d, o, "workers", a->workers);
    cm_document_u64(&d, o, "threads", a->threads);
    cm_document_text(&d, o, "warning", a->warning);
    return cm_document_print(&d, o, stdout);
}

int readbench_advise(const readbench_values *v, const cm_common_options *common,
                     const cm_texts *paths)
{
    static const char *const ALLOWED[] = {"advise", "cpus", "accelerators", "reserve", NULL};
    cm_readbench_advice a = {0};
    cm_error err = {0};

    int status = cm_tool_refuse_others(&READBENCH, common, ALLOWED);
    if (status != CM_TOOL_RUN)
        return status;
    if (paths->n > 0)
        return cm_tool_usage_error(&READBENCH, "--advise takes no store");
    int rc = cm_readbench_advise(v->cpus, v->o.accelerators, v->o.reserve, &a, &err);
    cm_tool_name_error(&READBENCH, &err);
    cm_tool_name_text(&READBENCH, &a.warning);
    if (rc == CM_OK && common->json) {
        rc = print_json(&a, &err);
    } else if (rc == CM_OK && common->verbosity >= 0) {
        cm_print(stdout, "workers for each accelerator: %u\nthreads for each worker: %u\n",
                 a.workers, a.threads);
        cm_print(stdout, "(%u CPU%s - %u reserved x %u accelerator%s) / %u, at least 1\n", a.cpus,
                 cm_of_count(a.cpus, "", "s"), a.reserve, a.accelerators,
                 cm_of_count(a.accelerators, "", "s"), a.accelerators);
    }
    if (rc != CM_OK)
        cm_say(READBENCH.name, "%s", err.text);
    else if (a.warning && common->verbosity >= 0)
        cm_say(READBENCH.name, "warning: %s", a.warning);
    cm_readbench_advice_release(&a);
    return cm_tool_exit_status(rc);
}
