/* The sentences of the report, collected on the way. */
#include "base/sentences.h"

#include "convert/job.h"

CM_DEFINE_SENTENCE(cm_job_warn, cm_job, warning, nwarnings)
CM_DEFINE_SENTENCE(cm_job_note, cm_job, note, nnotes)
CM_DEFINE_SENTENCE(cm_job_skip, cm_job, skipped, nskipped)
CM_DEFINE_SENTENCE(cm_job_differ, cm_job, difference, ndifferences)

void cm_job_tell_warnings(cm_job *job)
{
    const cm_transform_options *o = job->options;
    cm_transform_report *r = job->report;
    if (o->warn == NULL)
        return;
    if (r->nwarnings > r->nwarned)
        o->warn(o->warn_context, r->warning + r->nwarned, r->nwarnings - r->nwarned);
    r->nwarned = r->nwarnings;
}
