#include "convert/sink/give_back.h"

#include "convert/sink/growth/append.h"

int cm_job_give_back(cm_job *job, cm_output *out, cm_error *err)
{
    cm_append *a = job->options->append;
    cm_output_end(out);
    if (a != NULL)
        cm_append_give_back(a);
    const char *stays = a != NULL ? a->beside.stays : out->beside.stays;
    return stays != NULL ? cm_job_warn(job, err, "%s", stays) : CM_OK;
}
