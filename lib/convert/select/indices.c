/*
 * Values that count elements of a dimension, by attributes of the CF Conventions: contiguous and
 * indexed ragged arrays (chapter 9.3), and lists of points (8.2).
 */
#include <string.h>

#include "convert/job.h"

/* Whether `subset` takes a part of the dimension DIM. */
static bool is_cut(const cm_job *job, const char *dim, size_t nname)
{
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        for (unsigned j = 0; j < v->source->rank; j++) {
            const char *own = v->source->dim_name[j];
            if (own != NULL && strlen(own) == nname && strncmp(own, dim, nname) == 0 &&
                v->view.shape[j] != v->source->shape[j])
                return true;
        }
    }
    return false;
}

static int tell_cut(cm_job *job, const cm_variable *v, const char *attribute, const char *dim,
                    size_t nname, cm_error *err)
{
    if (!is_cut(job, dim, nname))
        return CM_OK;
    return cm_job_warn(job, err,
                       "%s: its values count elements of whole dimensions (%s), and `subset` takes "
                       "a part of %.*s: they are stored as they are, and no longer fit",
                       v->name, attribute, (int)nname, dim);
}

static int check_indices(cm_job *job, const cm_variable *v, cm_error *err)
{
    static const char *const ATTRIBUTE[] = {"sample_dimension", "instance_dimension", "compress"};
    int rc = CM_OK;
    for (size_t i = 0; i < sizeof(ATTRIBUTE) / sizeof(ATTRIBUTE[0]); i++) {
        const char *text = cm_json_text(cm_json_member(v->attrs, ATTRIBUTE[i]), NULL);
        /* A count of each row goes with the samples of all rows before. */
        if (i == 0 && text != NULL && v->rank == 1 && v->dim_name[0] != NULL)
            rc = tell_cut(job, v, ATTRIBUTE[i], v->dim_name[0], strlen(v->dim_name[0]), err);
        for (size_t n; rc == CM_OK && text != NULL && *text != '\0';
             text += n + strspn(text + n, " ")) {
            n = strcspn(text, " ");
            rc = tell_cut(job, v, ATTRIBUTE[i], text, n, err);
        }
    }
    return rc;
}

int cm_job_check_indices(cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars && job->options->subset.n > 0; i++)
        rc = check_indices(job, job->var[i].source, err);
    return rc;
}
