#include "convert/passport/job_passport.h"

#include <stdlib.h>
#include <string.h>

#include "passport/draft.h"

struct cm_job_passport {
    cm_draft *draft; /* of the job */
    size_t index;    /* of the variable in it */
    cm_zarr_writer *const *writer;
    int (*next)(void *context, uint64_t chunk, const uint8_t *elements, cm_error *err);
    void *next_context;
};
typedef struct cm_job_passport cm_job_passport;

/* The attributes of the group that is converted: the root of what is written. */
static const cm_json *root_attributes(const cm_job *job)
{
    for (size_t i = 0; i < job->source->ngroups; i++)
        if (strcmp(job->source->group[i].path, job->from.group) == 0)
            return job->source->group[i].attrs;
    return NULL;
}

static int describe(const cm_job *job, size_t i, cm_error *err)
{
    const cm_job_var *v = &job->var[i];
    const cm_zarr_meta *m = &v->doc.meta;
    /* The fill value of version 2 is missing data, that of version 3 a number. */
    const bool masked = m->zarr_format == 2 && m->has_fill;
    const cm_draft_source s = {.name = v->name,
                               .type = v->view.type,
                               .rank = v->view.rank,
                               .shape = v->view.shape,
                               .dim_name = m->dim_name,
                               .attrs = m->attrs,
                               .masked = masked ? m->fill : NULL,
                               .fill = m->has_fill ? m->fill : NULL,
                               .is_other = v->stored.as_objects || v->view.as_strings ||
                                           v->source->is_char};
    return cm_draft_describe(job->draft, i, &s, err);
}

int cm_job_passport_prepare(cm_job *job, cm_error *err)
{
    int rc = cm_draft_create(job->nvars, &job->draft, err);
    if (rc == CM_OK)
        rc = cm_draft_attributes(job->draft, root_attributes(job), err);
    for (size_t i = 0; i < job->nvars && rc == CM_OK; i++)
        rc = describe(job, i, err);
    if (rc == CM_OK)
        cm_draft_settle(job->draft);
    for (size_t i = 0; i < job->nvars && rc == CM_OK; i++) {
        cm_job_passport *p = job->var[i].passport = cm_calloc(1, sizeof(*p), err);
        if (p == NULL)
            return CM_ENOMEM;
        *p = (cm_job_passport){.draft = job->draft, .index = i, .writer = &job->var[i].move.writer};
    }
    return rc;
}

static int see_chunk(void *context, uint64_t number, const uint8_t *data, cm_error *err)
{
    const cm_job_passport *p = context;
    const cm_grid *grid = cm_zarr_writer_grid(*p->writer);
    uint64_t coord[CM_MAX_RANK], shape[CM_MAX_RANK];
    cm_box box;
    cm_grid_coord(grid, number, coord);
    cm_grid_box(grid, coord, &box);
    cm_grid_chunk_shape(grid, coord, shape);
    cm_draft_see(p->draft, p->index, &box, shape, data);
    return p->next != NULL ? p->next(p->next_context, number, data, err) : CM_OK;
}

int cm_job_passport_watch(cm_job_var *v, cm_error *err)
{
    cm_job_passport *p = v->passport;
    cm_transfer *t = &v->move.transfer;
    bool counted;
    int rc = cm_draft_watch(p->draft, p->index, &counted, err);
    if (rc != CM_OK || !counted)
        return rc;
    p->next = t->see;
    p->next_context = t->see_context;
    t->see = see_chunk;
    t->see_context = p;
    return CM_OK;
}

uint64_t cm_job_passport_nbytes(const cm_job *job)
{
    return job->draft != NULL ? cm_draft_nbytes(job->draft) : 0;
}

int cm_job_passport_finish(cm_job *job, cm_error *err)
{
    bool counted;
    int rc = CM_OK;
    for (size_t i = 0; i < job->nvars && rc == CM_OK; i++) {
        /* Nothing is stored of it, and no transfer told of it. */
        if (!job->var[i].move.absent)
            continue;
        rc = cm_draft_watch(job->draft, i, &counted, err);
        if (rc == CM_OK && counted)
            cm_draft_see_nothing(job->draft, i);
    }
    return rc == CM_OK ? cm_draft_finish(job->draft, &job->report->passport, err) : rc;
}

void cm_job_passport_free(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++)
        free(job->var[i].passport);
    cm_draft_free(job->draft);
    job->draft = NULL;
}
