/* The arrays of the variables that were chosen, ready for reading. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/source/holes.h"

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

/* Which chunks are stored is asked once. */
static int find_chunks(cm_job *job, cm_job_var *v, cm_error *err)
{
    const cm_presence *p = &v->stored.presence;
    int rc = cm_holes_find(job, v, err);
    if (rc != CM_OK)
        return rc;
    v->source->stored_nbytes = p->nbytes;
    /* The stored chunks are known: no more room than they need for stored bytes. */
    if (p->bit != NULL && !cm_dtype_is_vlen(&v->source->dtype))
        v->source->array->max_stored_nbytes = p->max_nbytes > 0 ? p->max_nbytes : 1;
    return CM_OK;
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
    int rc = cm_holes_begin(job, err);
    for (size_t i = 0; i < job->nvars; i++)
        job->var[i].source->wanted = true;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = open_array(job, &job->var[i], err);
    if (rc == CM_OK)
        rc = cm_holes_end(job, err);
    for (size_t i = 0; rc == CM_OK && i < cm_dataset_nwarnings(job->source); i++)
        rc = cm_job_warn(job, err, "%s", cm_dataset_warning_at(job->source, i));
    return rc;
}
