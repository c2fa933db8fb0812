/*
 * Several stores share one set of options: drops those that name variables or dimensions of another
 * store.
 */
#include <string.h>

#include "convert/job.h"

void cm_job_look_elsewhere(const cm_job *job, cm_varopts *opts)
{
    for (size_t i = 0; i < job->options->nothers; i++)
        (void)cm_varopts_get(opts, job->options->other[i].name, false, NULL);
}

bool cm_job_elsewhere(const cm_job *job, const char *pattern)
{
    for (size_t i = 0; i < job->options->nothers; i++)
        if (cm_name_matches(pattern, job->options->other[i].name))
            return true;
    return false;
}

bool cm_job_dim_elsewhere(const cm_job *job, const char *name)
{
    for (size_t i = 0; i < job->options->nothers; i++)
        for (unsigned k = 0; k < job->options->other[i].rank; k++)
            if (strcmp(job->options->other[i].dim_name[k], name) == 0)
                return true;
    return false;
}
