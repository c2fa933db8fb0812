/* The arrays of the variables that were chosen, ready for reading. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/job.h"

const char *cm_job_name(const cm_job_var *v)
{
    return v->name[0] != '\0' ? v->name : "/";
}

const char *cm_job_noun(const cm_job *job)
{
    return job->source->kind == CM_DATASET_ZARR ? "array" : "variable";
}

cm_dataset *cm_job_dataset(const cm_job *job, const cm_job_var *v)
{
    return v->dataset != NULL ? v->dataset : job->source;
}

bool cm_job_is_own(const cm_job_var *v)
{
    return v->dataset == NULL && !v->source->is_made;
}

/* Which chunks are stored is asked once; elements that never were are fill, or undefined. */
static int find_chunks(cm_job *job, cm_job_var *v, cm_error *err)
{
    cm_presence *p = &v->stored.presence;
    const cm_stop stop = {cm_monitor_cancels, job->options->monitor};
    int rc = cm_presence_find(cm_dataset_store(job->source), v->source->name, v->source->words,
                              cm_job_threads(job), &stop, p, err);
    if (rc != CM_OK)
        return rc;
    uint64_t missing = p->nchunks - p->npresent;
    v->source->stored_nbytes = p->nbytes;
    /* The stored chunks are known: no more room than they need for stored bytes. */
    if (p->bit != NULL && !cm_dtype_is_vlen(&v->source->dtype))
        v->source->array->max_stored_nbytes = p->max_nbytes > 0 ? p->max_nbytes : 1;
    if (p->bit == NULL || missing == 0 || v->source->words->has_fill)
        return CM_OK;
    return cm_job_warn(
        job, err,
        "array %s: %llu of %llu chunks %s missing and it has no fill value: zeros are "
        "read there",
        cm_job_name(v), (unsigned long long)missing, (unsigned long long)p->nchunks,
        cm_of_count(missing, "is", "are"));
}

static int open_array(cm_job *job, cm_job_var *v, cm_error *err)
{
    bool zarr = v->source->words != NULL;
    v->stored.as_objects = zarr && v->source->unsupported != NULL;
    if (v->stored.as_objects)
        return CM_OK;
    int rc = cm_dataset_prepare(job->source, v->source, err);
    if (rc == CM_EUNSUPPORTED && zarr) {
        v->stored.as_objects = true;
        v->source->unsupported = "it is not understood";
        return CM_OK;
    }
    return rc == CM_OK && zarr ? find_chunks(job, v, err) : rc;
}

int cm_job_open_arrays(cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < job->nvars; i++)
        job->var[i].source->wanted = true;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = open_array(job, &job->var[i], err);
    for (size_t i = 0; rc == CM_OK && i < cm_dataset_nwarnings(job->source); i++)
        rc = cm_job_warn(job, err, "%s", cm_dataset_warning_at(job->source, i));
    return rc;
}
