#include "convert/sink/store/files.h"

#include "convert/source/inputs.h"
#include "watch/monitor.h"

static bool is_canceled(void *monitor)
{
    return cm_monitor_canceled(monitor);
}

int cm_job_claim_files(cm_job *job, const char *source, const char *target, cm_outfile *certificate,
                       cm_error *err)
{
    const cm_transform_options *o = job->options;
    size_t n;
    if (o->scratch == NULL && o->trace == NULL && o->certificate == NULL)
        return CM_OK;
    int rc = cm_job_inputs_paths(job, source, &job->files.guarded, &n, err);
    if (rc != CM_OK)
        return rc;
    if (job->terms.against != NULL)
        job->files.guarded[n++] = job->terms.against;
    const cm_outfile_guard guard = {.read = job->files.guarded,
                                    .nread = n,
                                    .made = target,
                                    .canceled = is_canceled,
                                    .context = o->monitor};
    if (o->scratch != NULL)
        rc = cm_outfile_check_folder(o->scratch, &guard, err);
    if (rc == CM_OK && o->trace != NULL)
        rc = cm_outfile_claim(&job->files.trace, o->trace, &CM_KIND_TRACE, &guard, o->overwrite,
                              err);
    if (rc == CM_OK && o->certificate != NULL)
        rc = cm_outfile_claim(certificate, o->certificate, &CM_KIND_CERTIFICATE, &guard,
                              o->overwrite, err);
    /* A dry run writes neither. */
    if (job->terms.foreseen) {
        cm_outfile_release(&job->files.trace);
        cm_outfile_release(certificate);
        return rc;
    }
    /* A pipe that nobody reads is told before the work, not after it. */
    if (rc == CM_OK && job->files.trace.in_place)
        rc = cm_outfile_open(&job->files.trace, err);
    if (rc == CM_OK && certificate->in_place)
        rc = cm_outfile_open(certificate, err);
    return rc;
}

int cm_job_finish_files(cm_job *job, int rc, cm_outfile *certificate, cm_error *err)
{
    bool done = rc == CM_OK || rc == CM_EDIFFER;
    const char *target = job->report->written ? "; the target is complete" : "";
    int failed = CM_OK;
    if (done && certificate->path != NULL)
        failed = cm_job_certify(job, job->from.path, certificate, err);
    if (failed != CM_OK) {
        cm_error_suffix(err, "%s, but has no certificate", target);
        return failed;
    }
    if (!done || job->files.trace_error.status == CM_OK)
        return rc;
    if (err != NULL)
        *err = job->files.trace_error;
    cm_error_suffix(err, "%s, but has no trace", target);
    return job->files.trace_error.status;
}
