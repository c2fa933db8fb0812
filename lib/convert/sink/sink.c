#include "convert/sink/sink.h"

#include <stdlib.h>

#include "base/clock.h"
#include "convert/passport/job_passport.h"
#include "convert/statistics/statistics.h"

int cm_sink_describe(cm_job *job, const char *place, cm_error *err)
{
    const cm_transform_options *o = job->options;
    int rc = cm_job_describe(job, err);
    if (rc == CM_OK)
        rc = cm_job_notice(job, err);
    if (rc != CM_OK)
        return rc;
    cm_job_tell_warnings(job);
    rc = o->statistics ? cm_statistics_prepare(job, place, err) : CM_OK;
    return rc == CM_OK && o->report != NULL ? cm_job_passport_prepare(job, err) : rc;
}

static int fill(cm_sink *s, cm_job *job, cm_error *err)
{
    const uint64_t start = cm_now_ns();
    bool moves = true;
    int rc = s->ops->begin(s, job, &moves, err);
    if (rc == CM_OK && moves)
        rc = cm_job_run(job, s->store, err);
    if (rc == CM_OK && s->ops->commit != NULL)
        rc = s->ops->commit(s, job, err);
    if (rc != CM_OK && s->ops->withdraw != NULL)
        s->ops->withdraw(s, job, rc, err);
    job->report->seconds += (double)(cm_now_ns() - start) * 1e-9;
    return rc;
}

int cm_sink_fill(cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = fill(s, job, err);
    if (rc == CM_OK && s->ops->verify != NULL && job->options->verify != CM_VERIFY_NONE)
        rc = s->ops->verify(s, job, err);
    cm_job_release_writers(job);
    return s->ops->leave != NULL ? s->ops->leave(s, job, rc, err) : rc;
}

int cm_sink_verified(cm_job *job, int rc, uint64_t start_ns, const char *name, cm_error *err)
{
    job->report->verify_seconds = (double)(cm_now_ns() - start_ns) * 1e-9;
    job->report->unverified = rc != CM_OK && rc != CM_EDIFFER;
    if (job->report->unverified && rc != CM_ECANCELED)
        cm_error_prefix(err, "%s: written, but not verified", name);
    return rc;
}

int cm_sink_verify(cm_job *job, cm_store *store, const char *name, cm_error *err)
{
    const uint64_t start = cm_now_ns();
    int rc = cm_job_verify(job, store, err);
    return cm_sink_verified(job, rc, start, name, err);
}

void cm_sink_release(cm_sink *s)
{
    cm_output_release(&s->out);
    cm_into_release(&s->into);
    cm_store_path_release(&s->against);
}
